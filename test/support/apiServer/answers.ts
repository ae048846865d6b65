/** How answers go out, with or without a fault. */
import type { ServerResponse } from 'node:http';
import type { Fault } from './faults.ts';
import { head, type ServedEncoding } from './negotiate.ts';
import { encodedOrNothing, envelope } from './protobuf/encode.ts';
import { type StatusError, statusObject } from './status.ts';

const CHUNK_BYTES = 64 * 1024;

export function sendStatus(
  response: ServerResponse,
  error: StatusError,
  encoding: ServedEncoding = 'json',
): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const { retryAfter } = error.options;
  const encoded = encoding === 'protobuf' ? encodedStatus(error) : undefined;
  const body = encoded ?? `${JSON.stringify(statusObject(error.code, error.options))}\n`;
  response.writeHead(error.code, {
    ...head(encoded === undefined ? 'json' : 'protobuf'),
    'content-length': Buffer.byteLength(body),
    ...(retryAfter === undefined ? {} : { 'retry-after': retryAfter }),
  });
  response.end(body);
}

/** With its envelope. Nothing: a test has put in what protobuf cannot say. */
export function encodedStatus(error: StatusError): Buffer | undefined {
  const status = encodedOrNothing('Status', statusObject(error.code, error.options));
  return status && envelope('Status', 'v1', status);
}

/** True: the fault was the answer. */
export function answerWithFault(fault: Fault, response: ServerResponse, encoding: ServedEncoding): boolean {
  switch (fault.kind) {
    case 'status':
      sendStatus(response, fault.error, encoding);
      return true;
    case 'answer':
      response.writeHead(fault.code, { 'content-type': fault.contentType });
      response.end(fault.body);
      return true;
    case 'reset':
      response.destroy();
      return true;
    case 'hang':
      return true;
    case 'endAtOnce':
      response.writeHead(200, head(encoding, true));
      response.end();
      return true;
    default:
      return false;
  }
}

export async function sendPieces(
  response: ServerResponse,
  pieces: Iterable<Uint8Array>,
  fault: Fault | undefined,
  encoding: ServedEncoding,
): Promise<void> {
  let sent = 0;
  for (const chunk of rechunked(pieces, fault?.kind === 'slow' ? fault.bytes : CHUNK_BYTES)) {
    // Not before the first chunk: making it is what finds fault with the request.
    if (!response.headersSent) response.writeHead(200, head(encoding));
    if (fault?.kind === 'cut' && sent + chunk.length > fault.afterBytes) {
      response.write(chunk.subarray(0, fault.afterBytes - sent));
      if (fault.clean) response.end();
      else setImmediate(() => response.destroy());
      return;
    }
    sent += chunk.length;
    response.write(chunk);
    if (fault?.kind === 'slow') await new Promise((resolve) => setImmediate(resolve));
    if (response.writableNeedDrain) await drained(response);
    if (response.destroyed) return;
  }
  response.end();
}

export function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      response.off('drain', done);
      response.off('close', done);
      resolve();
    };
    response.on('drain', done);
    response.on('close', done);
  });
}

/** Many pieces in one chunk, or one piece in many. */
function* rechunked(pieces: Iterable<Uint8Array>, bytes: number): Generator<Uint8Array> {
  let parts: Uint8Array[] = [];
  let length = 0;
  for (const piece of pieces) {
    parts.push(piece);
    length += piece.length;
    if (length < bytes) continue;
    const all = Buffer.concat(parts, length);
    let from = 0;
    for (; length - from >= bytes; from += bytes) yield all.subarray(from, from + bytes);
    parts = from < length ? [all.subarray(from)] : [];
    length -= from;
  }
  if (length > 0) yield Buffer.concat(parts, length);
}

/** From a page to an HTTP server that survives whatever it is sent. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { Log } from '../../log/log.ts';
import { type Answer, type Page, plain, type Request } from './answer.ts';

export function pageServer(page: Page, log: Log): Server {
  const server = createServer((incoming, response) => {
    reply(page, incoming, response, log).catch((error: unknown) => {
      log.verbose(3, 'An answer could not be sent', { path: incoming.url, err: error });
      response.destroy();
    });
  });
  server.on('clientError', (_error, socket) => {
    if (socket.writable) socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n');
    else socket.destroy();
  });
  return server;
}

async function reply(
  page: Page,
  incoming: IncomingMessage,
  response: ServerResponse,
  log: Log,
): Promise<void> {
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  let answer: Answer;
  try {
    answer = await page(requestOf(incoming, gone.signal));
  } catch (error) {
    log.error('A page failed', { path: incoming.url, err: error });
    answer = plain(500, 'internal error\n');
  }
  await send(incoming, response, answer);
}

async function send(
  incoming: IncomingMessage,
  response: ServerResponse,
  { status, headers, body }: Answer,
): Promise<void> {
  if (response.destroyed) return;
  if (typeof body === 'string' || body instanceof Uint8Array) {
    const bytes = typeof body === 'string' ? Buffer.from(body) : body;
    response.writeHead(status, { ...headers, 'Content-Length': bytes.length });
    response.end(bytes);
    return;
  }
  response.writeHead(status, headers);
  if (incoming.method === 'HEAD') {
    body.destroy();
    response.end();
  } else {
    await pipeline(body, response);
  }
}

function requestOf(incoming: IncomingMessage, signal: AbortSignal): Request {
  const { path, query } = splitTarget(incoming.url ?? '/');
  return {
    method: incoming.method ?? 'GET',
    path,
    query: new URLSearchParams(query),
    headers: incoming.headers,
    signal,
    text: (maxBytes) => readText(incoming, maxBytes),
  };
}

/** `/path?query`, or the whole address as it is sent to a proxy. */
function splitTarget(target: string): { readonly path: string; readonly query: string } {
  const local = target.replace(/^https?:\/\/[^/?]*/i, '');
  const mark = local.indexOf('?');
  const path = mark < 0 ? local : local.slice(0, mark);
  return { path: path === '' ? '/' : path, query: mark < 0 ? '' : local.slice(mark + 1) };
}

async function readText(incoming: IncomingMessage, maxBytes: number): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of incoming) {
    const bytes = chunk as Buffer;
    length += bytes.length;
    if (length > maxBytes) return undefined;
    chunks.push(bytes);
  }
  return Buffer.concat(chunks).toString('utf8');
}

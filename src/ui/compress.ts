/** Large answers of the API, compressed while they are sent. */
import { pipeline, Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import type { Answer, Request, StreamedAnswer } from '../telemetry/http/server.ts';
import { chooseCoding } from './codings.ts';

const LEAST_BYTES = 16 * 1024;
/** The fastest. zlib works in a thread of its own, a chunk at a time. */
const LEVEL = 1;
const CHUNK_BYTES = 64 * 1024;

export function compressed(answer: Answer | StreamedAnswer, { headers }: Request): Answer | StreamedAnswer {
  if ('chunks' in answer ? answer.isEndless : answer.body.length < LEAST_BYTES) return answer;
  const varied = { ...answer.headers, Vary: 'Accept-Encoding' };
  if (chooseCoding(headers, ['gzip']) === 'identity') return { ...answer, headers: varied };
  const chunks = gzipped('chunks' in answer ? answer.chunks : [answer.body]);
  return { status: answer.status, headers: { ...varied, 'Content-Encoding': 'gzip' }, chunks };
}

/** No chunk is asked for before zlib has taken the last. A failure of the source ends it with that failure. */
function gzipped(
  chunks: AsyncIterable<string | Uint8Array> | Iterable<string | Uint8Array>,
): AsyncIterable<Uint8Array> {
  const gzip = createGzip({ level: LEVEL, chunkSize: CHUNK_BYTES });
  // Whoever reads from gzip learns of the failure there.
  pipeline(Readable.from(chunks, { highWaterMark: 1 }), gzip, () => undefined);
  return gzip;
}

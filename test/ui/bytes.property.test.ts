/** Whatever is sent, the server answers the next one. */
import fc from 'fast-check';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { ask } from '../telemetry/http/support.ts';
import { servePage } from './support.ts';

/** What comes back until the end; a reset is an end too. */
function send(port: number | undefined, bytes: string): Promise<string> {
  return new Promise((resolve) => {
    let answer = '';
    const socket = connect(port ?? 0, '127.0.0.1');
    socket.setEncoding('latin1').on('data', (chunk) => (answer += String(chunk)));
    socket.on('error', () => undefined).on('close', () => resolve(answer));
    socket.end(bytes, 'latin1');
  });
}

const WORDS =
  'GET|HEAD|POST|OPTIONS|CONNECT|PRI|/|/v1/status|*|http://x/|?|#|HTTP/1.1|HTTP/1.0|HTTP/2.0|Host:|localhost|Host: localhost|Origin: null|Content-Length: 5|Transfer-Encoding: chunked|Expect: 100-continue|Upgrade: h2c|Connection: upgrade|Connection: close|Range: bytes=0-1|If-None-Match: *|0|\0';
const word = fc.oneof(fc.constantFrom(...WORDS.split('|')), fc.string({ maxLength: 20 }));
const request = fc
  .array(fc.tuple(word, fc.constantFrom(' ', '\r\n', '\n', '\r\n\r\n', '')), { maxLength: 30 })
  .map((parts) => parts.flat().join(''));

test('bytes that resemble requests', async () => {
  const { port, lines } = await servePage();
  await fc.assert(
    fc.asyncProperty(request, async (bytes) => {
      const answer = await send(port, bytes);
      expect(answer).toMatch(/^(?:HTTP\/1\.1 (?:[12]\d\d|304|4\d\d) [^]*)?$/);
    }),
  );
  expect((await ask(port, '/')).status).toBe(200);
  expect(lines.filter((line) => line.includes('failed'))).toEqual([]);
});

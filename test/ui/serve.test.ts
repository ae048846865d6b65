import { createConnection, type Socket } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { plain, type StreamingPage } from '../../src/telemetry/http/server.ts';
import { parseUiAddress } from '../../src/ui/address.ts';
import { servePage } from '../../src/ui/serve.ts';
import { eventually } from '../e2e/support/eventually.ts';
import { ask, keptLog, requireIpv6 } from '../telemetry/http/support.ts';

async function serve(text: string, api: StreamingPage = () => plain(200, 'ok')) {
  const address = parseUiAddress(text);
  if (!address) throw new Error(`${text} is no address`);
  const page = await servePage({ address, api, log: keptLog().log });
  onTestFinished(() => page.stop());
  return { ...page, port: Number(new URL(page.link).port) };
}

test.for([
  ['0', '127.0.0.1'],
  ['127.0.0.3:0', '127.0.0.3'],
  ['0.0.0.0:0', '127.0.0.1'],
  ['[::]:0', '127.0.0.1'],
  ['[::1]:0', '[::1]'],
])(
  'the link of %s leads there, by the port that the kernel chose',
  async ([address = '', host = ''], context) => {
    if (host === '[::1]') requireIpv6(context);
    const { link, port } = await serve(address);
    expect(link).toBe(`http://${host}:${port}/`);
    expect((await ask(port, '/v1/status', { host: host.replaceAll(/[[\]]/g, '') })).body).toBe('ok');
  },
);

describe('a client', () => {
  const connect = (port: number): Promise<Socket> =>
    new Promise((resolve, reject) => {
      const socket = createConnection({ host: '127.0.0.1', port }, () => resolve(socket));
      socket.once('error', reject);
    });

  test('that sends many at once, and goes, leaves no stream behind', async () => {
    let open = 0;
    let most = 0;
    const api: StreamingPage = ({ signal }) => ({
      status: 200,
      headers: {},
      isEndless: true,
      chunks: (async function* () {
        most = Math.max(most, ++open);
        yield ':\n\n';
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        open--;
      })(),
    });
    const { port } = await serve('0', api);
    const socket = await connect(port);
    socket.on('error', () => undefined).resume();
    for (let count = 0; count < 5; count++) socket.write('GET /v1/watch HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await eventually('all are asked', () => open === 5);
    socket.destroy();
    await eventually('all are ended', () => open === 0);
    const greedy = await connect(port);
    greedy.on('error', () => undefined).resume();
    greedy.write('GET /v1/watch HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(1000));
    await eventually('it is disconnected', () => greedy.destroyed);
    await eventually('all are ended again', () => open === 0);
    expect(most).toBeLessThanOrEqual(8);
  });

  test('that reads nothing of a stream is disconnected, one that reads is not', async () => {
    let open = 0;
    const api: StreamingPage = () => ({
      status: 200,
      headers: {},
      isEndless: true,
      mostStalledMs: 2000,
      chunks: (async function* () {
        open++;
        try {
          for (;;) {
            yield 'x'.repeat(100_000);
            await new Promise((resolve) => setTimeout(resolve, 20));
          }
        } finally {
          open--;
        }
      })(),
    });
    const { port } = await serve('0', api);
    let [isOver, read] = [false, 0];
    const stalled = await connect(port);
    stalled.on('error', () => undefined).pause();
    const reading = await connect(port);
    reading.on('error', () => undefined).once('close', () => (isOver = true));
    reading.on('data', ({ length }: Buffer) => (read += length));
    for (const socket of [stalled, reading])
      socket.write('GET /v1/watch HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await eventually('both are served', () => open === 2);
    await eventually('one is left', () => open === 1);
    const before = read;
    await eventually('the other reads on', () => read > before);
    expect(isOver).toBe(false);
    for (const socket of [stalled, reading]) socket.destroy();
  });

  test('gets the end of its stream when the server is stopped', async () => {
    const stop = new AbortController();
    const api: StreamingPage = () => ({
      status: 200,
      headers: {},
      isEndless: true,
      chunks: (async function* () {
        yield 'first\n';
        await new Promise((resolve) => stop.signal.addEventListener('abort', resolve));
      })(),
    });
    const page = await serve('0', api);
    let text = '';
    const socket = await connect(page.port);
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.setEncoding('latin1').on('data', (chunk) => (text += String(chunk)));
    socket.write('GET /v1/watch HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await eventually('the first line', () => text.includes('first'));
    stop.abort();
    await page.stop();
    await closed;
    // The last chunk of HTTP: nothing was cut off.
    expect(text.endsWith('\r\n0\r\n\r\n')).toBe(true);
  });
});

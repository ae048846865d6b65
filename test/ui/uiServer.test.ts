import { createConnection, type Socket } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parseUiAddress } from '../../src/config/uiAddress.ts';
import { plain, type StreamingPage } from '../../src/telemetry/http/server.ts';
import { UiServer } from '../../src/ui/uiServer.ts';
import { eventually } from '../e2e/support/eventually.ts';
import { ask, askRaw, holdPort, keptLog, requireIpv6 } from '../telemetry/http/support.ts';
import { FakeClock } from '../time/fakeClock.ts';
import { servePage } from './support.ts';

interface Stage {
  readonly address?: string;
  readonly api?: StreamingPage;
  readonly onHardFail?: (error: Error) => void;
}

async function stage({ address: text = '0', api = () => plain(200, 'ok'), onHardFail }: Stage = {}) {
  const { log, lines } = keptLog();
  const clock = new FakeClock();
  const links: string[] = [];
  const address = parseUiAddress(text);
  if (!address) throw new Error(`${text} is no address`);
  const server = new UiServer({
    address,
    nodeName: 'node1',
    api,
    log,
    clock,
    onServing: (link) => links.push(link),
    ...(onHardFail && { onHardFail }),
  });
  onTestFinished(() => server.stop());
  await server.start();
  return { server, lines, clock, links };
}

describe('the link', () => {
  test.each([
    ['0', '127.0.0.1'],
    ['127.0.0.3:0', '127.0.0.3'],
    ['0.0.0.0:0', '127.0.0.1'],
    ['[::]:0', '127.0.0.1'],
  ])('of %s leads there, by the port that the kernel chose', async (address, host) => {
    const { server, links } = await stage({ address });
    expect(links).toEqual([`http://${host}:${server.port}/`]);
    expect(server.link).toBe(links[0]);
    expect((await ask(server.port, '/v1/status', { host })).body).toBe('ok');
  });

  test('has an IPv6 address in brackets', async (context) => {
    requireIpv6(context);
    const { server } = await stage({ address: '[::1]:0' });
    expect(server.link).toBe(`http://[::1]:${server.port}/`);
    expect((await ask(server.port, '/v1/status', { host: '::1' })).body).toBe('ok');
  });
});

describe('an address that another program has', () => {
  test('is tried again, and logged once', async () => {
    const held = await holdPort();
    const { server, lines, clock, links } = await stage({ address: `127.0.0.1:${held.port}` });
    for (let attempt = 0; attempt < 3; attempt++) {
      await clock.advance(5000);
      await eventually('the next attempt is planned', () => clock.pending === 1);
    }
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(`cannot serve the page at 127.0.0.1:${held.port}: listen EADDRINUSE`);
    expect([server.link, links]).toEqual([undefined, []]);
    await held.free();
    await clock.advance(5000);
    await eventually('it serves', () => links.length === 1);
    expect((await ask(server.port, '/v1/status')).body).toBe('ok');
  });

  test('is the end where that is asked for', async () => {
    const held = await holdPort();
    const failures: string[] = [];
    const onHardFail = (error: Error): void => void failures.push(error.message);
    const { clock } = await stage({ address: `127.0.0.1:${held.port}`, onHardFail });
    expect(failures).toHaveLength(1);
    expect(clock.pending).toBe(0);
    await held.free();
  });
});

describe('a client', () => {
  const connect = (port: number | undefined): Promise<Socket> =>
    new Promise((resolve, reject) => {
      const socket = createConnection({ host: '127.0.0.1', port: port ?? 0 }, () => resolve(socket));
      socket.once('error', reject);
    });

  test('may be one of a thousand that say nothing, or little by little', async () => {
    const { port } = await servePage();
    const sockets: Socket[] = [];
    for (let count = 0; count < 1000; count++) {
      const socket = await connect(port);
      socket.on('error', () => undefined).resume();
      if (count % 2 === 0) socket.write('GET / HTTP/1.1\r\nHost: localhost\r\nX: ');
      sockets.push(socket);
    }
    const drip = setInterval(() => sockets.forEach((socket) => socket.writable && socket.write('y')), 1000);
    onTestFinished(() => clearInterval(drip));
    expect((await ask(port, '/')).status).toBe(200);
    await eventually('their end', () => sockets.every(({ destroyed }) => destroyed), 150_000);
  }, 240_000);

  test('gets answers to requests that it sent at once, in their order', async () => {
    const { port } = await servePage();
    const paths = ['/v1/a', '/v1/b', '/v1/c', '/v1/d'];
    const requests = paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    const last = 'GET /v1/e HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';
    const reply = await askRaw(port, requests.join('') + last);
    expect(reply.match(/answer to \/v1\/./g)).toEqual([...paths, '/v1/e'].map((path) => `answer to ${path}`));
  });

  test('may ask a hundred times, one after the other, by one connection', async () => {
    const { port } = await servePage();
    const socket = await connect(port);
    let text = '';
    socket.setEncoding('latin1').on('data', (chunk) => (text += String(chunk)));
    for (let count = 1; count <= 100; count++) {
      socket.write('GET /v1/a HTTP/1.1\r\nHost: localhost\r\n\r\n');
      await eventually('an answer', () => text.split('answer to').length === count + 1);
    }
    expect(socket.destroyed).toBe(false);
    socket.destroy();
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
    const { server } = await stage({ api });
    const socket = await connect(server.port);
    socket.on('error', () => undefined).resume();
    for (let count = 0; count < 5; count++) socket.write('GET /v1/watch HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await eventually('all are asked', () => open === 5);
    socket.destroy();
    await eventually('all are ended', () => open === 0);
    const greedy = await connect(server.port);
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
    const { server } = await stage({ api });
    let [isOver, read] = [false, 0];
    const stalled = await connect(server.port);
    stalled.on('error', () => undefined).pause();
    const reading = await connect(server.port);
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
    const { server } = await stage({ api });
    let text = '';
    const socket = await connect(server.port);
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.setEncoding('latin1').on('data', (chunk) => (text += String(chunk)));
    socket.write('GET /v1/watch HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await eventually('the first line', () => text.includes('first'));
    stop.abort();
    await server.stop();
    await closed;
    // The last chunk of HTTP: nothing was cut off.
    expect(text.endsWith('\r\n0\r\n\r\n')).toBe(true);
  });
});

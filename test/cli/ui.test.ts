/** `junction ui`: the running proxy behind the page, and how the command ends. */
import { spawn } from 'node:child_process';
import type { ServerResponse } from 'node:http';
import { createServer } from 'node:net';
import { afterAll, afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { FULL_STATUS } from '../support/fullStatus.ts';
import { StubApi } from './stubApi.ts';
import { UiProgram } from './uiProgram.ts';

const stub = new StubApi();
const streams = new Set<ServerResponse>();

stub.answer('/v1/status', FULL_STATUS);
stub.respondWith('/v1/history', (_, response) => {
  const text = JSON.stringify(Array.from({ length: 500 }, (_unused, id) => ({ id, service: 'shop/web' })));
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': text.length });
  response.end(text);
});
stub.answer('/v1/explain/shop/none', { error: { code: 'no-such', message: 'no Service', hint: 'h' } }, 404);
stub.respondWith('/v1/services', (_, response) => {
  response.writeHead(200, { 'content-type': 'text/tab-separated-values; charset=utf-8', 'x-more': 'kept' });
  // A character in two pieces, and bytes that are no text.
  response.write(Buffer.from([0xc3]));
  setImmediate(() => response.end(Buffer.from([0xa4, 0xff, 0x00, 0x0a])));
});
stub.respondWith('/v1/watch', (_, response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.flushHeaders();
  streams.add(response);
  response.once('close', () => streams.delete(response));
});

beforeEach(() => stub.start());
afterEach(() => stub.stop());
afterAll(() => stub.remove());

const live = (): Promise<UiProgram> => UiProgram.serving([`--api-socket=${stub.socket}`]);

async function errorOf(response: Response): Promise<unknown> {
  return [response.status, ((await response.json()) as { readonly error: unknown }).error];
}

describe('the running proxy', () => {
  test('the link comes first, and is on this machine alone', async () => {
    const ui = await live();
    expect(ui.link).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/$/);
    expect(ui.out.split('\n')[1]).toBe(
      `${FULL_STATUS.node}, as the running proxy at ${stub.socket} has it. Ctrl-C: end.`,
    );
    const page = await ui.ask('/services/shop/web');
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(page.headers.get('content-security-policy')).toContain("script-src 'self'");
  });

  test('answers come as the proxy gives them, byte for byte', async () => {
    const ui = await live();
    const answer = await ui.ask('/v1/services?format=table');
    expect([...new Uint8Array(await answer.arrayBuffer())]).toEqual([0xc3, 0xa4, 0xff, 0x00, 0x0a]);
    expect(answer.headers.get('content-type')).toBe('text/tab-separated-values; charset=utf-8');
    expect(answer.headers.get('x-more')).toBe('kept');
    expect(await ui.json('/v1/status')).toEqual(FULL_STATUS);
  });

  test('what is long is compressed on the way', async () => {
    const ui = await live();
    const answer = await ui.ask('/v1/history', { headers: { 'accept-encoding': 'gzip' } });
    expect(answer.headers.get('content-encoding')).toBe('gzip');
    expect(await answer.json()).toHaveLength(500);
  });

  test('questions come as the page asks them', async () => {
    const ui = await live();
    await ui.ask(
      `/v1/explain?from=${encodeURIComponent('pod/a b/ü&x')}&to=${encodeURIComponent('[::1]:80')}`,
    );
    const asked = new URL(stub.asked.at(-1) ?? '', 'http://x');
    expect([asked.pathname, asked.searchParams.get('from'), asked.searchParams.get('to')]).toEqual([
      '/v1/explain',
      'pod/a b/ü&x',
      '[::1]:80',
    ]);
  });

  test('what it refuses is refused', async () => {
    const ui = await live();
    expect(await errorOf(await ui.ask('/v1/explain/shop/none'))).toEqual([
      404,
      { code: 'no-such', message: 'no Service', hint: 'h' },
    ]);
  });

  test('events come when they happen; a tab that closes ends its stream', async () => {
    const ui = await live();
    const events = await ui.watch();
    const first = events.next();
    await expect.poll(() => streams.size).toBe(1);
    for (const stream of streams) stream.write('data: {"kind":"sync"}\n\n');
    expect((await first).value).toEqual({ kind: 'sync' });
    await events.return(undefined);
    await expect.poll(() => streams.size).toBe(0);
  });

  test('a proxy that ends, and one that comes back', async () => {
    const ui = await live();
    const events = await ui.watch();
    const next = events.next();
    await expect.poll(() => streams.size).toBe(1);
    await stub.stop();
    await expect(next).rejects.toThrow('terminated');
    const [status, error] = (await errorOf(await ui.ask('/v1/status'))) as [
      number,
      { readonly code: string },
    ];
    expect([status, error.code]).toEqual([503, 'LOCAL_API_UNREACHABLE']);
    await stub.start();
    expect(await ui.json('/v1/status')).toEqual(FULL_STATUS);
    const again = (await ui.watch()).next();
    await expect.poll(() => streams.size).toBe(1);
    for (const stream of streams) stream.write('data: {"kind":"sync"}\n\n');
    expect((await again).value).toEqual({ kind: 'sync' });
  });

  test('none that answers', async () => {
    await stub.stop();
    const ui = new UiProgram([`--api-socket=${stub.socket}`]);
    expect(await ui.ended).toBe(1);
    expect(ui.out).toBe('');
    expect(ui.err).toMatch(/no Junction runs here.*LOCAL_API_UNREACHABLE[^]*what to do: Start it/);
  });
});

describe('its end', () => {
  test.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('%s: %i', async (signal, code) => {
    const ui = await live();
    ui.child.kill(signal);
    expect([await ui.ended, ui.err]).toEqual([code, '']);
  });

  test('another program has the port', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void other.close());
    const address = other.address();
    const port = typeof address === 'object' ? address?.port : 0;
    const ui = new UiProgram([`--api-socket=${stub.socket}`, `--ui-bind-address=127.0.0.1:${port}`]);
    expect(await ui.ended).toBe(1);
    expect(ui.err.split('\n')).toEqual([
      expect.stringMatching(
        new RegExp(
          `^junction: cannot serve the page at 127.0.0.1:${port}: .*in use.* \\(PAGE_NOT_SERVED\\)$`,
        ),
      ),
      expect.stringMatching(/what to do: .*--ui-bind-address.*ss -ltnp/),
      '',
    ]);
  });

  test.each([
    [['--ui-bind-address=here'], /--ui-bind-address "here" is not an address with a port/],
    [['a.json.gz', '--manifests=examples'], /a\.json\.gz is a second source beside --manifests/],
    [['--live', '--manifests=examples'], /--live and --manifests are 2 sources/],
    [['--ui-bind-address=0.0.0.0:0'], /printed to terminals alone/],
    [['--metrics-bind-address=x'], /no effect on this command/],
  ])('%j is a mistake', async (args, message) => {
    const ui = new UiProgram([`--api-socket=${stub.socket}`, ...args]);
    expect(await ui.ended).toBe(2);
    expect(ui.err).toMatch(message);
  });
});

describe('beyond loopback', () => {
  test('the link has the token behind #, where it is printed to a terminal', async () => {
    const program = new URL('../../bin/junction', import.meta.url).pathname;
    const command = `${process.execPath} ${program} ui --api-socket=${stub.socket} --ui-bind-address=0.0.0.0:0`;
    const terminal = spawn('script', ['-qfec', command, '/dev/null'], { stdio: ['pipe', 'pipe', 'inherit'] });
    onTestFinished(() => void terminal.kill('SIGKILL'));
    let out = '';
    terminal.stdout.on('data', (chunk: Buffer) => void (out += chunk.toString()));
    await expect.poll(() => out).toMatch(/Ctrl-C: end/);
    const [, link = '', token = ''] = /^(http:\/\/127\.0\.0\.1:\d+\/)#token=([\w-]{43})\r\n/.exec(out) ?? [];
    const statusWith = async (authorization: string): Promise<number> => {
      const answer = await fetch(`${link}v1/status`, { headers: { authorization } });
      await answer.text();
      return answer.status;
    };
    expect(await statusWith(`Bearer ${token}`)).toBe(200);
    expect(await statusWith(`Bearer ${token.slice(1)}`)).toBe(401);
  });
});

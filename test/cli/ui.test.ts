/** `junction ui`: the running proxy behind the page, how the command ends, and what it refuses. The daemon that comes and goes: test/e2e/uiCommand.test.ts. */
import { spawn } from 'node:child_process';
import type { ServerResponse } from 'node:http';
import { createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { FULL_STATUS } from '../support/fullStatus.ts';
import { junction } from './junction.ts';
import { StubApi } from './stubApi.ts';
import { UiProgram } from './uiProgram.ts';

const stub = new StubApi();
const streams = new Set<ServerResponse>();
const HISTORY = Array.from({ length: 500 }, (_, id) => ({ id, service: 'shop/web' }));
const NONE = { error: { code: 'no-such', message: 'no Service', hint: 'h' } };

beforeAll(async () => {
  stub.answer('/v1/status', FULL_STATUS);
  stub.answer('/v1/history', HISTORY);
  stub.answer('/v1/explain/shop/none', NONE, 404);
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
  await stub.start();
});
afterAll(() => stub.remove());

test('the page, and what the proxy answers, byte for byte; Ctrl-C ends it', async () => {
  const ui = await UiProgram.serving([`--api-socket=${stub.socket}`]);
  const page = await ui.ask('/services/shop/web');
  expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
  expect(page.headers.get('content-security-policy')).toContain("script-src 'self'");

  const answer = await ui.ask('/v1/services?format=table');
  expect([...new Uint8Array(await answer.arrayBuffer())]).toEqual([0xc3, 0xa4, 0xff, 0x00, 0x0a]);
  expect(answer.headers.get('content-type')).toBe('text/tab-separated-values; charset=utf-8');
  expect(answer.headers.get('x-more')).toBe('kept');

  expect(await ui.json('/v1/history')).toEqual(HISTORY);

  const question = new URLSearchParams({ from: 'pod/a b/ü&x', to: '[::1]:80' });
  await ui.ask(`/v1/explain?${question.toString()}`);
  const asked = new URL(stub.asked.at(-1) ?? '', 'http://x');
  expect([asked.pathname, Object.fromEntries(asked.searchParams)]).toEqual([
    '/v1/explain',
    Object.fromEntries(question),
  ]);

  const refused = await ui.ask('/v1/explain/shop/none');
  expect([refused.status, await refused.json()]).toEqual([404, NONE]);

  const events = await ui.watch();
  const first = events.next();
  await expect.poll(() => streams.size).toBe(1);
  for (const stream of streams) stream.write('data: {"kind":"sync"}\n\n');
  expect((await first).value).toEqual({ kind: 'sync' });
  await events.return(undefined);
  // A tab that closes ends its stream.
  await expect.poll(() => streams.size).toBe(0);

  ui.child.kill('SIGINT');
  expect([await ui.ended, ui.err]).toEqual([130, '']);
});

describe('it is not served', () => {
  test('where another program has the port', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void other.close());
    const address = other.address();
    const place = `127.0.0.1:${typeof address === 'object' ? address?.port : 0}`;
    const ui = await junction(
      'ui',
      '--manifests=examples',
      '--hostname-override=node1',
      `--ui-bind-address=${place}`,
    );
    expect(ui).toMatchObject({ code: 1, out: '' });
    expect(ui.err).toMatch(
      /^junction: cannot serve the page at 127.0.0.1:\d+: .*in use.* \(PAGE_NOT_SERVED\)\n {2}what to do: .*--ui-bind-address.*ss -ltnp.*\n$/,
    );
  });

  test.each<readonly [readonly string[], number, RegExp]>([
    [[], 1, /no Junction runs here.*LOCAL_API_UNREACHABLE[^]*what to do: Start it/],
    [['--manifests=/nowhere/none'], 1, /MANIFESTS_UNREADABLE/],
    [['package.json'], 1, /BUNDLE_UNREADABLE/],
    [['--ui-bind-address=here'], 2, /--ui-bind-address "here" is not an address with a port/],
    [['--live', '--manifests=examples'], 2, /--live and --manifests are 2 sources/],
    [['--ui-bind-address=0.0.0.0:0'], 2, /printed to terminals alone/],
    [['--metrics-bind-address=x'], 2, /no effect on this command/],
  ])('with %j', async (args, code, message) => {
    const ui = await junction('ui', '--api-socket=/nowhere/junction.sock', ...args);
    expect(ui).toEqual({ code, out: '', err: expect.stringMatching(message) as string });
  });
});

test('beyond loopback the link has a token behind #, where it is printed to a terminal', async () => {
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

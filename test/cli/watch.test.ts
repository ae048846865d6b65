/** `junction watch` as a program, beside a stub of the proxy: lines, filters, ends. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { WatchEvent } from '../../src/explain/types.ts';
import { StubApi } from './stubApi.ts';

const PROGRAM = new URL('../../bin/junction', import.meta.url).pathname;
const stub = new StubApi();
let watching: ServerResponse | undefined;

beforeAll(() => {
  stub.respondWith('/v1/watch', (_, response) => {
    response.writeHead(200, { 'content-type': 'application/x-ndjson' });
    response.flushHeaders();
    watching = response;
  });
});
beforeEach(() => stub.start());
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  await stub.stop();
});
afterAll(() => stub.remove());

type Child = ChildProcessByStdio<null, Readable, Readable>;
const children: Child[] = [];

class Watch {
  readonly child: Child;
  readonly ended: Promise<number | null>;
  out = '';
  err = '';

  constructor(...args: readonly string[]) {
    watching = undefined;
    const words = [PROGRAM, 'watch', `--api-socket=${stub.socket}`, ...args];
    this.child = spawn(process.execPath, words, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, TZ: 'UTC' },
    });
    children.push(this.child);
    this.child.stdout.on('data', (chunk: Buffer) => void (this.out += chunk.toString()));
    this.child.stderr.on('data', (chunk: Buffer) => void (this.err += chunk.toString()));
    this.ended = new Promise((resolve) => this.child.once('exit', resolve));
  }

  async until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      if (this.child.exitCode !== null) throw new Error(`it ended: ${this.out}${this.err}`);
      await sleep(10);
    }
  }
}

function send(...events: readonly WatchEvent[]): void {
  for (const event of events) watching?.write(`${JSON.stringify(event)}\n`);
}

const AT = Date.UTC(2026, 10, 16, 14, 3, 20, 123);
const CHANGE: WatchEvent = {
  kind: 'change',
  id: 7,
  family: 'IPv4',
  service: 'shop/web',
  causes: ['EndpointSlice shop/web-1: endpoint 10.1.0.7 not ready'],
  effects: ['shop/web:http/TCP: endpoint 10.1.0.7:80 removed from cluster'],
  seenAt: AT - 3,
  plannedAt: AT - 2,
  committedAt: AT,
};
const SYNC: WatchEvent = {
  kind: 'sync',
  at: AT,
  family: 'IPv6',
  sync: 'incremental',
  cause: 'EndpointSlice shop/web-1',
  commits: 1,
  objects: 1204,
  ms: 4.123,
};
const FOREIGN: WatchEvent = {
  kind: 'foreign',
  at: AT,
  family: 'IPv4',
  objects: ['chain nat KUBE-SERVICES'],
  program: 'iptables (pid 7)',
  repairedMs: 12.4,
};
const REFUSED: WatchEvent = {
  kind: 'refused',
  at: AT,
  family: 'IPv4',
  servicePort: 'bank/db:sql/TCP',
  error: 'No space left',
};

test('a line for each event', async () => {
  const watch = new Watch();
  await watch.until(() => watching !== undefined);
  send(CHANGE, SYNC, FOREIGN, REFUSED, { kind: 'conntrack', at: AT, family: 'IPv4', deleted: 1, ms: 0.84 });
  send({ kind: 'lost', at: AT, events: 2 });
  await watch.until(() => watch.out.split('\n').length > 6);
  expect(watch.out).toBe(
    [
      '14:03:20.123  IPv4  change    shop/web: EndpointSlice shop/web-1: endpoint 10.1.0.7 not ready → shop/web:http/TCP: endpoint 10.1.0.7:80 removed from cluster; written 3 ms after it was seen',
      '14:03:20.123  IPv6  sync      incremental, 1 commit, 1,204 objects in 4.1 ms: EndpointSlice shop/web-1',
      '14:03:20.123  IPv4  foreign   iptables (pid 7) changed chain nat KUBE-SERVICES; repaired in 12 ms',
      '14:03:20.123  IPv4  refused   the kernel refused bank/db:sql/TCP: No space left',
      '14:03:20.123  IPv4  conntrack deleted 1 stale flow in 0.8 ms',
      '14:03:20.123        lost      2 events lost: this reader was too slow',
      '',
    ].join('\n'),
  );
  watch.child.kill('SIGINT');
  expect(await watch.ended).toBe(130);
  expect(watch.err).toBe('');
});

test('only of some, as JSON', async () => {
  const watch = new Watch('-n', 'shop', '--output=json');
  await watch.until(() => watching !== undefined);
  send(REFUSED, SYNC, CHANGE, { kind: 'lost', at: AT, events: 2 });
  await watch.until(() => watch.out.split('\n').length > 2);
  const events = watch.out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as WatchEvent);
  expect(events).toEqual([CHANGE, { kind: 'lost', at: AT, events: 2 }]);
});

test('text from objects is escaped', async () => {
  const watch = new Watch();
  await watch.until(() => watching !== undefined);
  send({ ...REFUSED, error: 'evil \u001b[2J\u202e name' });
  await watch.until(() => watch.out.includes('\n'));
  expect(watch.out).toContain(String.raw`evil \u001b[2J\u202e name`);
});

test('a proxy that ends and comes back', async () => {
  const watch = new Watch();
  await watch.until(() => watching !== undefined);
  send(SYNC);
  await watch.until(() => watch.out.includes('sync'));
  await stub.stop();
  await watch.until(() => watch.err.includes('the proxy has ended; waiting for it\n'));
  watching = undefined;
  await stub.start();
  await watch.until(() => watching !== undefined);
  send(FOREIGN);
  await watch.until(() => watch.out.includes('foreign'));
  expect(watch.err.trim().split('\n')).toEqual([
    `junction: ${stub.socket}: the proxy has ended; waiting for it`,
    `junction: ${stub.socket}: the proxy answers again`,
  ]);
});

test('a reader that goes', async () => {
  const timer = setInterval(() => send(SYNC), 20);
  try {
    const child = spawn('sh', [
      '-c',
      `"$0" "$1" watch --api-socket=${stub.socket} | head -1`,
      process.execPath,
      PROGRAM,
    ]);
    let [out, err] = ['', ''];
    child.stdout.on('data', (chunk: Buffer) => void (out += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => void (err += chunk.toString()));
    const code = await new Promise((resolve) => child.once('close', resolve));
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out.split('\n')).toHaveLength(2);
  } finally {
    clearInterval(timer);
  }
});

test('too many watchers: what the proxy says', async () => {
  const busy = new StubApi();
  busy.answer('/v1/watch', { error: { code: 'busy', message: '64 clients watch already' } }, 503);
  await busy.start();
  // Not in this process: the stub has to answer meanwhile.
  const child = spawn(process.execPath, [PROGRAM, 'watch', `--api-socket=${busy.socket}`]);
  let err = '';
  child.stderr.on('data', (chunk: Buffer) => void (err += chunk.toString()));
  expect(await new Promise((resolve) => child.once('close', resolve))).toBe(1);
  expect(err).toContain('64 clients watch already (LOCAL_API_REFUSED)');
  await busy.remove();
});

/** `junction watch` as a program, beside a stub of the proxy: lines, filters, ends. */
import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { WatchEvent } from '../../src/explain/types.ts';
import { JUNCTION } from '../support/programs.ts';
import { junction } from './junction.ts';
import { Program } from './program.ts';
import { StubApi } from './stubApi.ts';

const stub = new StubApi();
let watching: ServerResponse | undefined;

beforeAll(() => {
  stub.respondWith('/v1/watch', (_, response) => {
    response.writeHead(200, { 'content-type': 'application/x-ndjson' });
    response.flushHeaders();
    watching = response;
  });
  return stub.start();
});
afterAll(() => stub.remove());

function started(...args: readonly string[]): Program {
  watching = undefined;
  return Program.junction('watch', `--api-socket=${stub.socket}`, ...args);
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
test('a line for each event that is asked for, as it comes; text from objects is escaped', async () => {
  const watch = started('-n', 'shop');
  await watch.until(() => watching !== undefined);
  send(SYNC, FOREIGN, { ...CHANGE, causes: ['evil \u001b[2J\u202e name'] });
  await watch.until(() => watch.out.includes('\n'));
  // What others are like: golden/watch.txt.
  expect(watch.out).toBe(
    String.raw`14:03:20.123  IPv4  change    shop/web: evil \u001b[2J\u202e name → shop/web:http/TCP: endpoint 10.1.0.7:80 removed from cluster; written 3 ms after it was seen` +
      '\n',
  );
  send({ kind: 'lost', at: AT, events: 2 });
  await watch.until(() => watch.out.endsWith('lost      2 events lost: this reader was too slow\n'));
  watch.child.kill('SIGINT');
  expect([await watch.ended, watch.err]).toEqual([130, '']);
});

test('a proxy that ends and comes back', async () => {
  const watch = started();
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
  onTestFinished(() => clearInterval(timer));
  const command = `"$0" "$1" watch --api-socket=${stub.socket} | head -1`;
  const piped = new Program(['sh', '-c', command, process.execPath, JUNCTION]);
  expect([await piped.ended, piped.err]).toEqual([0, '']);
  expect(piped.out.split('\n')).toHaveLength(2);
});

test('too many watchers: what the proxy says', async () => {
  const busy = new StubApi();
  busy.answer('/v1/watch', { error: { code: 'busy', message: '64 clients watch already' } }, 503);
  await busy.start();
  const { code, err } = await junction('watch', `--api-socket=${busy.socket}`);
  expect([code, err]).toEqual([1, expect.stringContaining('64 clients watch already (LOCAL_API_REFUSED)')]);
  await busy.remove();
});

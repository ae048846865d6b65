import { randomUUID } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type MetricsPageOptions, MetricsServer } from '../../../src/telemetry/http/metricsServer.ts';
import { CONTENT_TYPE } from '../../../src/telemetry/metrics/exposition.ts';
import { registerProxyMetrics } from '../../../src/telemetry/metrics/proxyMetrics.ts';
import { Registry } from '../../../src/telemetry/metrics/instruments.ts';
import { parseExposition } from '../metrics/parse.ts';
import { FakeClock } from '../../time/fakeClock.ts';
import { abandon, ask, keptLog, type Question, type Reply } from './support.ts';

function makeServer(more: Partial<MetricsPageOptions> = {}): MetricsServer {
  const registry = new Registry();
  const { sync_proxy_rules_last_queued_timestamp_seconds: queued } = registerProxyMetrics(
    registry,
    'nftables',
  );
  queued.set({ ip_family: 'IPv4' }, 1);
  return new MetricsServer({
    address: '127.0.0.1:0',
    log: keptLog().log,
    clock: new FakeClock(),
    mode: 'nftables',
    metrics: () => registry.print(),
    configz: () => ({}),
    flags: () => [],
    status: () => ({ startedAt: new Date(0), now: new Date(3_723_000), version: '1.2.3' }),
    ...more,
  });
}

const server = makeServer();
beforeAll(() => server.start());
afterAll(() => server.stop());
const get = (path: string, question?: Question): Promise<Reply> => ask(server.port, path, question);

describe('/metrics', () => {
  test.each([
    ['gzip', true],
    ['deflate, gzip;q=1.0', true],
    ['gzip;q=0', false],
    ['br', false],
  ])('accepting %s: zipped %s', async (accepted, zipped) => {
    const { headers, body } = await get('/metrics', { headers: { 'accept-encoding': accepted } });
    expect(headers['content-encoding']).toBe(zipped ? 'gzip' : undefined);
    const text = zipped ? gunzipSync(Buffer.from(body, 'latin1')).toString() : body;
    expect(parseExposition(text)).toHaveLength(5);
  });
});

test('/metrics/slis counts the health checks; DELETE forgets them', async () => {
  const own = makeServer();
  await own.start();
  expect((await ask(own.port, '/metrics/slis')).body).toBe('');
  await ask(own.port, '/healthz');
  await ask(own.port, '/healthz/ping');
  const slis = await ask(own.port, '/metrics/slis');
  expect(slis.headers['content-type']).toBe(CONTENT_TYPE);
  expect(slis.body).toContain('kubernetes_healthcheck{name="ping",type="healthz"} 1\n');
  expect(slis.body).toContain(
    'kubernetes_healthchecks_total{name="ping",status="success",type="healthz"} 1\n',
  );
  const reset = await ask(own.port, '/metrics/slis', { method: 'DELETE' });
  expect([reset.status, reset.body]).toEqual([200, 'metrics reset\n']);
  expect((await ask(own.port, '/metrics/slis')).body).toBe('');
  expect((await ask(own.port, '/metrics/slis', { method: 'POST' })).status).toBe(405);
  await own.stop();
});

test.each(['/metrics', '/configz', '/proxyMode'])('%s only reads', async (path) => {
  const { status, headers } = await get(path, { method: 'DELETE' });
  expect([status, headers.allow]).toEqual([405, 'GET, HEAD']);
});

describe('with profiling', () => {
  const levels: number[] = [];
  const open = makeServer({ debug: { setVerbosity: (level) => levels.push(level) } });
  const debug = (path: string, question?: Question): Promise<Reply> =>
    ask(open.port, `/debug${path}`, question);
  beforeAll(() => open.start());
  afterAll(() => open.stop());

  test('the index says what kind of profiles these are', async () => {
    const { status, headers, body } = await debug('/pprof/');
    expect(status).toBe(200);
    expect(headers['content-type']).toBe('text/html; charset=utf-8');
    expect(body).toContain('not of Go');
    expect((await debug('/flags')).status).toBe(200);
  });

  test('a CPU profile, and no second one at the same time', async () => {
    const [first, second] = await Promise.all([
      debug('/pprof/profile?seconds=1.5'),
      debug('/pprof/profile?seconds=1.5'),
    ]);
    expect([first.status, second.status].sort()).toEqual([200, 409]);
    const profile: unknown = JSON.parse(first.status === 200 ? first.body : second.body);
    expect(profile).toHaveProperty('nodes');
    expect(profile).toHaveProperty('samples');
    expect((await debug('/pprof/profile?seconds=0.01')).headers['content-disposition']).toContain(
      '.cpuprofile',
    );
  });

  test('the heap and allocations: who made them, and nothing of what is in them', async () => {
    // As a token is: a text that stays in memory, and one that is made meanwhile.
    const secret = ['bearer', randomUUID()].join('-');
    const made: string[] = [];
    for (const page of ['heap', 'allocs']) {
      const asked = debug(`/pprof/${page}?seconds=0.3`);
      for (let count = 0; count < 20_000; count++) made.push(`${secret}-${count}`);
      const { status, headers, body } = await asked;
      expect(status).toBe(200);
      expect(headers['content-disposition']).toContain('.heapprofile');
      expect(JSON.parse(body)).toHaveProperty('head');
      expect(body).not.toContain(secret);
    }
    expect(made.length).toBe(40_000);
  });

  test('of the heap, one profile at a time', async () => {
    const asked = ['heap', 'allocs'].map((page) => debug(`/pprof/${page}?seconds=1.5`));
    expect((await Promise.all(asked)).map(({ status }) => status).sort()).toEqual([200, 409]);
  });

  test.each(['0', '-1', 'x', '1e9', '601', ''])('seconds=%s is refused', async (seconds) => {
    expect((await debug(`/pprof/profile?seconds=${seconds}`)).status).toBe(400);
  });

  test('a client that goes away leaves the profiler free', async () => {
    await abandon(open.port, '/debug/pprof/profile?seconds=60');
    await expect.poll(async () => (await debug('/pprof/profile?seconds=0.01')).status).toBe(200);
  });

  test('PUT /debug/flags/v', async () => {
    const good = await debug('/flags/v', { method: 'PUT', body: '4' });
    expect(good).toMatchObject({ status: 200, body: 'successfully set klog.logging.verbosity to 4\n' });
    expect(levels).toEqual([4]);
    for (const body of ['four', '', '9'.repeat(100)]) {
      expect((await debug('/flags/v', { method: 'PUT', body })).status).toBe(400);
    }
    expect(await debug('/flags/v')).toMatchObject({ status: 406, body: 'unsupported http method\n' });
    expect(levels).toEqual([4]);
  });
});

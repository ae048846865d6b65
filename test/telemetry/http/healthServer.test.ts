import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { HealthServer, HealthState, type ResourceHealth } from '../../../src/telemetry/http/health.ts';
import { printTime } from '../../../src/telemetry/http/timestamp.ts';
import { FakeClock } from '../../time/fakeClock.ts';
import { ask, FakeMoments, keptLog } from './support.ts';

class Stage {
  readonly moments = new FakeMoments();
  resources: readonly ResourceHealth[] = [];
  readonly state = new HealthState({
    syncPeriodMs: 30_000,
    now: this.moments.now,
    resources: () => this.resources,
  });
  readonly counted: string[] = [];
  readonly server = new HealthServer({
    address: '127.0.0.1:0',
    log: keptLog().log,
    clock: new FakeClock(),
    state: this.state,
    // Each reading of the clock takes a while, as in life.
    now: () => {
      this.moments.advance(0.000_05);
      return this.moments.now();
    },
    counter: (probe, code) => this.counted.push(`${probe} ${code}`),
  });

  constructor() {
    this.state.updated('IPv4');
    this.moments.advance(0.24);
    this.state.updated('IPv6');
    this.moments.advance(5);
    this.state.nodeEligible = true;
  }
}

/** The texts of a test are in UTC; the server speaks in the zone of the process. */
function zoned(body: string): string {
  return body.replaceAll(/"(2026[^"]*)Z"/g, (_, time: string) => {
    const [whole = '', fraction = ''] = time.split('.');
    const wallNs = BigInt(Date.parse(`${whole}Z`)) * 1_000_000n + BigInt(fraction.padEnd(9, '0'));
    return JSON.stringify(printTime({ wallNs, steadyNs: 0n }));
  });
}

describe('/healthz and /livez', () => {
  let stage: Stage;
  beforeEach(async () => {
    stage = new Stage();
    await stage.server.start();
  });
  afterEach(() => stage.server.stop());

  test('healthy: the bytes that kube-proxy sends', async () => {
    const { status, headers, body } = await ask(stage.server.port, '/healthz');
    expect(status).toBe(200);
    expect(body).toBe(
      zoned(
        '{"lastUpdated":"2026-11-15T03:35:35.24005Z","currentTime":"2026-11-15T03:35:35.24Z","nodeEligible":true,"healthy":true,"status":{"IPv4":{"lastUpdated":"2026-11-15T03:35:30Z","healthy":true},"IPv6":{"lastUpdated":"2026-11-15T03:35:30.24Z","healthy":true}}}',
      ),
    );
    expect(headers['content-type']).toBe('application/json');
    expect(headers['x-content-type-options']).toBe('nosniff');
    expect(headers['content-length']).toBe(String(body.length));
  });

  test('/livez does not speak of the node', async () => {
    const { status, body } = await ask(stage.server.port, '/livez');
    expect(status).toBe(200);
    expect(body).toMatch(/^\{"lastUpdated":"[^"]+","currentTime":"[^"]+","healthy":true,"status":\{"IPv4":/);
  });

  test('a node that goes away: 503 for load balancers, though the proxy is well', async () => {
    stage.state.nodeEligible = false;
    const healthz = await ask(stage.server.port, '/healthz');
    expect(healthz.status).toBe(503);
    expect(healthz.body).toContain(
      zoned('{"lastUpdated":"2026-11-15T03:35:30.24Z","currentTime":"2026-11-15T03:35:35.24Z",'),
    );
    expect(healthz.body).toContain('"nodeEligible":false,"healthy":true,');
    expect((await ask(stage.server.port, '/livez')).status).toBe(200);
    expect(stage.counted).toEqual(['healthz 503', 'livez 200']);
  });

  test('a late family: 503 everywhere until that family is done', async () => {
    stage.state.queued('IPv6');
    stage.moments.advance(60);
    const late = await ask(stage.server.port, '/livez');
    expect(late.status).toBe(503);
    expect(late.body).toContain('"healthy":false,"status":{"IPv4":{');
    stage.state.updated('IPv4');
    expect((await ask(stage.server.port, '/healthz')).status).toBe(503);
    stage.state.updated('IPv6');
    expect((await ask(stage.server.port, '/healthz')).status).toBe(200);
    expect(stage.counted).toEqual(['livez 503', 'healthz 503', 'healthz 200']);
  });

  test('a family that is left out is named; it is a 503 for load balancers where nobody could ask', async () => {
    stage.state.leftOut('IPv6', { reason: 'no nat table', isAnswered: true });
    const known = await ask(stage.server.port, '/healthz');
    expect(known.status).toBe(200);
    expect(known.body).toMatch(/"leftOut":\{"IPv6":\{"since":"[^"]+","reason":"no nat table"\}\}\}$/);
    stage.state.leftOut('IPv6', { reason: 'the lock is held', isAnswered: false });
    expect((await ask(stage.server.port, '/healthz')).status).toBe(503);
    expect((await ask(stage.server.port, '/livez')).status).toBe(200);
    expect((await ask(stage.server.port, '/readyz')).body).toContain('[-]IPv6 failed: the lock is held');
  });

  test('a resource that was never listed: 503 for load balancers, with the reason; no reason to restart', async () => {
    const failing = { resource: 'services', hasListed: false, since: '2026-11-15T03:00:00Z', reason: 'no' };
    stage.resources = [failing, { resource: 'nodes', hasListed: true }];
    const healthz = await ask(stage.server.port, '/healthz');
    expect(healthz.status).toBe(503);
    const detail = '"services":{"hasListed":false,"since":"2026-11-15T03:00:00Z","reason":"no"}';
    expect(healthz.body.endsWith(`,"resources":{${detail}}}`)).toBe(true);
    const livez = await ask(stage.server.port, '/livez');
    expect(livez.status).toBe(200);
    expect(livez.body).toContain(detail);
    const readyz = await ask(stage.server.port, '/readyz');
    expect([readyz.status, readyz.body]).toEqual([
      503,
      '[-]services failed: never listed since 2026-11-15T03:00:00Z: no\n[+]nodes ok\n[+]IPv4 ok\n[+]IPv6 ok\nreadyz check failed\n',
    ]);
  });

  test('a resource that was listed and cannot be watched: the node serves on, and says so', async () => {
    const since = '2026-11-15T03:00:00Z';
    stage.resources = [{ resource: 'services', hasListed: true, since, reason: 'refused' }];
    const healthz = await ask(stage.server.port, '/healthz');
    expect(healthz.status).toBe(200);
    expect(healthz.body).toContain('"resources":{"services":{"hasListed":true,"since":');
    expect(await ask(stage.server.port, '/readyz')).toMatchObject({ status: 200, body: 'ok' });
    const verbose = await ask(stage.server.port, '/readyz?verbose');
    expect(verbose.body).toContain(`[+]services ok (cannot be watched since ${since}: refused)`);
  });

  test('any method is answered; HEAD without the body', async () => {
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
      expect((await ask(stage.server.port, '/healthz?x=1', { method })).status).toBe(200);
    }
    const head = await ask(stage.server.port, '/livez', { method: 'HEAD' });
    expect(head.body).toBe('');
    expect(Number(head.headers['content-length'])).toBeGreaterThan(100);
  });

  test.each(['/', '/healthz/', '/healthz/ping', '/metrics'])('%s is not there', async (path) => {
    const { status, headers, body } = await ask(stage.server.port, path);
    expect([status, body]).toEqual([404, '404 page not found\n']);
    expect(headers['content-type']).toBe('text/plain; charset=utf-8');
    expect(stage.counted).toEqual([]);
  });
});

test('before anybody has reported: no status, and a time that never was', async () => {
  const moments = new FakeMoments();
  const state = new HealthState({ syncPeriodMs: 30_000, now: moments.now });
  const { log } = keptLog();
  const options = { address: '127.0.0.1:0', log, clock: new FakeClock(), state, now: moments.now };
  const server = new HealthServer(options);
  await server.start();
  const { status, body } = await ask(server.port, '/healthz');
  expect(status).toBe(503);
  expect(body).toBe(
    zoned(
      '{"lastUpdated":"0001-01-01T00:00:00Z","currentTime":"2026-11-15T03:35:30Z","nodeEligible":false,"healthy":true}',
    ),
  );
  await server.stop();
});

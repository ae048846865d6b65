/** What the health port says, from what happens to the families, the node and the resources. */
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Family } from '../../../src/model/ip.ts';
import { HealthServer, HealthState, type ResourceHealth } from '../../../src/telemetry/http/health.ts';
import { printTime } from '../../../src/telemetry/http/timestamp.ts';
import { FakeClock } from '../../time/fakeClock.ts';
import { ask, FakeMoments, keptLog, type Question, type Reply } from './support.ts';

const SINCE = '2026-11-15T03:00:00Z';
const NEVER_LISTED = { resource: 'services', hasListed: false, since: SINCE, reason: 'no' };

interface Stage {
  readonly moments: FakeMoments;
  readonly counted: readonly string[];
  readonly get: (path: string, question?: Question) => Promise<Reply>;
}

/**
 * A story in words: `4 updated`, `6 queued`, `6 absent`, `6 unknown`, `node here`, `services listed`; `+60` seconds pass.
 * Readings of the clock take `readingS`.
 */
async function serve(story: string, readingS = 0): Promise<Stage> {
  const moments = new FakeMoments();
  let resources: readonly ResourceHealth[] = [];
  const state = new HealthState({ syncPeriodMs: 30_000, now: moments.now, resources: () => resources });
  const counted: string[] = [];
  for (const part of story.split(', ').filter(Boolean)) {
    const [head = '', what = ''] = part.split(' ');
    const family: Family = head === '4' ? 'IPv4' : 'IPv6';
    if (head.startsWith('+')) moments.advance(Number(head.slice(1)));
    else if (head === 'node') state.nodeEligible = what === 'here';
    else if (head === 'services')
      resources = [
        { ...NEVER_LISTED, hasListed: what === 'listed' },
        { resource: 'nodes', hasListed: true },
      ];
    else if (what === 'queued') state.queued(family);
    else if (what === 'updated') state.updated(family);
    else state.leftOut(family, { reason: `it is ${what}`, isAnswered: what === 'absent' });
  }
  const server = new HealthServer({
    address: '127.0.0.1:0',
    log: keptLog().log,
    clock: new FakeClock(),
    state,
    now: () => {
      moments.advance(readingS);
      return moments.now();
    },
    counter: (probe, code) => counted.push(`${probe} ${code}`),
  });
  await server.start();
  onTestFinished(() => server.stop());
  return { moments, counted, get: (path, question) => ask(server.port, path, question) };
}

/** The texts of a test are in UTC; the server speaks in the zone of the process. */
function zoned(body: string): string {
  return body.replaceAll(/"(2026[^"]*)Z"/g, (_, time: string) => {
    const [whole = '', fraction = ''] = time.split('.');
    const wallNs = BigInt(Date.parse(`${whole}Z`)) * 1_000_000n + BigInt(fraction.padEnd(9, '0'));
    return JSON.stringify(printTime({ wallNs, steadyNs: 0n }));
  });
}

const BOTH = '4 updated, 6 updated, node here';

/** `4 -6`: IPv4 is healthy, IPv6 is not. */
test.each([
  ['', '', 'nobody has reported'],
  ['4 updated', '4', 'a family that has begun'],
  ['4 updated, +86400', '4', 'nothing to do, all day'],
  ['4 updated, 4 queued, +59.999999999', '4', 'a change waits, not yet too long'],
  ['4 updated, 4 queued, +60', '-4', 'twice the sync period is too long'],
  ['4 updated, 4 queued, +40, 4 queued, +20', '-4', 'the oldest change counts'],
  ['4 updated, 4 queued, +60, 4 updated', '4', 'it was late, and made it'],
  ['4 updated, 4 queued, +40, 4 updated, 4 queued, +59', '4', 'each wait by itself'],
  ['4 queued, +3600', '', 'a family that never reported does not count'],
  ['4 queued, +3600, 4 updated', '4', 'what waited before the first report is done'],
  ['4 updated, 6 queued, +3600', '4', 'even if the other has'],
  [
    '4 updated, 6 updated, 6 queued, +60, 4 queued, 4 updated',
    '4 -6',
    'one family is late; the other does not help',
  ],
  ['4 updated, 6 updated, 6 queued, +60, 4 updated, 6 updated', '4 6', 'until the late one is done'],
  ['4 updated, 6 updated, 4 queued, 6 queued, +60', '-4 -6', 'both are late'],
])('%s: %s (%s)', async (story, expected) => {
  const { get, counted } = await serve(`${story}, node here`);
  const health = await get('/healthz');
  const { status = {} } = JSON.parse(health.body) as { status?: Record<string, { healthy: boolean }> };
  const families = Object.entries(status).map(([name, { healthy }]) => `${healthy ? '' : '-'}${name.at(-1)}`);
  expect(families.join(' ')).toBe(expected);
  const code = expected.includes('-') ? 503 : 200;
  expect([health.status, (await get('/livez')).status]).toEqual([code, code]);
  expect(counted).toEqual([`healthz ${code}`, `livez ${code}`]);
});

describe('/healthz', () => {
  test('healthy: the bytes that kube-proxy sends', async () => {
    // Each reading of the clock takes a while, as in life.
    const { get } = await serve('4 updated, +0.24, 6 updated, +5, node here', 0.000_05);
    const { status, headers, body } = await get('/healthz');
    expect([status, body]).toEqual([
      200,
      zoned(
        '{"lastUpdated":"2026-11-15T03:35:35.24005Z","currentTime":"2026-11-15T03:35:35.24Z","nodeEligible":true,"healthy":true,"status":{"IPv4":{"lastUpdated":"2026-11-15T03:35:30Z","healthy":true},"IPv6":{"lastUpdated":"2026-11-15T03:35:30.24Z","healthy":true}}}',
      ),
    ]);
    expect(headers['content-type']).toBe('application/json');
    expect(headers['x-content-type-options']).toBe('nosniff');
    expect(headers['content-length']).toBe(String(body.length));
    expect((await get('/livez')).body).toMatch(
      /^\{"lastUpdated":"[^"]+","currentTime":"[^"]+","healthy":true,"status":\{"IPv4":/,
    );
  });

  test('before anybody has reported: no status, and a time that never was', async () => {
    const { status, body } = await (await serve('')).get('/healthz');
    expect([status, body]).toEqual([
      503,
      zoned(
        '{"lastUpdated":"0001-01-01T00:00:00Z","currentTime":"2026-11-15T03:35:30Z","nodeEligible":false,"healthy":true}',
      ),
    ]);
  });

  test('unhealthy: the time of the newest update of all families', async () => {
    const { get } = await serve('+1, 6 updated, +1, 4 updated, +1, node gone');
    expect((await get('/healthz')).body).toContain(
      zoned(
        '{"lastUpdated":"2026-11-15T03:35:32Z","currentTime":"2026-11-15T03:35:33Z","nodeEligible":false,',
      ),
    );
  });

  /** Status of /healthz, /livez and /readyz; in all of them, or in /readyz alone, is said why. */
  test.each<[string, string, codes: readonly number[], why: RegExp, ready: string]>([
    ['a node that goes away', 'node gone', [503, 200, 200], /"nodeEligible":false,"healthy":true,/, 'ok'],
    [
      'a family that the machine does not have, since then',
      '6 absent, +60, 6 absent',
      [200, 200, 200],
      /"leftOut":\{"IPv6":\{"since":"[^"]+:30[^:"]*:?\d*","reason":"it is absent"\}\}\}$/,
      'ok',
    ],
    [
      'a family that nobody could ask for',
      '6 unknown',
      [503, 200, 503],
      /"reason":"it is unknown"/,
      '[-]IPv6 failed: it is unknown',
    ],
    [
      'a family that was left out and is served',
      '6 unknown, 6 updated',
      [200, 200, 200],
      /^(?!.*leftOut)/,
      'ok',
    ],
    [
      'a resource that was never listed: no reason to restart',
      'services unlisted',
      [503, 200, 503],
      /,"resources":\{"services":\{"hasListed":false,"since":"2026-11-15T03:00:00Z","reason":"no"\}\}\}$/,
      '[-]services failed: never listed since 2026-11-15T03:00:00Z: no\n[+]nodes ok\n[+]IPv4 ok\n[+]IPv6 ok\nreadyz check failed\n',
    ],
    [
      'a resource that was listed and cannot be watched: the node serves on',
      'services listed',
      [200, 200, 200],
      /"resources":\{"services":\{"hasListed":true,"since":/,
      'ok',
    ],
  ])('%s', async (_, story, codes, why, ready) => {
    const { get } = await serve(`${BOTH}, ${story}`);
    const answers = await Promise.all(['/healthz', '/livez', '/readyz'].map((path) => get(path)));
    expect(answers.map(({ status }) => status)).toEqual(codes);
    expect(answers[0]?.body).toMatch(why);
    expect(answers[2]?.body).toContain(ready);
    if (story === 'services listed')
      expect((await get('/readyz?verbose')).body).toContain(
        `[+]services ok (cannot be watched since ${SINCE}: no)`,
      );
  });
});

test('the steady clock decides: a clock that is set makes nobody late', () => {
  let wallNs = 0n;
  const state = new HealthState({ syncPeriodMs: 30_000, now: () => ({ wallNs, steadyNs: 0n }) });
  state.updated('IPv4');
  state.queued('IPv4');
  wallNs = 10n ** 15n;
  expect(state.isHealthy()).toBe(true);
});

test('any method is answered; HEAD without the body', async () => {
  const { get } = await serve(BOTH);
  for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS'])
    expect((await get('/healthz?x=1', { method })).status).toBe(200);
  const head = await get('/livez', { method: 'HEAD' });
  expect(head.body).toBe('');
  expect(Number(head.headers['content-length'])).toBeGreaterThan(100);
});

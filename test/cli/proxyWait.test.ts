/** When a clean-up may begin: no Junction, and another proxy that has written its rules. */
import { describe, expect, test } from 'vitest';
import { waitForProxy } from '../../src/cli/proxyWait.ts';
import { FakeClock } from '../time/fakeClock.ts';

const HEALTH = 'http://127.0.0.1:10256/healthz';
const LIVE = 'http://127.0.0.1:10256/livez';
const METRICS = 'http://127.0.0.1:10249/metrics';

/** Stands for a Junction that runs; its text is what it says of itself. */
const JUNCTION = 'junction';

type Answers = Readonly<Record<string, readonly [status: number, text?: string]>>;

function times(queued: Readonly<Record<string, number>>, synced: Readonly<Record<string, number>>): string {
  const lines = (name: string, of: Readonly<Record<string, number>>): readonly string[] =>
    Object.entries(of).map(([family, at]) => `${name}{ip_family="${family}"} ${at}`);
  return [
    '# TYPE kubeproxy_sync_proxy_rules_last_timestamp_seconds gauge',
    ...lines('kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds', queued),
    ...lines('kubeproxy_sync_proxy_rules_last_timestamp_seconds', synced),
    '',
  ].join('\n');
}

const SYNCED = times({ IPv4: 1.79e9, IPv6: 1.79e9 }, { IPv4: 1.79e9, IPv6: 1.79e9 });

/** Longer than any of these waits. */
const MOST_MS = 120_000;

/** Each entry is what holds in one second; the last one holds from then on. */
async function waited(
  seconds: readonly Answers[],
  { timeoutMs = 0, metrics = '0.0.0.0:10249' } = {},
): Promise<{ readonly after: number; readonly said: readonly string[]; readonly failure?: unknown }> {
  const clock = new FakeClock();
  const start = clock.now();
  const now = () => seconds[Math.min(Math.floor((clock.now() - start) / 1000), seconds.length - 1)];
  const said: string[] = [];
  const run = waitForProxy(
    { err: (text) => said.push(text.trimEnd()) },
    { health: '127.0.0.1:10256', metrics, timeoutMs },
    {
      clock,
      get: (url) => {
        const [status, text = ''] = now()?.[url] ?? [];
        return Promise.resolve(status === undefined ? undefined : { status, text });
      },
      findHolder: () => {
        const text = now()?.[JUNCTION]?.[1];
        return Promise.resolve(text === undefined ? undefined : { text, isImpostor: false });
      },
    },
  ).then(
    () => ({ after: Math.floor((clock.now() - start) / 1000), said }),
    (failure: unknown) => ({ after: Math.floor((clock.now() - start) / 1000), said, failure }),
  );
  await clock.advance(MOST_MS);
  return run;
}

const READY: Answers = { [HEALTH]: [200], [METRICS]: [200, SYNCED] };

describe('a clean-up waits', () => {
  test('not at all for a proxy that serves', async () => {
    expect(await waited([READY])).toEqual({ after: 0, said: [] });
  });

  test('for a Junction to end, and for a proxy to answer', async () => {
    const { after, said } = await waited([
      { ...READY, [JUNCTION]: [200, 'pid 7'] },
      { ...READY, [JUNCTION]: [200, 'pid 7'] },
      {},
      { [HEALTH]: [503] },
      READY,
    ]);
    expect(after).toBe(4);
    expect(said).toEqual([
      'note: waiting: a Junction runs here: pid 7',
      'note: waiting: no service proxy answers at 127.0.0.1:10256',
      'note: waiting: the service proxy at 127.0.0.1:10256 is not healthy: it answers 503',
    ]);
  });

  test('for the rules of each family that has started: healthy it is before', async () => {
    const { after, said } = await waited([
      { [HEALTH]: [200], [METRICS]: [200, ''] },
      { [HEALTH]: [200], [METRICS]: [200, times({ IPv4: 5, IPv6: 5 }, {})] },
      { [HEALTH]: [200], [METRICS]: [200, times({ IPv4: 5, IPv6: 5 }, { IPv4: 6 })] },
      { [HEALTH]: [200], [METRICS]: [200, times({ IPv4: 5, IPv6: 5 }, { IPv4: 6, IPv6: 7 })] },
    ]);
    expect(after).toBe(3);
    expect(said).toEqual([
      'note: waiting: the service proxy at 127.0.0.1:10249 has not written its rules yet',
    ]);
  });

  test('not longer on a node that is about to be deleted', async () => {
    const leaving: Answers = { [HEALTH]: [503], [LIVE]: [200], [METRICS]: [200, SYNCED] };
    expect(await waited([leaving])).toEqual({ after: 0, said: [] });
  });

  test.each(['0.0.0.0:10249', ''])(
    'half a minute of health where there are no metrics: %j',
    async (metrics) => {
      const { after, said } = await waited([{ [HEALTH]: [200] }, {}, { [HEALTH]: [200] }], { metrics });
      expect(after).toBe(32);
      expect(said[0]).toMatch(/its metrics, .* are not found .*: 30 s of health stand in for them$/);
    },
  );

  test('until the time is over, and says what was missing', async () => {
    const { after, failure } = await waited([{}], { timeoutMs: 5000 });
    expect(after).toBe(5);
    expect(failure).toMatchObject({
      code: 'NO_OTHER_PROXY',
      message: 'no other service proxy has taken over this node: no service proxy answers at 127.0.0.1:10256',
    });
  });
});

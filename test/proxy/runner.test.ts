/** When a family syncs, what it asks its writer for, and what the log says of it. */
import { describe, expect, test } from 'vitest';
import { FAMILIES } from '../../src/model/ip.ts';
import { BoundedRunner } from '../../src/proxy/boundedRunner.ts';
import { DualStackProxier } from '../../src/proxy/dualStackProxier.ts';
import { node, service, slice } from '../plan/given.ts';
import { FakeClock, settle } from '../time/fakeClock.ts';
import { FakeLog } from './fakes.ts';
import { FULL, NOTHING, type Run, Stage } from './stage.ts';

const FAILS: Run = { report: new Error('lock') };
const wants = (retryAfterMs: number | undefined): Run => ({ report: { retryAfterMs } });

/** Seconds; a request with `!` is urgent. */
const TIMES: readonly (readonly [title: string, requests: string, runs: readonly Run[], began: string])[] = [
  ['nothing without a request', '', [], ''],
  ['the first request at once', '5', [], '5'],
  ['a second request after a second of rest', '0 0.1', [], '0 1'],
  ['counted from the end of a sync', '0 0.5', [{ ms: 400 }], '0 1.4'],
  ['requests during the rest fold into one', '0 0.1 0.2 0.3', [], '0 1'],
  ['requests during a sync fold into one', '0 0.1 1.9', [{ ms: 2000 }], '0 3'],
  ['after a rest at once', '0 5', [], '0 5'],
  ['a steady stream', '0 0.5 1.5 2.5 3.5', [], '0 1 2 3 4'],
  ['again when the mode wants it', '0', [wants(5000), wants(2000), {}], '0 5 7'],
  ['as the last sync wants it', '0 2', [wants(5000), {}], '0 2'],
  ['at once when it stopped for a change', '0', [{ ms: 400, report: { isUnfinished: true } }, {}], '0 0.4'],
  ['not sooner than it may', '0', [wants(10), {}], '0 1'],
  ['a failure is repeated after the sync period', '0', [FAILS, FAILS, {}], '0 30 60'],
  ['success cancels the repetition', '0 10', [FAILS, {}], '0 10'],
  ['what is urgent at once', '0 0.1! 0.3!', [], '0 0.1 0.3'],
  ['what is urgent as soon as the sync under way has ended', '0 0.1!', [{ ms: 400 }], '0 0.4'],
  ['what is not urgent still waits', '0 0.1! 0.2', [], '0 0.1 1.1'],
  [
    'what is urgent without end: five times, then as everything else',
    '0 0.01! 0.02! 0.03! 0.04! 0.05! 0.06! 0.07! 0.5! 1.05!',
    [],
    '0 0.01 0.02 0.03 0.04 0.05 1.011 2.011',
  ],
];

test.each(TIMES)('it syncs: %s', async (_, requests, runs, began) => {
  const stage = new Stage({ runs });
  for (const word of requests.split(' ').filter(Boolean)) {
    await stage.pass(Number.parseFloat(word) - stage.clock.now() / 1000);
    stage.runner.request(undefined, word.endsWith('!'));
    await settle();
  }
  await stage.pass(100);
  expect(stage.began.join(' ')).toBe(began);
});

/** Of the runner below it: no mode gives a burst. */
test.each([
  [
    [0, 10, 20],
    [0, 10, 1000],
  ],
  [
    [0, 10, 5000, 5010, 5020],
    [0, 10, 5000, 5010, 6000],
  ],
])('with a burst of two, requests at %j are runs at %j', async (requests, expected) => {
  const clock = new FakeClock();
  const began: number[] = [];
  const runner = new BoundedRunner({
    minIntervalMs: 1000,
    maxIntervalMs: 3_600_000,
    retryIntervalMs: 30_000,
    burst: 2,
    clock,
    run: async () => void began.push(clock.now()),
  });
  runner.start();
  for (const at of requests) {
    await clock.advance(at - clock.now());
    runner.request();
  }
  await clock.advance(10_000);
  expect(began).toEqual(expected);
});

describe('it syncs', () => {
  test('without a rest where none is wanted', async () => {
    const stage = new Stage({ minSyncPeriodMs: 0 });
    for (let request = 0; request < 3; request++) {
      stage.runner.request();
      await stage.pass(0.001);
    }
    expect(stage.syncs).toBe(3);
  });

  test('not before the first full picture', async () => {
    const stage = new Stage({ isListing: true });
    stage.runner.request();
    stage.runner.requestFull();
    stage.tell('a/b 10.96.0.1 80');
    await stage.pass(10);
    expect(stage.syncs).toBe(0);
    stage.proxy.onSynced();
    stage.runner.request();
    await settle();
    expect(stage.writer.syncs).toEqual([['a/b/TCP']]);
  });

  test('one at a time; stop waits for it, and none follows', async () => {
    const stage = new Stage({ runs: [{ ms: 500 }] });
    stage.runner.request();
    await stage.pass(0.1);
    stage.runner.request(undefined, true);
    let isStopped = false;
    const stopped = stage.runner.stop().then(() => {
      isStopped = true;
    });
    await stage.pass(0.3);
    expect([stage.syncs, isStopped]).toEqual([1, false]);
    await stage.pass(0.1);
    await stopped;
    await stage.pass(10_000);
    expect(stage.syncs).toBe(1);
    expect(stage.clock.pending).toBe(0);
  });
});

test('a sync that had nothing to write is not logged', async () => {
  const stage = new Stage({ runs: [{}, { report: NOTHING }, { report: FULL }] });
  for (let sync = 0; sync < 3; sync++) {
    stage.runner.request();
    await stage.pass(5);
  }
  expect([stage.syncs, stage.causes.length]).toEqual([3, 1]);
});

describe('the cause in the log', () => {
  async function serving(): Promise<Stage> {
    const stage = new Stage();
    stage.proxy.onNode(node('node1'));
    stage.tell('a/b 10.96.0.1 80', 'a/b-1 of b 8080 | 10.1.0.1');
    await stage.pass(5);
    expect(stage.causes).toEqual(['start']);
    return stage;
  }

  const nodeChanges = (stage: Stage): void => stage.runner.request('addresses of this node changed');
  const iptables = { processId: 99, processName: 'iptables' };

  test.each<[string, (stage: Stage) => void, string]>([
    [
      'objects, each once',
      (stage) => {
        stage.tell('a/b-1 of b 8080 | 10.1.0.1 | 10.1.0.2');
        stage.tell('a/b-1 of b 8080 | 10.1.0.1 | 10.1.0.7', 'a/c 10.96.0.2 80');
      },
      'Service a/c added; EndpointSlice a/b-1: endpoint 10.1.0.7 added',
    ],
    [
      'a few of very many',
      (stage) => stage.tell(...Array.from({ length: 40 }, (_, index) => `a/s${index} 10.96.1.${index} 80`)),
      'Service a/s0 added; Service a/s1 added; Service a/s2 added; and 37 more',
    ],
    [
      'the node',
      (stage) => {
        stage.proxy.onNode(node('node1', '10.0.0.1'));
        nodeChanges(stage);
      },
      'Node node1 changed; addresses of this node changed',
    ],
    [
      'another program, as far as the kernel says',
      (stage) =>
        stage.runner.foreignChanges.noticed({ objects: ['chain nat KUBE-SERVICES'], changedBy: iptables }),
      'iptables (pid 99) changed chain nat KUBE-SERVICES',
    ],
    [
      'what a full sync found',
      (stage) => {
        stage.runs = [{ report: { kind: 'full', repaired: ['set service-ips'] } }];
        stage.runner.requestFull('firewalld has reloaded its rules');
      },
      'firewalld has reloaded its rules; found changed: set service-ips',
    ],
  ])('is %s', async (_, happen, cause) => {
    const stage = await serving();
    happen(stage);
    await stage.pass(5);
    expect(stage.causes.slice(1)).toEqual([cause]);
  });

  test('of a sync that failed stays for the next one', async () => {
    const stage = await serving();
    stage.runs = [FAILS, {}];
    stage.proxy.onEndpointSlice('a/b-1', undefined);
    nodeChanges(stage);
    await stage.pass(60);
    expect(stage.causes.slice(1)).toEqual([
      'EndpointSlice a/b-1 removed; addresses of this node changed; again after a sync that failed',
    ]);
  });

  test('of a large change is that of its rest too', async () => {
    const stage = await serving();
    stage.writer.writesPerSync = 4;
    stage.tell('a/many 10.96.0.9 p:80 q:81 r:82 s:83', 'a/more 10.96.0.10 p:80 q:81 r:82 s:83');
    await stage.pass(5);
    expect(stage.causes.length).toBeGreaterThan(2);
    expect(new Set(stage.causes.slice(1))).toEqual(new Set(['Service a/many added; Service a/more added']));
  });
});

const NFT = { processName: 'nft', processId: 4711 };
const FLUSH = { objects: ['chain nat KUBE-SERVICES'], changedBy: NFT };
const REPAIRED = 'Another program changed our rules; repaired';

describe('what another program changed', () => {
  test('is repaired at once, counted, and logged once it is repaired', async () => {
    const stage = new Stage({ runs: [{ ms: 100 }] });
    stage.runner.foreignChanges.noticed(FLUSH);
    await stage.pass(0.05);
    expect([stage.syncs, stage.programs]).toEqual([1, ['nft']]);
    expect(stage.lines(REPAIRED)).toEqual([]);
    // What comes during a sync is repaired by the next.
    stage.runner.foreignChanges.noticed({
      objects: Array.from({ length: 5000 }, (_, index) => `rule ${index}`),
    });
    await stage.pass(0.1);
    expect(stage.lines(REPAIRED)[0]).toContain(
      '"level":"warning","msg":"Another program changed our rules; repaired","ipFamily":"IPv4",' +
        '"changedBy":"nft (pid 4711)","objects":"chain nat KUBE-SERVICES","changes":1',
    );
    await stage.pass(60);
    expect([stage.syncs, stage.programs]).toEqual([2, ['nft', 'unknown']]);
    expect(stage.lines(REPAIRED)).toHaveLength(2);
    expect(stage.lines(REPAIRED)[1]).toContain('"objects":"rule 0, rule 1, rule 2 and many more"');
  });

  test('and could not be repaired is kept until it is, together with later changes', async () => {
    const stage = new Stage({ runs: [FAILS, {}] });
    stage.runner.foreignChanges.noticed(FLUSH);
    await stage.pass(5);
    stage.runner.foreignChanges.noticed({ ...FLUSH, changedBy: { ...NFT, processId: 5 } });
    await stage.pass(60);
    expect(stage.lines(REPAIRED)).toHaveLength(1);
    expect(stage.lines('"changedBy":"nft (pid 4711), nft (pid 5)"')).toHaveLength(1);
    expect(stage.lines('"changes":2')).toHaveLength(1);
  });

  describe('again and again', () => {
    /** The other program answers each repair after a second; how long each repair waits. */
    async function fight(stage: Stage, rounds: number, change = FLUSH): Promise<readonly number[]> {
      const delays: number[] = [];
      for (let round = 0; round < rounds; round++) {
        await stage.pass(1);
        const before = stage.syncs;
        stage.runner.foreignChanges.noticed(change);
        const noticedAt = stage.clock.now();
        await settle();
        while (stage.syncs === before) await stage.pass(0.5);
        delays.push((stage.clock.now() - noticedAt) / 1000);
      }
      return delays;
    }

    test('is repaired later and later, and both programs are named', async () => {
      const stage = new Stage();
      expect(await fight(stage, 13)).toEqual([0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 30, 30, 30]);
      const told = stage.lines("keep undoing each other's changes");
      expect(told).toHaveLength(2); // at its beginning, and when the delay cannot grow any more
      expect(told[0]).toContain(`"junction":"Junction (pid ${process.pid})","changedBy":"nft (pid 4711)"`);
      expect(told[0]).toContain('"objects":"chain nat KUBE-SERVICES"');
      expect(told[0]).toContain('"whatToDo":');
    });

    test('is over after some quiet, and was never about another object', async () => {
      const stage = new Stage();
      await fight(stage, 8);
      expect(await fight(stage, 1, { ...FLUSH, objects: ['chain filter KUBE-FORWARD'] })).toEqual([0]);
      await stage.pass(11);
      expect(await fight(stage, 1)).toEqual([0]);
    });
  });
});

describe('everything is written again', () => {
  test.each([
    ['in each sync period', 'syncPeriod', 120],
    ['every hour', 'hour', 1],
    ['never', undefined, 0],
  ] as const)('%s', async (_, fullSyncEvery, fulls) => {
    const stage = new Stage({ fullSyncEvery, runs: [{ report: FULL }, { report: NOTHING }] });
    stage.runner.requestFull();
    await settle();
    for (let period = 0; period < 120; period++) {
      await stage.pass(30);
      stage.runner.periodPassed();
      await settle();
    }
    expect(stage.fulls).toBe(1 + fulls);
  });

  test('when notifications were lost, and what differed is logged', async () => {
    const stage = new Stage({ runs: [{ report: { kind: 'full', repaired: ['chain nat X'] } }] });
    stage.runner.notificationsLost();
    await settle();
    expect([stage.fulls, stage.programs]).toEqual([1, ['unknown']]);
    expect(stage.lines('chain nat X')).not.toEqual([]);
  });

  test('less and less often when notifications are lost again and again', async () => {
    const stage = new Stage({ runs: [{ report: FULL }] });
    for (let second = 0; second < 120; second++) {
      stage.runner.notificationsLost();
      await stage.pass(1);
    }
    expect(stage.fulls).toBeGreaterThan(5);
    expect(stage.fulls).toBeLessThan(15);
  });
});

describe('both families', () => {
  function dualStack(): {
    four: Stage;
    six: Stage;
    proxy: DualStackProxier;
    pass: (s: number) => Promise<void>;
  } {
    const shared = { clock: new FakeClock(), log: new FakeLog(), isListing: true };
    const [four, six] = FAMILIES.map((family) => new Stage({ ...shared, family })) as [Stage, Stage];
    const runners = [four.runner, six.runner];
    const proxy = new DualStackProxier({ nodeName: 'node-a', runners, log: shared.log.log });
    return { four, six, proxy, pass: (seconds) => shared.clock.advance(1000 * seconds) };
  }

  test('are told of what concerns them, and only of this node', async () => {
    const { four, six, proxy, pass } = dualStack();
    proxy.synced();
    await pass(5);
    proxy.service('a/four', service('a/four 10.96.0.1 80'));
    proxy.service('a/both', service('a/both 10.96.0.2 fd00::2 80'));
    await pass(5);
    proxy.endpointSlice('a/four-1', slice('a/four-1 of four 80 | 10.244.0.1'));
    proxy.node('node-b', node('node-b', '192.0.2.11', 'zone=c'));
    await pass(5);
    expect(four.writer.syncs).toEqual([[], ['a/both/TCP', 'a/four/TCP'], ['a/four/TCP']]);
    expect(six.writer.syncs).toEqual([[], ['a/both/TCP']]);
    proxy.node('node-a', node('node-a', '192.0.2.10', 'zone=b'));
    await pass(5);
    expect([four.syncs, six.syncs]).toEqual([4, 3]);
    expect(four.proxy.plan.view).toMatchObject({ zone: 'b', nodeIp: '192.0.2.10' });
  });

  test('write nothing before the source has emitted everything, then all at once', async () => {
    const { four, proxy, pass } = dualStack();
    proxy.service('a/one', service('a/one 10.96.0.1 80'));
    proxy.service('a/two', service('a/two 10.96.0.2 80'));
    proxy.endpointSlice('a/one-1', slice('a/one-1 of one 80 | 10.244.0.1'));
    await pass(5);
    expect(four.writer.syncs).toEqual([]);
    proxy.synced();
    await settle();
    expect(four.writer.syncs).toEqual([['a/one/TCP', 'a/two/TCP']]);
    expect(four.writer.plan?.servicePorts.get('a/one/TCP')?.pools.cluster).toHaveLength(1);
    proxy.service('a/one', undefined);
    await pass(5);
    expect(four.writer.syncs.at(-1)).toEqual(['a/one/TCP']);
  });

  test('log the problems of the source', () => {
    const { four, proxy } = dualStack();
    const problem = { where: 'a.yaml:7:3', object: 'Service a/b', message: 'is odd' } as const;
    proxy.report({ ...problem, severity: 'error' });
    proxy.report({ ...problem, severity: 'warning', expected: 'something' });
    expect(four.log.lines).toEqual([
      '{"level":"error","msg":"a.yaml:7:3: error: Service a/b: is odd"}\n',
      '{"level":"warning","msg":"a.yaml:7:3: warning: Service a/b: is odd (expected something)"}\n',
    ]);
  });
});

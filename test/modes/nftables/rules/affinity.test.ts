/** Clients that are remembered: for as long as they may go where they went. */
import { describe, expect, test } from 'vitest';
import type { AffinityEntry } from '../../../../src/modes/nftables/rules/table.ts';
import { ip } from '../../../plan/given.ts';
import { settle } from '../../../time/fakeClock.ts';
import { CLIENT, client } from './clients.ts';
import { Harness } from './harness.ts';

const X = 'a/x 10.96.0.1 80@30080 affinity=60';
const TWO = 'a/x-1 of x 80 | 10.1.0.1 node-b | 10.1.0.2 node-b';
const ONE = 'a/x-1 of x 80 | 10.1.0.2 node-b';

function remember(harness: Harness, last: number, endpoint: string): void {
  const set = harness.kernel.table?.sets.get('affinity-tcp')?.set;
  if (!set) throw new Error('nothing is remembered');
  const key = { address: ip(`203.0.113.${last}`), secondAddress: ip('10.96.0.1'), port: 80 };
  const element = { set: set.name, key, endpoint: { ip: ip(endpoint), port: 80 } };
  harness.kernel.tamper({ kind: 'addElements', set, elements: [element] });
}

const printClient = ({ client: who, endpoint }: AffinityEntry): string => `${who} ${endpoint.ip}`;
const clients = ({ kernel }: Harness): readonly string[] => kernel.allClients.map(printClient).sort();

async function withTwoClients(): Promise<Harness> {
  const harness = new Harness();
  await harness.sync(X, TWO);
  remember(harness, 1, '10.1.0.1');
  remember(harness, 2, '10.1.0.2');
  return harness;
}

test('a client goes where it went before', async () => {
  const harness = new Harness();
  await harness.sync(X, TWO);
  const first = harness.kernel.connect(CLIENT);
  expect(clients(harness)).toEqual([`203.0.113.9 ${first}`]);
  await harness.sync('a/x-1 of x 80 | 10.1.0.0 node-b | 10.1.0.1 node-b | 10.1.0.2 node-b');
  for (let again = 0; again < 5; again++) expect(harness.kernel.connect(CLIENT)).toBe(first);
});

describe('an endpoint that is gone is forgotten by the same sync, and others are kept', () => {
  test('in a change', async () => {
    const harness = await withTwoClients();
    const report = await harness.sync(ONE);
    expect(report.kind).toBe('incremental');
    expect(clients(harness)).toEqual(['203.0.113.2 10.1.0.2']);
    expect(harness.kernel.connect(client(1))).toBe('10.1.0.2');
  });

  test('while nobody looked', async () => {
    const harness = await withTwoClients();
    harness.cluster.tell(ONE);
    const next = harness.restarted();
    await next.sync();
    expect(clients(next)).toEqual(['203.0.113.2 10.1.0.2']);
  });

  test('when the change was refused first', async () => {
    const harness = await withTwoClients();
    let tries = 0;
    harness.kernel.fault = () => (tries++ === 0 ? 'ENOMEM' : undefined);
    await harness.sync(ONE);
    expect(clients(harness)).toEqual(['203.0.113.2 10.1.0.2']);
  });

  test('when the process was killed before it forgot', async () => {
    const harness = await withTwoClients();
    harness.kernel.after = () => {
      throw new Error('killed');
    };
    await expect(harness.sync(ONE)).rejects.toThrow('killed');
    const next = harness.restarted();
    await next.sync();
    expect(clients(next)).toEqual(['203.0.113.2 10.1.0.2']);
  });

  test('when a client goes by itself between the look and the forgetting', async () => {
    const harness = await withTwoClients();
    remember(harness, 3, '10.1.0.1');
    let isFirst = true;
    harness.kernel.before = (transaction) => {
      const operation = transaction?.find(({ kind }) => kind === 'deleteElements');
      if (!isFirst || operation?.kind !== 'deleteElements' || operation.set.name !== 'affinity-tcp') return;
      isFirst = false;
      harness.kernel.tamper({ ...operation, elements: operation.elements.slice(0, 1) });
    };
    await harness.sync(ONE);
    expect(isFirst).toBe(false);
    expect(clients(harness)).toEqual(['203.0.113.2 10.1.0.2']);
  });
});

test('switched off, everybody is forgotten', async () => {
  const harness = await withTwoClients();
  await harness.sync('a/x 10.96.0.1 80@30080');
  expect(clients(harness)).toEqual([]);
  expect(harness.world).toEqual(await harness.fromScratch());
});

test('a service that goes takes its clients along', async () => {
  const harness = await withTwoClients();
  await harness.sync('- a/x');
  expect(clients(harness)).toEqual([]);
});

test('a change that takes nothing away asks about nobody', async () => {
  const harness = await withTwoClients();
  await harness.sync('a/x-1 of x 80 | 10.1.0.1 node-b | 10.1.0.2 node-b | 10.1.0.3 node-b');
  expect(harness.kernel.clientReads).toBe(0);
  expect(clients(harness)).toHaveLength(2);
});

test('another time-out leads the frontends to another chain, and everybody stays remembered', async () => {
  const harness = await withTwoClients();
  await harness.sync('a/x 10.96.0.1 80@30080 affinity=90');
  expect(harness.sent[0]).toEqual(['addChain sticky-tcp-90', 'rule sticky-tcp-90']);
  expect(harness.sent[1]).toEqual(
    expect.arrayContaining([
      '- sticky-tcp { 10.96.0.1 . 80 : jump sticky-tcp-60 }',
      '+ sticky-tcp { 10.96.0.1 . 80 : jump sticky-tcp-90 }',
    ]),
  );
  expect(harness.kernel.attempts).toBe(2);
  expect(clients(harness)).toHaveLength(2);
  expect(harness.world).toEqual(await harness.fromScratch());
});

test("a node port remembers on each address of the node, also on one that is a service's too", async () => {
  const harness = new Harness();
  const node = ip('192.0.2.10');
  await harness.sync(X, TWO, `b/lb 10.96.0.2 443 ext=${node}`, 'b/lb-1 of lb 443 | 10.1.0.9 node-b');
  const packet = { ...CLIENT, destination: node, port: 30_080 };
  const first = harness.kernel.connect(packet, [node]);
  expect(harness.kernel.connect(packet, [node])).toBe(first);
  expect(clients(harness)).toEqual([`203.0.113.9 ${first}`]);
});

describe('entries that take long to read', () => {
  /** The kernel answers when it is told to. */
  async function slow(): Promise<{ harness: Harness; answer: () => void }> {
    const harness = await withTwoClients();
    const next = new Harness({
      kernel: harness.kernel,
      cluster: harness.cluster,
      wait: () => Promise.resolve(),
    });
    await next.sync();
    const waiting: (() => void)[] = [];
    const read = harness.kernel.affinityEntries.bind(harness.kernel);
    harness.kernel.affinityEntries = async (...asked) => {
      await new Promise<void>((resolve) => {
        waiting.push(resolve);
      });
      return read(...asked);
    };
    return { harness: next, answer: () => waiting.splice(0).forEach((go) => go()) };
  }

  test('a sync does not wait for them, and asks for another one', async () => {
    const { harness, answer } = await slow();
    const report = await harness.sync(ONE);
    expect(report.retryAfterMs).toBe(1000);
    expect(clients(harness)).toHaveLength(2);
    answer();
    await settle();
    expect(clients(harness)).toEqual(['203.0.113.2 10.1.0.2']);
    // For the pool size that nobody uses any more.
    expect((await harness.sync()).retryAfterMs).toBe(5000);
  });

  test('what is lost meanwhile is evicted afterwards', async () => {
    const { harness, answer } = await slow();
    await harness.sync(ONE);
    await harness.sync('a/x-1 of x 80 | 10.1.0.3 node-b');
    answer();
    await settle();
    answer();
    await settle();
    expect(clients(harness)).toEqual([]);
  });
});

test('only the entries of the frontends that lost something are read', async () => {
  const harness = await withTwoClients();
  const asked: unknown[] = [];
  const read = harness.kernel.affinityEntries.bind(harness.kernel);
  harness.kernel.affinityEntries = (...all) => {
    asked.push(all);
    return read(...all);
  };
  await harness.sync(ONE);
  expect(asked).toEqual([
    [
      'TCP',
      [
        { address: '10.96.0.1', port: 80 },
        { address: undefined, port: 30_080 },
      ],
    ],
  ]);
});

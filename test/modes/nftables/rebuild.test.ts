/** A rebuild that goes on beside syncs, on a kernel in memory: where other programs can change the table, and where one owns it. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { NftTables } from '../../../src/modes/nftables/rules/table.ts';
import { NftSync } from '../../../src/modes/nftables/sync.ts';
import type { ServicePortId } from '../../../src/model/serviceTracker.ts';
import { Cluster } from '../../plan/cluster.ts';
import { VIEW } from '../../plan/given.ts';
import { meaningOf } from './rules/cluster.ts';
import { FakeNftKernel } from './rules/fakeKernel.ts';

const FACTS = { masqueradeBit: 14, counters: true, nodeIps: () => [] };

/** Each call takes a turn of the event loop, so that others come between. */
function slow(tables: NftTables): NftTables {
  return {
    list: async () => {
      await nextTurn();
      return tables.list();
    },
    commit: async (parts) => {
      await nextTurn();
      return tables.commit(parts);
    },
    table: (name) => ({
      commit: async (transaction) => {
        await nextTurn();
        return tables.table(name).commit(transaction);
      },
      affinityEntries: (...asked) => tables.table(name).affinityEntries(...asked),
    }),
  };
}

class Node {
  readonly kernel = new FakeNftKernel();
  readonly cluster = new Cluster(VIEW, 'IPv4');
  requests = 0;
  readonly sync = new NftSync({
    ...FACTS,
    tables: slow(this.kernel),
    isProtected: false,
    request: () => this.requests++,
  });

  async tell(...lines: readonly string[]): ReturnType<NftSync['sync']> {
    this.cluster.tell(...lines);
    const ids: readonly ServicePortId[] = [...this.cluster.takeDirty()];
    return this.sync.sync(this.cluster.planner, ids);
  }

  get name(): string | undefined {
    return this.kernel.inForce?.[0];
  }

  async untilRequested(): Promise<void> {
    const before = this.requests;
    for (let turns = 0; this.requests === before; turns++) {
      if (turns === 10_000) throw new Error('nobody asked for another sync');
      await nextTurn();
    }
  }
}

async function freshMeaning({ cluster }: Node): Promise<readonly string[]> {
  const kernel = new FakeNftKernel();
  await new NftSync({ ...FACTS, tables: kernel, isProtected: false }).rewrite(cluster.planner);
  return meaningOf(kernel);
}

const endpoints = (count: number): string =>
  Array.from({ length: count }, (_, index) => `| 10.244.2.${index + 1} node2`).join(' ');
const MANY = Array.from({ length: 300 }, (_, index) => [
  `many/s${index} 10.97.${index >> 8}.${index & 255} 80`,
  `many/s${index}-1 of s${index} 8080 ${endpoints(3)}`,
]).flat();

test('thirty pool sizes and time-outs that nobody had, while it goes on, end like a fresh start', async () => {
  const node = new Node();
  await node.tell(...MANY);
  await node.sync.settled();
  const before = node.name;
  expect(node.sync.noteForeign(new Set([before ?? '']))).toBe(true);
  expect(await node.tell()).toMatchObject({ kind: 'nothing', isRepairing: true });
  for (let change = 0; change < 30; change++) {
    const report = await node.tell(
      `a/s${change} 10.96.1.${change} 80 affinity=${100 + change}`,
      `a/s${change}-1 of s${change} 8080 ${endpoints(change + 4)}`,
      ...(change % 3 === 0 ? [`- many/s${change}`, `- many/s${change}-1`] : []),
    );
    // At once, into the table in force.
    if (node.name === before) expect(report.kind).toBe('incremental');
    const held = node.kernel.elements.filter(({ key }) => key.address === `10.96.1.${change}`);
    expect(held.length).toBeGreaterThanOrEqual(change + 4);
  }
  if (node.name === before) {
    await node.untilRequested();
    expect(await node.tell()).toMatchObject({ kind: 'full' });
  }
  await node.sync.settled();
  expect(node.name).not.toBe(before);
  expect([...node.kernel.tables.keys()]).toEqual([node.name]);
  expect(meaningOf(node.kernel)).toEqual(await freshMeaning(node));
  expect(await node.tell()).toMatchObject({ kind: 'nothing' });
});

test('what another program does to the new table before the swap is not put in force', async () => {
  const node = new Node();
  await node.tell(...MANY);
  await node.sync.settled();
  const before = node.name ?? '';
  node.sync.noteForeign(new Set([before]));
  await node.tell();
  await node.untilRequested();
  const next = [...node.kernel.tables.keys()].find((name) => name !== before) ?? '';
  await node.kernel.table(next).commit([{ kind: 'deleteTable' }]);
  expect(node.sync.noteForeign(new Set([next]))).toBe(false);
  await node.tell();
  expect(node.name).toBe(before);
  expect(meaningOf(node.kernel)).toEqual(await freshMeaning(node));
});

test('a table of our name that another process owns: the error names it, and nothing is changed', async () => {
  const node = new Node();
  const old = [{ kind: 'addTable', isOwned: true } as const];
  for (const name of ['junction-a', 'junction-b']) await node.kernel.table(name).commit(old);
  node.kernel.nextProcess();
  const tables = new Map(node.kernel.tables);
  await expect(node.tell(...MANY)).rejects.toThrow(
    'nftables: a table of our name belongs to socket 1, which alone can change it (EPERM); trying again',
  );
  expect(node.kernel.tables).toEqual(tables);
  node.kernel.tables.clear();
  expect(await node.tell()).toMatchObject({ kind: 'full' });
});

test('affinity entries are copied with what is left of their time, but not those of endpoints that are gone', async () => {
  const node = new Node();
  await node.tell('a/web 10.96.1.1 80 affinity=600', `a/web-1 of web 8080 ${endpoints(2)}`);
  await node.sync.settled();
  const client = (last: number, endpoint: number) => ({
    set: 'affinity-tcp',
    key: { address: `192.0.2.${last}`, secondAddress: '10.96.1.1', port: 80 },
    endpoint: { ip: `10.244.2.${endpoint}`, port: 8080 },
    lifetime: { timeoutMs: 600_000, leftMs: last * 1000 },
  });
  const set = node.kernel.ruleset.sets.find(({ name }) => name === 'affinity-tcp');
  if (!set) throw new Error('no map of affinity');
  const elements = [client(1, 1), client(2, 2), client(3, 9)] as never;
  node.kernel.tamper({ kind: 'addElements', set, elements });
  await node.sync.rewrite(node.cluster.planner);
  const entries = node.kernel.elements.filter(({ set: name }) => name === 'affinity-tcp');
  expect(entries).toEqual([client(1, 1), client(2, 2)]);
});

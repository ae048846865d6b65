/** Which element counts a connection, where clients are remembered and the pool does not see them again. */
import { describe, expect, test } from 'vitest';
import { printElement, printTable } from '../../../../src/modes/nftables/rules/print.ts';
import { wholeTable } from '../../../../src/modes/nftables/rules/referenceCounts.ts';
import type { AffinityEntry } from '../../../../src/modes/nftables/rules/table.ts';
import { type Packet } from '../../../../src/plan/decide.ts';
import { walkNftables } from '../../../../src/modes/nftables/rules/walk.ts';
import { ip } from '../../../plan/given.ts';
import { CLIENT } from './clients.ts';
import { Harness, NODE_IPS } from './harness.ts';

const X = 'a/x 10.96.0.1 http:80@30080 affinity=60';
const TWO = 'a/x-1 of x http:8080 | 10.1.0.1 node-a | 10.1.0.2 node-b';
const [NODE = ip('192.0.2.10'), SECOND = ip('192.0.2.11')] = NODE_IPS;

const COUNTING = /^(?:ports-)?connections-/;

function counters({ kernel }: Harness): readonly string[] {
  return kernel.elements
    .filter(({ set }) => COUNTING.test(set))
    .map((element) => `${element.set} ${printElement(element)}`)
    .sort();
}

function countingSets({ kernel }: Harness): readonly string[] {
  return kernel.ruleset.sets.map(({ name }) => name).filter((name) => COUNTING.test(name));
}

/** The elements that count a connection which somebody makes now. */
function countedBy({ kernel }: Harness, packet: Packet): readonly string[] {
  const affinity = (map: string): readonly AffinityEntry[] => kernel.clients(map);
  const { outcomes } = walkNftables(kernel.walkable, packet, { addresses: NODE_IPS }, { affinity });
  const found = outcomes.flatMap(({ path }) => path.flatMap((step) => step.found));
  return found.filter((text) => COUNTING.test(text));
}

describe('there is one for each address that is dialled and each endpoint', () => {
  test('of a service that remembers clients', async () => {
    const harness = new Harness();
    await harness.sync(X, TWO);
    const of = (address: string, port: number, set = 'ports-connections-tcp'): readonly string[] =>
      ['10.1.0.1', '10.1.0.2'].map(
        (endpoint) => `${set} ${endpoint} . 8080 . ${address} . ${port} comment "a/x:http"`,
      );
    expect(counters(harness)).toEqual(
      [...of('10.96.0.1', 80, 'connections-tcp'), ...of(NODE, 30_080), ...of(SECOND, 30_080)].sort(),
    );
  });

  test('where it is only local ones for some, and all for others: for all', async () => {
    const harness = new Harness();
    await harness.sync(`${X} etp=Local`, TWO);
    expect(counters(harness).filter((text) => text.includes(`${NODE} . 30080`))).toHaveLength(2);
  });

  test('not of one that remembers nobody, nor where nothing is counted', async () => {
    const harness = new Harness();
    await harness.sync('a/x 10.96.0.1 http:80@30080', TWO);
    expect(countingSets(harness)).toEqual([]);
    const silent = new Harness({ settings: { counters: false } });
    await silent.sync(X, TWO);
    expect(countingSets(silent)).toEqual([]);
    expect(printTable(wholeTable(silent.cluster.planner, silent.settings), 'IPv4')).not.toMatch(
      /connections-|counter/,
    );
  });
});

describe('a connection is counted once', () => {
  const ONE = 'a/x-1 of x http:8080 | 10.1.0.1 node-b';

  test('from the first to the last of a client', async () => {
    const harness = new Harness();
    await harness.sync(X, ONE);
    const element = 'connections-tcp { 10.1.0.1 . 8080 . 10.96.0.1 . 80 comment "a/x:http" }';
    expect(countedBy(harness, CLIENT)).toEqual([element]);
    harness.kernel.connect(CLIENT);
    expect(harness.kernel.allClients).toHaveLength(1);
    expect(countedBy(harness, CLIENT)).toEqual([element]);
  });

  test('by the address of the node that was dialled', async () => {
    const harness = new Harness();
    await harness.sync(X, ONE);
    expect(countedBy(harness, { ...CLIENT, destination: SECOND, port: 30_080 })).toEqual([
      `ports-connections-tcp { 10.1.0.1 . 8080 . ${SECOND} . 30080 comment "a/x:http" }`,
    ]);
  });

  test('by an endpoint that is the node itself, whoever dials', async () => {
    const harness = new Harness();
    await harness.sync(X, `a/x-1 of x http:8080 | ${NODE} node-a`);
    const element = `connections-tcp { ${NODE} . 8080 . 10.96.0.1 . 80 comment "a/x:http" }`;
    expect(countedBy(harness, CLIENT)).toEqual([element]);
    expect(countedBy(harness, { ...CLIENT, source: NODE, inInterface: undefined })).toEqual([element]);
  });

  test('for the right service port: of one address, of one endpoint, of one port by another protocol', async () => {
    const harness = new Harness();
    await harness.sync(
      'a/x 10.96.0.1 http:80 other:81 udp:80/udp affinity=60',
      'a/x-1 of x http:8080 other:8080 udp:8080/udp | 10.1.0.1 node-b',
      'a/y 10.96.0.2 http:80 affinity=90',
      'a/y-1 of y http:8080 | 10.1.0.1 node-b',
    );
    const owner = (packet: Partial<Packet>): readonly string[] =>
      countedBy(harness, { ...CLIENT, ...packet }).map((text) => /"(.*)"/.exec(text)?.[1] ?? '');
    expect(owner({})).toEqual(['a/x:http']);
    expect(owner({ port: 81 })).toEqual(['a/x:other']);
    expect(owner({ protocol: 'UDP' })).toEqual(['a/x:udp']);
    expect(owner({ destination: ip('10.96.0.2') })).toEqual(['a/y:http']);
  });
});

describe('a change', () => {
  test('of endpoints leaves those of the others as they are', async () => {
    const harness = new Harness();
    await harness.sync('a/x 10.96.0.1 http:80 affinity=60', TWO);
    await harness.sync('a/x-1 of x http:8080 | 10.1.0.2 node-b | 10.1.0.3 node-b');
    const sent = harness.sent.flat().filter((line) => line.includes('connections-'));
    expect(sent).toEqual([
      '- connections-tcp { 10.1.0.1 . 8080 . 10.96.0.1 . 80 }',
      '+ connections-tcp { 10.1.0.3 . 8080 . 10.96.0.1 . 80 }',
    ]);
    await harness.restarted().sync();
    expect(harness.world).toEqual(await harness.fromScratch());
  });

  test('a restart writes nothing', async () => {
    const harness = new Harness();
    await harness.sync(X, TWO);
    const next = harness.restarted();
    expect((await next.sync()).commits).toBe(0);
  });

  test('an address that goes to another service counts for that one, with the same endpoint', async () => {
    const harness = new Harness();
    await harness.sync('a/x 10.96.0.1 http:80 affinity=60', TWO);
    await harness.sync(
      '- a/x',
      'a/y 10.96.0.1 http:80 affinity=60',
      'a/y-1 of y http:8080 | 10.1.0.1 node-a | 10.1.0.2 node-b',
    );
    expect(counters(harness).every((text) => text.endsWith('comment "a/y:http"'))).toBe(true);
    expect(counters(harness)).toHaveLength(2);
  });

  test('by somebody else is mended', async () => {
    const harness = new Harness();
    await harness.sync(X, TWO);
    const before = counters(harness);
    const element = harness.kernel.elements.find(({ set }) => COUNTING.test(set));
    const set = harness.kernel.ruleset.sets.find(({ name }) => name === element?.set);
    if (!element || !set) throw new Error('nothing counts');
    harness.kernel.tamper({ kind: 'deleteElements', set, elements: [element] });
    harness.noteForeign([{ element, isThere: false }]);
    expect((await harness.sync()).kind).toBe('incremental');
    expect(counters(harness)).toEqual(before);
  });

  test("of a service on an address of the node leaves a node port's there", async () => {
    const harness = new Harness();
    await harness.sync(X, TWO);
    const before = counters(harness);
    await harness.sync(`b/lb 10.96.0.2 30080 ext=${NODE} affinity=60`, 'b/lb-1 of lb 8080 | 10.1.0.1 node-a');
    expect(counters(harness)).toHaveLength(before.length + 2);
    await harness.sync('- b/lb');
    expect(counters(harness)).toEqual(before);
  });
});

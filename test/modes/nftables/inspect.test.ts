/** What is read from the kernel for questions, over a kernel in memory. */
import { describe, expect, it } from 'vitest';
import { NftReader, nftablesReaderOfDump } from '../../../src/modes/nftables/inspect.ts';
import type { KernelDifference, KernelReader } from '../../../src/modes/kernelReader.ts';
import { MemorySource } from '../../../src/modes/nftables/kernel/memorySource.ts';
import { walkNftables } from '../../../src/modes/nftables/rules/walk.ts';
import type { WalkOutcome } from '../../../src/modes/walk.ts';
import type { TableOperation } from '../../../src/modes/nftables/rules/table.ts';
import { type Packet } from '../../../src/plan/decide.ts';
import { BACKSTOP_TABLE } from '../../../src/modes/nftables/rules/names.ts';
import { cidr, ip } from '../../plan/given.ts';
import { memoryTable, readerOf } from './fakeSource.ts';
import { CLIENT } from './rules/clients.ts';
import { FakeNftKernel } from './rules/fakeKernel.ts';
import { Harness, NODE_IPS } from './rules/harness.ts';

const HOST = { addresses: [ip('192.0.2.10')] };
const X = [
  'a/x 10.96.0.1 80@30080 affinity=60 lb=198.51.100.1 ranges=203.0.113.0/24',
  'a/x-1 of x 80 | 10.1.0.1 node-b | 10.1.0.2 node-b',
];
const PLAIN = ['a/x 10.96.0.1 80', 'a/x-1 of x 80 | 10.1.0.1 node-b | 10.1.0.2 node-b'];

const LB: Packet = { ...CLIENT, destination: ip('198.51.100.1') };
const FACTS = { nodeIps: NODE_IPS, counters: true, serviceCidrs: [] };

function printOutcome(outcome: WalkOutcome<unknown>): string {
  const target = outcome.kind === 'forward' ? ` ${outcome.to}:${outcome.port}` : '';
  return `${Math.round(outcome.probability * 100)}% ${outcome.kind}${target}`;
}

async function walked(reader: KernelReader, packet = CLIENT): Promise<readonly string[]> {
  const { outcomes, notes } = await reader.walk(packet, HOST);
  return [...outcomes.map(printOutcome), ...notes];
}

async function synced(...lines: readonly string[]): Promise<Harness> {
  const harness = new Harness();
  await harness.sync(...lines);
  return harness;
}

describe('a walk', () => {
  it.each([CLIENT, LB, { ...LB, source: ip('192.0.2.99') }, { ...CLIENT, port: 81 }])(
    'has the steps of the walk through rules as data: %j',
    async (packet) => {
      const { kernel } = await synced(...X);
      const walk = await readerOf(kernel).walk(packet, HOST);
      const other = walkNftables(kernel.walkable, packet, HOST);
      const steps = ({ path }: WalkOutcome<unknown>): readonly string[] =>
        path.map(({ hook, chain, ruleIndex, text, found }) =>
          [hook, chain, ruleIndex, text, ...found].join(' | '),
        );
      expect(walk.notes).toEqual([]);
      expect(walk.outcomes.map(printOutcome)).toEqual(other.outcomes.map(printOutcome));
      expect(walk.outcomes.map(({ lookups }) => lookups)).toEqual(
        other.outcomes.map(({ lookups }) => lookups),
      );
      // A range is printed as its two ends here, and as a network there.
      const plain = (lines: readonly string[]): readonly string[] =>
        lines.filter((line) => !line.includes('allowed {'));
      expect(walk.outcomes.map(steps).map(plain)).toEqual(other.outcomes.map(steps).map(plain));
      expect(walk.outcomes.flatMap(({ path }) => path.map(({ table }) => table))).not.toContain('');
    },
  );

  it('gives way to others, however large a pool is', async () => {
    const endpoints = Array.from({ length: 1000 }, (_, n) => `10.1.${n >> 8}.${n & 255} node-b`);
    const { kernel } = await synced('a/x 10.96.0.1 80', `a/x-1 of x 80 | ${endpoints.join(' | ')}`);
    let turns = 0;
    const timer = setInterval(() => turns++, 0);
    const { outcomes } = await readerOf(kernel).walk(CLIENT, HOST);
    clearInterval(timer);
    expect(outcomes).toHaveLength(1000);
    expect(turns).toBeGreaterThan(5);
  });

  it('sends a client that is remembered where it went', async () => {
    const { kernel } = await synced(...X);
    const first = kernel.connect(CLIENT);
    const { outcomes } = await readerOf(kernel).walk(CLIENT, HOST);
    expect(outcomes.map(printOutcome)).toEqual([`100% forward ${first}:80`]);
    expect(outcomes).toMatchObject([{ byAffinity: true }]);
  });

  it('says which elements a packet makes the table learn', async () => {
    const { kernel } = await synced(...X);
    const { outcomes } = await readerOf(kernel).walk(CLIENT, HOST);
    expect(outcomes.map(({ learned }) => learned)).toMatchObject([
      [{ set: 'affinity-tcp', timeoutMs: 60_000 }],
      [{ set: 'affinity-tcp', timeoutMs: 60_000 }],
    ]);
  });

  it('shows what an element has counted', async () => {
    const { kernel } = await synced('a/x 10.96.0.1 80', 'a/x-1 of x 80 | 10.1.0.1 node-b');
    const table = memoryTable(kernel);
    const counted = table.sets.map((set) => ({
      ...set,
      elements: set.elements.map((element) =>
        set.name === 'any-1' ? { ...element, counter: { packets: 7n, bytes: 420n } } : element,
      ),
    }));
    const source = new MemorySource([{ ...table, sets: counted }]);
    const reader = new NftReader({
      family: 'IPv4',
      source,
      facts: () => ({ masqueradeBit: 14, nodeIps: [] }),
    });
    const { outcomes } = await reader.walk(CLIENT, HOST);
    const counts = outcomes.flatMap(({ path }) => path.filter(({ packets }) => packets !== undefined));
    expect(counts).toMatchObject([{ chain: 'any', packets: 7 }]);
  });

  it('is through what the kernel has: rules, elements or a table that are not there', async () => {
    const harness = await synced(...PLAIN);
    const { kernel } = harness;
    const rule = kernel.ruleset.chains.find(({ name }) => name === 'services')?.rules[0];
    if (!rule) throw new Error('no rule');
    kernel.tamper({ kind: 'deleteRule', chain: 'services', rule });
    expect(await walked(readerOf(kernel))).toEqual(['100% reject']);
    kernel.tamper({ kind: 'flushChain', chain: 'unserved' });
    expect(await walked(readerOf(kernel))).toEqual(['100% pass']);
    kernel.table = undefined;
    expect(await walked(readerOf(kernel))).toEqual(['100% pass']);
  });

  it('shows half of a pool that is half there', async () => {
    const { kernel } = await synced(...PLAIN);
    const set = kernel.table?.sets.get('any-2');
    const [first] = set?.elements.values() ?? [];
    if (!set || !first) throw new Error('no element');
    kernel.tamper({ kind: 'deleteElements', set: set.set, elements: [first] });
    expect(await walked(readerOf(kernel))).toEqual(['50% forward 10.1.0.2:80', '50% reject']);
  });

  it('passes the backstop too, which drops what our table would have sent on', async () => {
    const backstop = new FakeNftKernel('IPv4');
    const harness = new Harness({ backstop });
    await harness.sync(...PLAIN);
    const behind = memoryTable(backstop, BACKSTOP_TABLE);
    const both = readerOf(harness.kernel, {}, [behind]);
    expect(await walked(both)).toEqual(await walked(readerOf(harness.kernel)));
    harness.kernel.table = undefined;
    const { outcomes } = await readerOf(harness.kernel, {}, [behind]).walk(CLIENT, HOST);
    expect(outcomes.map(printOutcome)).toEqual(['100% drop']);
    expect(outcomes[0]?.path.map(({ table, isForeign }) => [table, isForeign])).toEqual(
      outcomes[0]?.path.map(() => ['ip junction-backstop', undefined]),
    );
  });

  it('marks a rule in our table that is not ours', async () => {
    const { kernel } = await synced(...PLAIN);
    const { ruleset } = kernel;
    const drop: TableOperation = {
      kind: 'addRule',
      chain: 'unserved',
      rule: { statements: [{ kind: 'protocol', protocol: 'TCP' }, { kind: 'drop' }] },
    };
    kernel.tamper({ kind: 'flushChain', chain: 'services' }, { kind: 'flushChain', chain: 'unserved' }, drop);
    const source = new MemorySource([memoryTable(kernel)]);
    const facts = () => ({ masqueradeBit: 14, nodeIps: [] });
    const reader = new NftReader({ family: 'IPv4', source, facts, ruleset: () => ruleset });
    const { outcomes } = await reader.walk(CLIENT, HOST);
    expect(outcomes).toMatchObject([{ kind: 'drop' }]);
    expect(outcomes[0]?.path.map(({ text, isForeign }) => [text, isForeign])).toEqual([
      ['jump services', undefined],
      ['jump unserved', undefined],
      ['meta l4proto tcp drop', true],
    ]);
  });
});

describe('what is read for a walk', () => {
  /** How many rules, sets and elements. */
  const readFor = async (services: number): Promise<number> => {
    const lines = Array.from({ length: services }, (_, index) => [
      `a/s${index} 10.96.${index >> 8}.${index & 255} 80@${30_000 + index}${index % 2 === 0 ? ' affinity=60' : ''}`,
      `a/s${index}-1 of s${index} 80 | 10.1.0.1 node-b | 10.1.0.2 node-b | 10.1.0.3 node-b`,
    ]);
    const { kernel } = await synced(...lines.flat());
    const source = new MemorySource([memoryTable(kernel)]);
    let read = 0;
    const counted = async <T>(objects: Promise<readonly T[]>): Promise<readonly T[]> => {
      read += (await objects).length;
      return objects;
    };
    const reader = new NftReader({
      family: 'IPv4',
      facts: () => ({ masqueradeBit: 14, nodeIps: [] }),
      source: {
        generation: () => source.generation(),
        chains: () => counted(source.chains()),
        rules: async (places) =>
          Promise.all((await source.rules(places)).map((rules) => counted(Promise.resolve(rules)))),
        sets: (places) => counted(source.sets(places)),
        elements: (asked) => counted(source.elements(asked)),
        contents: async (place) => {
          const contents = await source.contents(place);
          read += contents.sets.length + [...contents.rules.values()].flat().length;
          return contents;
        },
        table: () => Promise.reject(new Error('a walk reads no table')),
        allElements: () => Promise.reject(new Error('a walk reads no set')),
      },
    });
    const { outcomes } = await reader.walk({ ...CLIENT, destination: ip('10.96.0.2') }, HOST);
    expect(outcomes).toHaveLength(3);
    return read;
  };

  it('does not grow with the cluster', async () => {
    const few = await readFor(4);
    expect(few).toBeLessThan(250);
    expect(await readFor(600)).toBe(few);
  });
});

describe('a comparison', () => {
  const compared = async (harness: Harness): Promise<readonly string[]> => {
    const differences = await readerOf(harness.kernel, FACTS).compare(harness.cluster.planner);
    return differences.map(printDifference);
  };
  const printDifference = ({ kind, object, text, servicePort }: KernelDifference): string =>
    `${kind} ${object}: ${text}${servicePort === undefined ? '' : ` (${servicePort})`}`;

  it('of a table as it was written finds nothing', async () => {
    expect(await compared(await synced(...X))).toEqual([]);
  });

  it('takes pool sizes and time-outs that are idle for ours', async () => {
    const harness = await synced(...X);
    await harness.sync('a/x 10.96.0.1 80', 'a/x-1 of x 80 | 10.1.0.1 node-b');
    expect(await compared(harness)).toEqual([]);
  });

  it('takes from the kernel what is not known', async () => {
    const harness = new Harness({ settings: { counters: false, serviceCidrs: [cidr('10.96.0.0/16')] } });
    await harness.sync(...PLAIN);
    const reader = readerOf(harness.kernel, { nodeIps: NODE_IPS });
    expect(await reader.compare(harness.cluster.planner)).toEqual([]);
    expect(await compared(harness)).toContain('extra set service-cidrs: set service-cidrs');
  });

  it('names what is missing, and whose it is', async () => {
    const harness = await synced(...PLAIN);
    const { kernel } = harness;
    const ips = kernel.table?.sets.get('service-ips');
    const pool = kernel.table?.sets.get('any-2');
    const rule = kernel.ruleset.chains.find(({ name }) => name === 'services')?.rules[0];
    if (!ips || !pool || !rule) throw new Error('not as expected');
    kernel.tamper(
      { kind: 'deleteElements', set: ips.set, elements: [...ips.elements.values()] },
      { kind: 'deleteElements', set: pool.set, elements: [...pool.elements.values()].slice(0, 1) },
      { kind: 'deleteRule', chain: 'services', rule },
    );
    expect(await compared(harness)).toEqual([
      'missing rule of chain services: ip daddr @service-ips jump service-addresses',
      'missing element service-ips: 10.96.0.1 (a/x/TCP)',
      'missing element any-2: 10.96.0.1 . tcp . 80 . 0 comment "a/x" : 10.1.0.1 . 80 (a/x/TCP)',
    ]);
  });

  it('names what is not planned', async () => {
    const harness = await synced(...PLAIN, 'a/y 10.96.0.2 80', 'a/y-1 of y 80 | 10.1.0.3 node-b');
    harness.cluster.tell('- a/y', '- a/y-1');
    harness.cluster.replan();
    harness.kernel.tamper(
      { kind: 'addSet', set: { name: 'theirs', key: ['port'] } },
      { kind: 'addChain', chain: 'theirs' },
      { kind: 'addRule', chain: 'theirs', rule: { statements: [{ kind: 'drop' }] } },
    );
    expect(await compared(harness)).toEqual([
      'extra set theirs: set theirs',
      'extra chain theirs: chain theirs',
      'extra rule of chain theirs: drop',
      'extra element service-ips: 10.96.0.2',
      'extra element cluster-ips: 10.96.0.2',
      'extra element masquerade-others: 10.96.0.2 . tcp . 80 comment "a/y" (a/y)',
      'extra element any-1: 10.96.0.2 . tcp . 80 comment "a/y" : 10.1.0.3 . 80 (a/y)',
    ]);
  });

  it('names what is another', async () => {
    const harness = await synced('a/x 10.96.0.1 80', 'a/x-1 of x 80 | 10.1.0.1 node-b');
    harness.cluster.tell('a/x-1 of x 80 | 10.1.0.9 node-b');
    harness.cluster.replan();
    expect(await compared(harness)).toEqual([
      'different element any-1: 10.96.0.1 . tcp . 80 comment "a/x" : 10.1.0.1 . 80, not 10.96.0.1 . tcp . 80 comment "a/x" : 10.1.0.9 . 80 (a/x/TCP)',
    ]);
    const changed = await synced(...PLAIN);
    const chain = changed.kernel.ruleset.chains.find(({ name }) => name === 'services');
    if (!chain) throw new Error('no chain');
    changed.kernel.tamper(
      { kind: 'flushChain', chain: 'services' },
      ...chain.rules
        .toReversed()
        .map((rule): TableOperation => ({ kind: 'addRule', chain: 'services', rule })),
    );
    expect(await compared(changed)).toEqual(['different chain services: its rules are in another order']);
  });

  it('says that the table is missing or dormant', async () => {
    const harness = await synced(...PLAIN);
    const { table } = harness.kernel;
    if (!table) throw new Error('no table');
    harness.kernel.table = { ...table, isDormant: true };
    expect(await compared(harness)).toEqual(['different table ip junction: flags dormant']);
    expect(await walked(readerOf(harness.kernel))).toEqual(['100% pass']);
    harness.kernel.table = undefined;
    const [first, ...others] = await compared(harness);
    expect(first).toBe('missing table ip junction: table ip junction');
    expect(others).toContain(
      'missing chain prerouting: chain prerouting { type nat hook prerouting priority dstnat; policy accept }',
    );
    expect(others).toContain('missing element service-ips: 10.96.0.1 (a/x/TCP)');
  });
});

describe('a dump', () => {
  const dumped = async (): Promise<{ readonly harness: Harness; readonly dump: unknown }> => {
    const harness = new Harness({ settings: { serviceCidrs: [cidr('10.96.0.0/16')] } });
    await harness.sync(...X);
    harness.kernel.connect(CLIENT);
    const reader = readerOf(harness.kernel, { ...FACTS, serviceCidrs: [cidr('10.96.0.0/16')] });
    // As it comes out of a file.
    const dump: unknown = JSON.parse(JSON.stringify(await reader.dump()));
    return { harness, dump };
  };

  it('is walked and compared like the kernel that it is of', async () => {
    const { harness, dump } = await dumped();
    const reader = nftablesReaderOfDump('IPv4', dump);
    const live = readerOf(harness.kernel, FACTS);
    for (const packet of [
      CLIENT,
      LB,
      { ...LB, source: ip('192.0.2.99') },
      { ...CLIENT, destination: ip('10.96.7.7') },
    ])
      expect(await reader.walk(packet, HOST)).toEqual(await live.walk(packet, HOST));
    expect(await reader.compare(harness.cluster.planner)).toEqual([]);
    expect(JSON.parse(JSON.stringify(await reader.dump()))).toEqual(dump);
  });

  it.each([
    ['nothing', undefined],
    ['a text', 'dump'],
    ['another kind', { kind: 'iptables' }],
    ['another version', { kind: 'nftables', version: 2 }],
    ['another family', { kind: 'nftables', version: 1, family: 'IPv6' }],
  ])('that is %s is refused', (_, dump) => {
    expect(() => nftablesReaderOfDump('IPv4', dump)).toThrow('the dump cannot be read');
  });

  it('with anything changed in it is refused, or still answers', async () => {
    const { dump } = await dumped();
    const text = JSON.stringify(dump);
    const values = ['null', '-1', '"x"', '[]', '{}', '1e9', '"00"', '{"__proto__":1}'];
    const places = [...text.matchAll(/:("(?:[^"\\]|\\.)*"|\d+|true)/g)];
    let refused = 0;
    for (let index = 0; index < 200; index++) {
      const place = places[(index * 7919) % places.length];
      if (!place) throw new Error('nothing to change');
      const value = values[index % values.length] ?? 'null';
      const changed = `${text.slice(0, place.index + 1)}${value}${text.slice(place.index + place[0].length)}`;
      try {
        await nftablesReaderOfDump('IPv4', JSON.parse(changed)).walk(CLIENT, HOST);
      } catch (error) {
        expect(String(error)).toMatch(/cannot be read|too many jumps/);
        refused++;
      }
    }
    expect(refused).toBeGreaterThan(50);
  });
});

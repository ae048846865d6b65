/** The reader over the stand-in for the kernel: what it reads, what it says of packets, and of differences. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { IptablesClient } from '../../../src/modes/iptables/client.ts';
import { IptablesReader, iptablesReaderOfDump } from '../../../src/modes/iptables/inspect.ts';
import type { LayoutName } from '../../../src/modes/iptables/rules/fragment.ts';
import { printRule } from '../../../src/modes/iptables/rules/print.ts';
import { FAMILIES, type Family } from '../../../src/model/ip.ts';
import type { Proxier } from '../../../src/proxy/proxier.ts';
import { SCENARIOS } from '../../scenarios/cases/index.ts';
import { decided, expectedIn, insteadIn, printWalk, walked } from '../../scenarios/expectations.ts';
import { FakeIptables } from '../../scenarios/fakeIptables.ts';
import { service, slice } from '../../scenarios/objects.ts';
import { printRow } from '../../scenarios/packets.ts';
import { cluster, settings } from '../../scenarios/randomCluster.ts';
import { subjectsOf } from '../../scenarios/randomPackets.ts';
import { family as anyFamily, startProxy, TIMEOUT } from '../../scenarios/randomRun.ts';
import { rulesWriter } from '../../scenarios/rulesNode.ts';
import { ip, NODE1, proxyOf, type Scenario, scenario } from '../../scenarios/scenario.ts';
import { ALL_TABLES, FAKE_SETTINGS, fakeReader } from './fakeReader.ts';
import { LAYOUT_NAMES } from './rules/layoutNames.ts';
import { numRuns, seed } from '../../support/randomCases.ts';

async function written(
  family: Family,
  layout: LayoutName,
  given: Scenario,
): Promise<{ readonly iptables: FakeIptables; readonly proxy: Proxier }> {
  const iptables = new FakeIptables();
  const proxy = proxyOf(family, given, await rulesWriter(family, layout, iptables));
  await proxy.sync();
  return { iptables, proxy };
}

const CASES = SCENARIOS.flatMap((each) =>
  FAMILIES.filter((family) => each.rows.some((row) => row.family === family)).map((family) => ({
    name: each.name,
    scenario: each,
    family,
  })),
);

describe.each(LAYOUT_NAMES)(
  'layout %s: chains read one by one, or from a dump, say what the rules do',
  (layout) => {
    test.each(CASES)('$name ($family)', async ({ scenario: given, family }) => {
      const { iptables, proxy } = await written(family, layout, given);
      const reader = await fakeReader(family, layout, iptables);
      const dumped = iptablesReaderOfDump(family, JSON.parse(JSON.stringify(await reader.dump())));
      const rows = given.rows.filter((row) => row.family === family);
      for (const row of rows) {
        const expected = printRow(row, expectedIn(layout, proxy.plan, row));
        expect(printWalk(row, await reader.walk(row.packet, NODE1))).toBe(expected);
        expect(await dumped.walk(row.packet, NODE1)).toEqual(await reader.walk(row.packet, NODE1));
      }
      expect(await reader.compare(proxy.plan)).toEqual([]);
      expect(await dumped.compare(proxy.plan)).toEqual([]);
    });
  },
);

test(`random clusters, seed ${seed}: reader = walker = decide`, { timeout: TIMEOUT }, async () => {
  const layout = fc.constantFrom(...LAYOUT_NAMES);
  await fc.assert(
    fc.asyncProperty(anyFamily, layout, settings, cluster, async (family, ofLayout, view, objects) => {
      const iptables = new FakeIptables();
      const writer = await rulesWriter(family, ofLayout, iptables);
      const { plan } = await startProxy({ family, settings: view, cluster: objects }, writer);
      const isSmall = plan.servicePorts.size % 2 === 0;
      const tables = { ...ALL_TABLES, ...(isSmall && { small: ALL_TABLES.names }) };
      const reader = await fakeReader(family, ofLayout, iptables, tables);
      for (const subject of subjectsOf(plan)) {
        const instead = insteadIn(ofLayout, plan, subject);
        const read = printWalk(subject, await reader.walk(subject.packet, NODE1));
        expect(read).toBe(walked(iptables.tables, subject));
        expect(read).toBe(instead === undefined ? decided(plan, subject) : printRow(subject, instead));
      }
      expect(await reader.compare(plan)).toEqual([]);
    }),
    { seed, numRuns: Math.ceil(numRuns / 4) },
  );
});

describe('one service with two endpoints, and a hundred others', () => {
  const others = Array.from({ length: 100 }, (_, index) => [
    service(`other-${index}`, { clusterIP: `10.96.2.${index + 1}` }),
    slice(`other-${index}`, '8080', 'pod-c'),
  ]);
  const given = scenario(
    'two endpoints',
    [service('web', { clusterIP: '10.96.1.1' }), slice('web', '8080', 'pod-a', 'pod-b'), ...others.flat()],
    'client tcp 10.96.1.1:80 -> pod-a* pod-b*',
  );
  const [row] = given.rows;
  if (!row) throw new Error('no packet');

  test('only the chains on the way are read, each once', async () => {
    const { iptables } = await written('IPv4', 'current', given);
    const reader = await fakeReader('IPv4', 'current', iptables);
    const { outcomes } = await reader.walk(row.packet, NODE1);
    expect(outcomes.map(({ kind }) => kind)).toEqual(['forward', 'forward']);
    const endpoints = iptables.listed.filter((chain) => chain.startsWith('nat KUBE-SEP-'));
    expect(endpoints).toHaveLength(2);
    expect(iptables.listed.filter((chain) => !chain.startsWith('nat KUBE-S')).sort()).toEqual(
      [
        'raw PREROUTING',
        'mangle PREROUTING',
        'mangle FORWARD',
        'mangle POSTROUTING',
        'nat PREROUTING',
        'nat POSTROUTING',
        'nat KUBE-MARK-MASQ',
        'nat KUBE-POSTROUTING',
        'filter FORWARD',
        'filter KUBE-EXTERNAL-SERVICES',
        'filter KUBE-FORWARD',
        'filter KUBE-PROXY-FIREWALL',
        'filter KUBE-SERVICES',
        'security FORWARD',
      ].sort(),
    );
    expect(iptables.listed).toHaveLength(new Set(iptables.listed).size);
  });

  test('small tables are listed as a whole, in one process each', async () => {
    const { iptables } = await written('IPv4', 'current', given);
    const small = new Set(['raw', 'mangle', 'filter', 'security']);
    const reader = await fakeReader('IPv4', 'current', iptables, { ...ALL_TABLES, small });
    await reader.walk(row.packet, NODE1);
    expect(iptables.listed.filter((chain) => !chain.startsWith('nat '))).toEqual(
      ['raw', 'mangle', 'filter', 'security'].map((table): unknown => expect.stringMatching(table)),
    );
  });

  test('the steps have the rules of the kernel, their places and their counters', async () => {
    const { iptables } = await written('IPv4', 'current', given);
    const key = 'default/web cluster IP';
    const place = [...(iptables.tables.get('nat')?.get('KUBE-SERVICES')?.rules ?? [])].findIndex((rule) =>
      rule.matches.some((match) => match.kind === 'comment' && match.text === key),
    );
    const reader = await fakeReader('IPv4', 'current', iptables);
    const { outcomes } = await reader.walk(row.packet, NODE1);
    const step = outcomes[0]?.path.find(({ chain }) => chain === 'KUBE-SERVICES');
    expect(step?.ruleIndex).toBe(place);
    expect(step?.text).toMatch(/^-d 10\.96\.1\.1\/32 -m comment --comment "default\/web cluster IP"/);
    expect(step?.packets).toBe(0);
    expect(outcomes.every(({ path }) => path.every(({ isForeign }) => isForeign === undefined))).toBe(true);
  });

  test('a rule was deleted: the packet passes, and the rule is missing', async () => {
    const { iptables, proxy } = await written('IPv4', 'current', given);
    const rule = iptables.tables
      .get('nat')
      ?.get('KUBE-SERVICES')
      ?.rules.map(printRule)
      .find((text) => text.includes('default/web '));
    iptables.change(`*nat\n-D KUBE-SERVICES ${rule}\nCOMMIT\n`);
    const reader = await fakeReader('IPv4', 'current', iptables);
    expect((await reader.walk(row.packet, NODE1)).outcomes.map(({ kind }) => kind)).toEqual(['pass']);
    expect(await reader.compare(proxy.plan)).toEqual([
      {
        kind: 'missing',
        object: 'chain nat KUBE-SERVICES',
        text: `-A KUBE-SERVICES ${rule}`,
        servicePort: 'default/web/TCP',
      },
    ]);
  });

  test('a rule of an endpoint was replaced', async () => {
    const { iptables, proxy } = await written('IPv4', 'current', given);
    const [chain] = [...(iptables.tables.get('nat') ?? [])].find(
      ([name, { rules }]) =>
        name.startsWith('KUBE-SEP-') && rules.some((rule) => printRule(rule).includes('10.244.1.11:8080')),
    ) ?? [''];
    iptables.change(
      `*nat\n:${chain} - [0:0]\n-A ${chain} -p tcp -j DNAT --to-destination 9.9.9.9:1\nCOMMIT\n`,
    );
    const reader = await fakeReader('IPv4', 'current', iptables);
    const differences = await reader.compare(proxy.plan);
    expect(
      differences.map(({ kind, object, text }) => [
        kind,
        object,
        text.replace(/ -m comment.*"| -m comment --comment \S+/, ''),
      ]),
    ).toEqual([
      ['extra', `chain nat ${chain}`, `-A ${chain} -p tcp -j DNAT --to-destination 9.9.9.9:1`],
      ['missing', `chain nat ${chain}`, `-A ${chain} -s 10.244.1.11 -j KUBE-MARK-MASQ`],
      [
        'missing',
        `chain nat ${chain}`,
        `-A ${chain} -m tcp -p tcp -j DNAT --to-destination 10.244.1.11:8080`,
      ],
    ]);
    expect(new Set(differences.map(({ servicePort }) => servicePort))).toEqual(new Set(['default/web/TCP']));
    expect(printWalk(row, await reader.walk(row.packet, NODE1))).toContain('9.9.9.9');
  });

  test('tables were flushed: every chain is missing', async () => {
    const { iptables, proxy } = await written('IPv4', 'current', given);
    const reader = await fakeReader('IPv4', 'current', new FakeIptables());
    expect((await reader.walk(row.packet, NODE1)).outcomes.map(({ kind }) => kind)).toEqual(['pass']);
    const differences = await reader.compare(proxy.plan);
    expect(new Set(differences.map(({ kind }) => kind))).toEqual(new Set(['missing']));
    const missing = new Set(differences.map(({ object }) => object));
    for (const name of iptables.tables.get('nat')?.keys() ?? [])
      if (name.startsWith('KUBE-')) expect(missing).toContain(`chain nat ${name}`);
  });

  test('chains of a service that is gone are extra', async () => {
    const { iptables } = await written('IPv4', 'current', given);
    const { proxy } = await written('IPv4', 'current', scenario('none', [], ''));
    const differences = await (await fakeReader('IPv4', 'current', iptables)).compare(proxy.plan);
    expect(new Set(differences.map(({ kind }) => kind))).toEqual(new Set(['extra']));
    expect(differences.find(({ object }) => object.startsWith('chain nat KUBE-SVC-'))?.text).toMatch(
      /^-N (KUBE-SVC-\w+)\n-A \1 /,
    );
  });

  test('rules in another order are named as such', async () => {
    const { iptables, proxy } = await written('IPv4', 'current', given);
    const [name, chain] = [...(iptables.tables.get('nat') ?? [])].find(
      ([each, { rules }]) => each.startsWith('KUBE-SVC-') && rules.length === 3,
    ) ?? ['', undefined];
    const rules = chain?.rules.map((rule) => `-A ${name} ${printRule(rule)}\n`).toReversed() ?? [];
    iptables.change(`*nat\n:${name} - [0:0]\n${rules.join('')}COMMIT\n`);
    const reader = await fakeReader('IPv4', 'current', iptables);
    expect(await reader.compare(proxy.plan)).toEqual([
      {
        kind: 'different',
        object: `chain nat ${name}`,
        text: `the rules of ${name} are in another order`,
        servicePort: 'default/web/TCP',
      },
    ]);
  });

  test('a jump is missing; the others of its chain are no difference', async () => {
    const { iptables, proxy } = await written('IPv4', 'current', given);
    const [jump = ''] =
      iptables.tables
        .get('filter')
        ?.get('FORWARD')
        ?.rules.map(printRule)
        .filter((text) => text.endsWith('-j KUBE-FORWARD')) ?? [];
    iptables.change(`*filter\n-D FORWARD ${jump}\nCOMMIT\n`);
    const reader = await fakeReader('IPv4', 'current', iptables);
    expect(await reader.compare(proxy.plan)).toEqual([
      { kind: 'missing', object: 'chain filter FORWARD', text: `-A FORWARD ${jump}` },
    ]);
  });

  test('another program drops before us, or by policy', async () => {
    const { iptables, proxy } = await written('IPv4', 'current', given);
    iptables.change('*filter\n-I FORWARD -d 10.244.0.0/16 -j DROP\nCOMMIT\n');
    const reader = await fakeReader('IPv4', 'current', iptables);
    const { outcomes } = await reader.walk(row.packet, NODE1);
    expect(outcomes.map(({ kind }) => kind)).toEqual(['drop', 'drop']);
    expect(outcomes[0]?.path.at(-1)).toEqual({
      hook: 'filter forward',
      table: 'filter',
      chain: 'FORWARD',
      ruleIndex: 0,
      text: '-d 10.244.0.0/16 -j DROP',
      found: [],
      packets: 0,
      isForeign: true,
    });
    // It is not ours, so the plan has nothing to say of it.
    expect(await reader.compare(proxy.plan)).toEqual([]);
    iptables.change('*filter\n-D FORWARD -d 10.244.0.0/16 -j DROP\n:FORWARD DROP [0:0]\nCOMMIT\n');
    const fromPod = { ...row.packet, source: ip('10.244.1.11'), inInterface: 'cni0' };
    const dropped = (await reader.walk(fromPod, NODE1)).outcomes.find(({ kind }) => kind === 'drop');
    expect(dropped?.path.at(-1)).toMatchObject({ chain: 'FORWARD', text: 'policy drop', isForeign: true });
  });

  test('a large chain is read once for several packets, and again after a change', async () => {
    const { iptables } = await written('IPv4', 'current', given);
    const rules = Array.from(
      { length: 2000 },
      (_, index) => `-I KUBE-SERVICES -d 10.200.${index >> 8}.${index & 255} -j RETURN\n`,
    );
    iptables.change(`*nat\n${rules.join('')}COMMIT\n`);
    let generation = 7;
    const reader = new IptablesReader({
      client: await IptablesClient.open({ family: 'IPv4', variant: 'nft', runner: iptables.runner }),
      layout: 'current',
      settings: FAKE_SETTINGS,
      tables: () => ALL_TABLES,
      generation: () => generation,
      bridges: () => new Set(),
    });
    const reads = (chain: string): number => iptables.listed.filter((each) => each === chain).length;
    await Promise.all([reader.walk(row.packet, NODE1), reader.walk(row.packet, NODE1)]);
    await reader.walk(row.packet, NODE1);
    expect(reads('nat KUBE-SERVICES')).toBe(1);
    // Of small chains the counters are those of now.
    expect(reads('nat PREROUTING')).toBeGreaterThan(1);
    generation++;
    await reader.walk(row.packet, NODE1);
    expect(reads('nat KUBE-SERVICES')).toBe(2);
  });

  test('rules that change while they are read are read again', async () => {
    const { iptables } = await written('IPv4', 'current', given);
    let generation = 0;
    const changing = async (most: number): Promise<readonly string[]> => {
      let left = most;
      const reader = new IptablesReader({
        client: await IptablesClient.open({ family: 'IPv4', variant: 'nft', runner: iptables.runner }),
        layout: 'current',
        settings: FAKE_SETTINGS,
        tables: () => ALL_TABLES,
        generation: () => (left-- > 0 ? generation++ : generation),
        bridges: () => new Set(),
      });
      return (await reader.walk(row.packet, NODE1)).notes;
    };
    expect(await changing(2)).toEqual([]);
    expect(await changing(100)).toEqual(['rules changed while they were read']);
  });

  test('a failing iptables is an error that says so', async () => {
    const { iptables } = await written('IPv4', 'current', given);
    const reader = new IptablesReader({
      client: await IptablesClient.open({
        family: 'IPv4',
        variant: 'nft',
        runner: async (argv, options) =>
          argv.includes('KUBE-SERVICES')
            ? { code: 3, signal: null, stdout: '', stderr: 'iptables: Permission denied' }
            : iptables.runner(argv, options),
      }),
      layout: 'current',
      settings: FAKE_SETTINGS,
      tables: () => ALL_TABLES,
      generation: () => 1,
    });
    await expect(reader.walk(row.packet, NODE1)).rejects.toThrow('Permission denied');
  });
});

describe('a dump from a file that somebody sent', () => {
  const dump = {
    kind: 'iptables',
    version: 1,
    family: 'IPv4',
    variant: 'nft',
    layout: 'current',
    settings: FAKE_SETTINGS,
    addresses: ['192.168.100.2'],
    bridges: [],
    notes: ['seen there'],
    tables: { nat: '*nat\n:PREROUTING DROP [3:4]\nCOMMIT\n' },
  };
  const packet = SCENARIOS[0]?.rows[0]?.packet;

  test('is walked, with what was noted there', async () => {
    if (!packet) throw new Error('no packet');
    const { outcomes, notes } = await iptablesReaderOfDump('IPv4', dump).walk(packet, NODE1);
    expect(outcomes[0]?.path).toEqual([
      expect.objectContaining({ chain: 'PREROUTING', text: 'policy drop', packets: 3 }),
    ]);
    expect(notes).toEqual(['seen there']);
  });

  const broken: readonly (readonly [string, unknown])[] = [
    ['nothing', undefined],
    ['a list', []],
    ['another mode', { ...dump, kind: 'nftables' }],
    ['another version', { ...dump, version: 2 }],
    ['the other family', { ...dump, family: 'IPv6' }],
    ['no variant', { ...dump, variant: 7 }],
    ['no layout', { ...dump, layout: 'toString' }],
    ['no settings', { ...dump, settings: null }],
    ['a mark of no bits', { ...dump, settings: { ...FAKE_SETTINGS, masqueradeMark: 0 } }],
    ['no counters', { ...dump, settings: { ...FAKE_SETTINGS, nfacct: 1 } }],
    ['no address', { ...dump, addresses: ['192.168.100'] }],
    ['numbers for texts', { ...dump, notes: [1] }],
    ['a table of something else', { ...dump, tables: { nat: 1 } }],
  ];
  test.each(broken)('%s is refused', (_, value) => {
    expect(() => iptablesReaderOfDump('IPv4', value)).toThrow(
      expect.objectContaining({ code: 'BUNDLE_UNREADABLE' }),
    );
  });
});

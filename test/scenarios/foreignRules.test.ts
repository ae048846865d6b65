/** Rules of other programs before ours: what the reader says of a packet is what becomes of a real one. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { prefixed } from '../../lab/prefixed.ts';
import { addressOf } from '../../lab/topology.ts';
import { FAMILIES, type Family, hostPort, type Ip } from '../../src/model/ip.ts';
import { type Programs, programsOf, type Variant } from '../../src/modes/iptables/variant.ts';
import { run, type RunResult } from '../../src/system/processes.ts';
import { useLab } from '../lab/requireLab.ts';
import { printWalk } from './expectations.ts';
import { LabNode } from './labNode.ts';
import { PacketSender } from './labPackets.ts';
import { service, slice, slice6 } from './objects.ts';
import { parsePackets, printRow } from './packets.ts';
import { ip, NODE1, scenario } from './scenario.ts';

const SERVICE: Readonly<Record<Family, Ip>> = { IPv4: ip('10.96.1.1'), IPv6: ip('fd00:96::1') };
const PORTALS = ['-m', 'comment', '--comment', 'kubernetes service portals', '-j', 'KUBE-SERVICES'];
const TABLES = ['raw', 'mangle', 'nat', 'filter'];

const WEB = scenario(
  'web',
  [
    service('web', { clusterIP: `${SERVICE.IPv4} ${SERVICE.IPv6}` }),
    slice('web', '8080', 'pod-c'),
    slice6('web', '8080', 'pod-c'),
  ],
  '',
);

interface Case {
  readonly what: string;
  /** After the table; the chain comes first. */
  readonly rule: readonly [table: string, rule: string] | undefined;
  readonly from: 'client' | 'pod-a' | 'node1';
  readonly fate: string;
  /** Of the last step, where the rule ends the way. */
  readonly step?: RegExp;
}

function casesOf(family: Family): readonly Case[] {
  const to = SERVICE[family];
  const podD = hostPort(addressOf('pod-d', family), 8081);
  const podA = addressOf('pod-a', family);
  const nextIp = family === 'IPv4' ? '10.96.1.9' : 'fd00:96::9';
  return [
    { what: 'none', rule: undefined, from: 'client', fate: 'pod-c*' },
    {
      what: 'DROP in FORWARD',
      rule: ['filter', 'FORWARD -p tcp --dport 8080 -j DROP'],
      from: 'client',
      fate: 'drop',
      step: /--dport 8080 -j DROP$/,
    },
    {
      what: 'REJECT in FORWARD',
      rule: ['filter', 'FORWARD -p tcp --dport 8080 -j REJECT --reject-with tcp-reset'],
      from: 'client',
      fate: 'reject',
      step: /-j REJECT --reject-with tcp-reset$/,
    },
    {
      what: 'DROP in OUTPUT',
      rule: ['filter', 'OUTPUT -p tcp --dport 8080 -j DROP'],
      from: 'node1',
      fate: 'drop',
      step: /-j DROP$/,
    },
    {
      what: 'DROP in raw PREROUTING',
      rule: ['raw', `PREROUTING -d ${to} -j DROP`],
      from: 'client',
      fate: 'drop',
      step: /-j DROP$/,
    },
    {
      what: 'DROP in mangle FORWARD, of the first packet alone',
      rule: ['mangle', 'FORWARD -p tcp --syn -j DROP'],
      from: 'client',
      fate: 'drop',
      step: /-j DROP$/,
    },
    {
      what: 'several ports',
      rule: ['mangle', 'PREROUTING -p tcp -m multiport --dports 79,80:90 -j DROP'],
      from: 'client',
      fate: 'drop',
      step: /-j DROP$/,
    },
    {
      what: 'other ports',
      rule: ['mangle', 'PREROUTING -p tcp -m multiport --dports 79,81:90 -j DROP'],
      from: 'client',
      fate: 'pod-c*',
    },
    {
      what: 'a range of addresses',
      rule: ['mangle', `PREROUTING -m iprange --dst-range ${to}-${nextIp} -j DROP`],
      from: 'client',
      fate: 'drop',
      step: /-j DROP$/,
    },
    {
      what: 'the policy of FORWARD: what is not marked is dropped',
      rule: ['filter', '-P FORWARD DROP'],
      from: 'pod-a',
      fate: 'drop',
      step: /^policy drop$/,
    },
    {
      what: 'the policy of FORWARD: what is marked is accepted before',
      rule: ['filter', '-P FORWARD DROP'],
      from: 'client',
      fate: 'pod-c*',
    },
    {
      what: 'ACCEPT before us in nat',
      rule: ['nat', `PREROUTING -d ${to} -j ACCEPT`],
      from: 'client',
      fate: 'pass',
    },
    {
      what: 'no connection tracking, and so no nat',
      rule: ['raw', `PREROUTING -d ${to} -j CT --notrack`],
      from: 'client',
      fate: 'pass',
    },
    {
      what: 'another destination',
      rule: ['nat', `PREROUTING -d ${to} -p tcp -j DNAT --to-destination ${podD}`],
      from: 'pod-a',
      fate: 'pod-d:8081',
    },
    {
      what: 'another source',
      rule: ['nat', `POSTROUTING -s ${podA} -p tcp -j SNAT --to-source ${addressOf('node1', family)}`],
      from: 'pod-a',
      fate: 'pod-c*',
    },
  ];
}

describe.each<Variant>(['nft', 'legacy'])('iptables-%s', (variant) => {
  const lab = useLab();
  const directory = mkdtempSync(join(tmpdir(), 'junction-foreign-'));
  const lockPath = join(directory, 'lock');
  let node: LabNode | undefined;

  afterAll(() => rmSync(directory, { recursive: true }));

  async function iptables(family: Family, ...args: readonly string[]): Promise<void> {
    const result = await inNode(family, 'iptables', args);
    if (result.code !== 0) throw new Error(`iptables ${args.join(' ')}: ${result.stderr}`);
  }

  async function save(family: Family): Promise<string> {
    const { stdout } = await inNode(family, 'save', ['-t', 'nat']);
    return stdout;
  }

  async function restoreSaved(family: Family, text: string): Promise<void> {
    expect((await inNode(family, 'restore', ['-T', 'nat'], text)).code).toBe(0);
  }

  function inNode(
    family: Family,
    program: keyof Programs,
    args: readonly string[],
    stdin?: string,
  ): Promise<RunResult> {
    const runner = prefixed(run, ['nsenter', `--net=/proc/${lab().host('node1').pid}/ns/net`]);
    const env = { XTABLES_LOCKFILE: lockPath };
    return runner([programsOf(family, variant)[program], ...args], { env, stdin });
  }

  async function setRule(family: Family, { rule }: Case, isThere: boolean): Promise<void> {
    if (!rule) return;
    const [table, text] = rule;
    const words = text.split(' ');
    if (words[0] !== '-P') return iptables(family, '-t', table, isThere ? '-I' : '-D', ...words);
    return iptables(family, '-t', table, '-P', words[1] ?? '', isThere ? (words[2] ?? '') : 'ACCEPT');
  }

  const all = FAMILIES.flatMap((family) => casesOf(family).map((each) => ({ ...each, family })));
  test.each(all)('$what ($family)', async (each) => {
    const { family, from, fate, step } = each;
    node ??= await LabNode.start(lab().host('node1'), { layout: 'current', variant, lockPath });
    await node.apply(WEB);
    const [row] = parsePackets(`${from} tcp ${hostPort(SERVICE[family], 80)} -> ${fate}`);
    if (!row) throw new Error('no packet');
    await setRule(family, each, true);
    try {
      const result = await node.reader(family, { legacyTables: TABLES }).walk(row.packet, NODE1);
      expect(printWalk(row, result)).toBe(printRow(row, row.fate));
      const last = result.outcomes[0]?.path.at(-1);
      if (step) expect(last).toMatchObject({ text: expect.stringMatching(step), isForeign: true });
      expect(await new PacketSender(lab()).send([[row, row.fate]])).toEqual([printRow(row, row.fate)]);
      if (!step || step.source.includes('policy')) return;
      const after = await node.reader(family, { legacyTables: TABLES }).walk(row.packet, NODE1);
      expect(after.outcomes[0]?.path.at(-1)?.packets).toBeGreaterThan(last?.packets ?? 0);
    } finally {
      await setRule(family, each, false);
    }
  });

  test.each(FAMILIES)(
    'a deleted rule, and flushed chains, are differences from the plan (%s)',
    async (family) => {
      node ??= await LabNode.start(lab().host('node1'), { layout: 'current', variant, lockPath });
      await node.apply(WEB);
      const reader = node.reader(family, { byChain: true });
      const plan = node.plan(family);
      const compared = (): ReturnType<typeof reader.compare> => reader.compare(plan);
      expect(await compared()).toEqual([]);
      const [row] = parsePackets(`client tcp ${hostPort(SERVICE[family], 80)} -> pass`);
      if (!row) throw new Error('no packet');
      const saved = await save(family);

      await iptables(family, '-t', 'nat', '-D', 'PREROUTING', ...PORTALS);
      expect(printWalk(row, await reader.walk(row.packet, NODE1))).toBe(printRow(row, row.fate));
      expect(await new PacketSender(lab()).send([[row, row.fate]])).toEqual([printRow(row, row.fate)]);
      expect(await compared()).toEqual([
        {
          kind: 'missing',
          object: 'chain nat PREROUTING',
          text: '-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES',
        },
      ]);

      await iptables(family, '-t', 'nat', '-F');
      expect(printWalk(row, await reader.walk(row.packet, NODE1))).toBe(printRow(row, row.fate));
      const flushed = await compared();
      expect(new Set(flushed.map(({ kind }) => kind))).toEqual(new Set(['missing']));
      expect(flushed.filter(({ servicePort }) => servicePort === 'default/web/TCP').length).toBeGreaterThan(
        2,
      );

      await restoreSaved(family, saved);
      expect(await compared()).toEqual([]);
    },
  );
});

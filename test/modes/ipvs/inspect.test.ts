/** The reader over the kernel in memory: what it reads, what it says of packets, and of differences. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FAMILIES, type Family } from '../../../src/model/ip.ts';
import { type IpvsReader, ipvsReaderOfDump } from '../../../src/modes/ipvs/inspect.ts';
import type { WalkOutcome, WalkResult } from '../../../src/modes/walk.ts';
import type { Host, Packet } from '../../../src/plan/decide.ts';
import type { Plan } from '../../../src/plan/types.ts';
import { SCENARIOS } from '../../scenarios/cases/index.ts';
import { decided, expectedIn, insteadIn, printWalk } from '../../scenarios/expectations.ts';
import { FakeIpvsNode, walkedIpvs } from '../../scenarios/ipvsWalk.ts';
import { service, slice } from '../../scenarios/objects.ts';
import { printRow } from '../../scenarios/packets.ts';
import { cluster, settings } from '../../scenarios/randomCluster.ts';
import { subjectsOf } from '../../scenarios/randomPackets.ts';
import { family as anyFamily, startProxy, TIMEOUT } from '../../scenarios/randomRun.ts';
import { ip, NODE1, proxyOf, type Scenario, scenario } from '../../scenarios/scenario.ts';
import { numRuns, seed } from '../../support/randomCases.ts';

const CASES = SCENARIOS.flatMap((each) =>
  FAMILIES.filter((family) => each.rows.some((row) => row.family === family)).map((family) => ({
    name: each.name,
    each,
    family,
  })),
);

interface Written {
  readonly node: FakeIpvsNode;
  readonly plan: Plan;
  readonly reader: IpvsReader;
  readonly host: Host;
}

async function written(family: Family, given: Scenario): Promise<Written> {
  const node = new FakeIpvsNode(family);
  const proxy = proxyOf(family, given, await node.proxier());
  await proxy.sync();
  const { plan } = proxy;
  return { node, plan, reader: await node.reader(), host: { ...NODE1, nodeIp: plan.view.nodeIp } };
}

describe('read one by one, or from a dump, the kernel does what the plan says', () => {
  test.each(CASES)('$name ($family)', async ({ each, family }) => {
    const { reader, plan, host } = await written(family, each);
    const dumped = ipvsReaderOfDump(family, JSON.parse(JSON.stringify(await reader.dump())));
    for (const row of each.rows.filter((one) => one.family === family)) {
      const expected = printRow(row, expectedIn('ipvs', plan, row));
      const walk = await reader.walk(row.packet, host);
      expect(printWalk(row, walk)).toBe(expected);
      expect(await dumped.walk(row.packet, host)).toEqual(walk);
    }
    expect(await reader.compare(plan)).toEqual([]);
    expect(await dumped.compare(plan)).toEqual([]);
  });

  test(`random clusters, seed ${seed}`, { timeout: TIMEOUT }, async () => {
    await fc.assert(
      fc.asyncProperty(anyFamily, settings, cluster, async (family, view, objects) => {
        const node = new FakeIpvsNode(family);
        const { plan } = await startProxy({ family, settings: view, cluster: objects }, await node.proxier());
        const reader = await node.reader();
        for (const subject of subjectsOf(plan)) {
          const instead = insteadIn('ipvs', plan, subject);
          const walk = await reader.walk(subject.packet, { ...NODE1, nodeIp: plan.view.nodeIp });
          const read = printWalk(subject, walk);
          expect(read).toBe(walkedIpvs(node.snapshot, plan, subject));
          expect(read).toBe(instead === undefined ? decided(plan, subject) : printRow(subject, instead));
        }
        expect(await reader.compare(plan)).toEqual([]);
      }),
      { seed, numRuns: Math.ceil(numRuns / 8) },
    );
  });
});

const SHOP = scenario(
  'a shop',
  [
    service('web', { clusterIP: '10.96.1.1', ports: '80', externalIPs: ['203.0.113.9'] }),
    slice('web', '8080', 'pod-a', 'pod-c'),
  ],
  '',
);
const SERVER = 'TCP 10.96.1.1:80';
const FROM_POD: Packet = {
  source: ip('10.244.1.12'),
  destination: ip('10.96.1.1'),
  protocol: 'TCP',
  port: 80,
  inInterface: 'cni0',
};

function summary({ outcomes, notes }: WalkResult<string>): readonly string[] {
  return [
    ...outcomes.map(({ kind, probability, ...rest }) =>
      'to' in rest ? `${kind} ${rest.to}:${rest.port} ${probability}` : kind,
    ),
    ...notes,
  ];
}

function steps({ path }: WalkOutcome<string>): readonly string[] {
  return path.map(({ hook, chain, text, found, isForeign }) =>
    [hook, chain, text, ...found, ...(isForeign ? ['(foreign)'] : [])].join(' | '),
  );
}

/** What the first outcome passed. */
async function pathOf({ reader, host }: Written, packet = FROM_POD): Promise<readonly string[]> {
  const [first] = (await reader.walk(packet, host)).outcomes;
  return first ? steps(first) : [];
}

describe('a walk', () => {
  test('has rules, the entries found, the virtual server and the real server', async () => {
    const shop = await written('IPv4', SHOP);
    const from = { ...FROM_POD, source: ip('198.18.0.10'), inInterface: 'eth1' };
    expect(await pathOf(shop, from)).toEqual([
      'nat prerouting | PREROUTING | -m comment --comment "kubernetes service portals" -j KUBE-SERVICES',
      'nat prerouting | KUBE-SERVICES | ! -s 10.244.0.0/16 -m comment --comment "Kubernetes service cluster ip + port for masquerade purpose" -m set --match-set KUBE-CLUSTER-IP dst,dst -j KUBE-MARK-MASQ | KUBE-CLUSTER-IP { 10.96.1.1,tcp:80 }',
      'nat prerouting | KUBE-MARK-MASQ | -j MARK --or-mark 0x00004000',
      'nat prerouting | KUBE-SERVICES | -m addrtype --dst-type LOCAL -j KUBE-NODE-PORT',
      'nat prerouting | KUBE-SERVICES | -m set --match-set KUBE-CLUSTER-IP dst,dst -j ACCEPT | KUBE-CLUSTER-IP { 10.96.1.1,tcp:80 }',
      'filter input | INPUT | -m comment --comment "kubernetes ipvs access filter" -j KUBE-IPVS-FILTER',
      'filter input | KUBE-IPVS-FILTER | -m set --match-set KUBE-CLUSTER-IP dst,dst -j RETURN | KUBE-CLUSTER-IP { 10.96.1.1,tcp:80 }',
      'filter input | INPUT | -m comment --comment "kube-proxy firewall rules" -j KUBE-PROXY-FIREWALL',
      'filter input | INPUT | -m comment --comment "kubernetes health check rules" -j KUBE-NODE-PORT',
      'ipvs | TCP 10.96.1.1:80 | virtual server, scheduler rr',
      'ipvs | TCP 10.96.1.1:80 | real server 10.244.1.11:8080, weight 1',
      'filter output | OUTPUT | -m comment --comment "kubernetes ipvs access filter" -j KUBE-IPVS-OUT-FILTER',
      'nat postrouting | POSTROUTING | -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING',
      'nat postrouting | KUBE-POSTROUTING | -j MARK --xor-mark 0x00004000',
      'nat postrouting | KUBE-POSTROUTING | -m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully',
    ]);
  });

  test('reads no table and no list: a few entries, one virtual server', async () => {
    const shop = await written('IPv4', SHOP);
    shop.node.kernel.forget();
    await shop.reader.walk(FROM_POD, shop.host);
    expect(shop.node.asked.filter((asked) => asked.startsWith('servers'))).toEqual(['servers 1']);
    expect(shop.node.kernel.reads + shop.node.kernel.destinationReads).toBe(0);
  });

  test('shows a virtual server that is gone', async () => {
    const shop = await written('IPv4', SHOP);
    shop.node.kernel.servers.delete(SERVER);
    expect(summary(await shop.reader.walk(FROM_POD, shop.host))).toEqual(['pass']);
    expect(await pathOf(shop)).toContain('ipvs | TCP 10.96.1.1:80 | no virtual server');
    expect(await shop.reader.compare(shop.plan)).toEqual([
      {
        kind: 'missing',
        object: 'virtual server TCP 10.96.1.1:80',
        text: '-A -t 10.96.1.1:80 -s rr',
        servicePort: 'default/web/TCP',
      },
      ...['10.244.1.11:8080', '10.244.2.11:8080'].map((key) => ({
        kind: 'missing',
        object: 'real server of virtual server TCP 10.96.1.1:80',
        text: `-a -t 10.96.1.1:80 -r ${key} -m -w 1`,
        servicePort: 'default/web/TCP',
      })),
    ]);
  });

  test('shows a set that was emptied: the node refuses what no set names', async () => {
    const shop = await written('IPv4', SHOP);
    shop.node.kernel.set('KUBE-CLUSTER-IP').entries.clear();
    expect(summary(await shop.reader.walk(FROM_POD, shop.host))).toEqual(['reject']);
    expect((await pathOf(shop)).at(-1)).toBe(
      'filter input | KUBE-IPVS-FILTER | -m conntrack --ctstate NEW -m set --match-set KUBE-IPVS-IPS dst -j REJECT | KUBE-IPVS-IPS { 10.96.1.1 }',
    );
    expect(await shop.reader.compare(shop.plan)).toEqual([
      {
        kind: 'missing',
        object: 'entry of the set KUBE-CLUSTER-IP',
        text: 'add KUBE-CLUSTER-IP 10.96.1.1,tcp:80',
        servicePort: 'default/web/TCP',
      },
    ]);
  });

  test('shows a real server with weight 0, and a virtual server whose real servers all have it', async () => {
    const shop = await written('IPv4', SHOP);
    const { kernel } = shop.node;
    kernel.destination(SERVER, '10.244.2.11:8080').weight = 0;
    expect(summary(await shop.reader.walk(FROM_POD, shop.host))).toEqual(['forward 10.244.1.11:8080 1']);
    expect(await shop.reader.compare(shop.plan)).toEqual([
      {
        kind: 'different',
        object: 'real server of virtual server TCP 10.96.1.1:80',
        text: '-a -t 10.96.1.1:80 -r 10.244.2.11:8080 -m -w 0; planned is weight 1',
        servicePort: 'default/web/TCP',
      },
    ]);
    kernel.destination(SERVER, '10.244.1.11:8080').weight = 0;
    expect(summary(await shop.reader.walk(FROM_POD, shop.host))).toEqual(['reject']);
    expect((await pathOf(shop)).at(-1)).toBe(
      'ipvs | TCP 10.96.1.1:80 | virtual server, scheduler rr | real server 10.244.1.11:8080, weight 0 | real server 10.244.2.11:8080, weight 0',
    );
  });

  test('shows an address that kube-ipvs0 has lost: the packet is forwarded, past IPVS', async () => {
    const shop = await written('IPv4', SHOP);
    shop.node.kernel.device?.addresses.delete(ip('10.96.1.1'));
    const { outcomes } = await shop.reader.walk(FROM_POD, shop.host);
    expect(outcomes.map(({ kind }) => kind)).toEqual(['pass']);
    expect((await pathOf(shop)).some((step) => step.startsWith('filter forward'))).toBe(true);
    expect(await shop.reader.compare(shop.plan)).toEqual([
      {
        kind: 'missing',
        object: 'address 10.96.1.1 on kube-ipvs0',
        text: 'address add 10.96.1.1 dev kube-ipvs0',
        servicePort: 'default/web/TCP',
      },
    ]);
  });

  test("shows another program's rule in OUTPUT that drops what IPVS sends on", async () => {
    const shop = await written('IPv4', SHOP);
    await shop.node.iptables.runner(['iptables-nft-restore', '--noflush'], {
      stdin: '*filter\n-I OUTPUT 1 -d 10.244.2.11/32 -j DROP\nCOMMIT\n',
    });
    const walk = await shop.reader.walk(FROM_POD, shop.host);
    expect(summary(walk)).toEqual(['forward 10.244.1.11:8080 0.5', 'drop']);
    const dropped = walk.outcomes.find(({ kind }) => kind === 'drop');
    expect(dropped && steps(dropped).at(-1)).toBe(
      'filter output | OUTPUT | -d 10.244.2.11/32 -j DROP | (foreign)',
    );
  });
});

describe('schedulers', () => {
  const weights = async (scheduler: string, ...each: readonly number[]): Promise<readonly string[]> => {
    const shop = await written('IPv4', SHOP);
    const server = shop.node.kernel.servers.get(SERVER);
    if (!server) throw new Error('no virtual server');
    server.attributes = { ...server.attributes, scheduler };
    for (const [index, destination] of [...server.destinations.values()].entries())
      destination.weight = each[index] ?? 1;
    return summary(await shop.reader.walk(FROM_POD, shop.host));
  };

  test.each([
    ['rr', [3, 1], ['forward 10.244.1.11:8080 0.5', 'forward 10.244.2.11:8080 0.5']],
    ['wrr', [3, 1], ['forward 10.244.1.11:8080 0.75', 'forward 10.244.2.11:8080 0.25']],
    ['fo', [1, 2], ['forward 10.244.2.11:8080 1']],
    [
      'sh',
      [1, 1],
      [
        'forward 10.244.1.11:8080 0.5',
        'forward 10.244.2.11:8080 0.5',
        "TCP 10.96.1.1:80: the scheduler sh chooses one of its real servers by a hash of the client's address; not evaluated",
      ],
    ],
    [
      'lc',
      [1, 1],
      [
        'forward 10.244.1.11:8080 0.5',
        'forward 10.244.2.11:8080 0.5',
        'TCP 10.96.1.1:80: the scheduler lc chooses one of its real servers by their connections; not evaluated',
      ],
    ],
  ] as const)('%s', async (scheduler, each, expected) => {
    expect(await weights(scheduler, ...each)).toEqual(expected);
  });
});

describe('a dump that somebody sent', () => {
  const dumped = async (): Promise<Record<string, unknown>> => {
    const { reader } = await written('IPv4', SHOP);
    return JSON.parse(JSON.stringify(await reader.dump())) as Record<string, unknown>;
  };

  test.each([
    ['nothing', () => undefined],
    ['another mode', (dump: object) => ({ ...dump, kind: 'nftables' })],
    ['another version', (dump: object) => ({ ...dump, version: 2 })],
    ['another family', (dump: object) => ({ ...dump, family: 'IPv6' })],
    ['no sets', (dump: object) => ({ ...dump, sets: {} })],
    [
      'an entry that is none',
      (dump: object) => ({ ...dump, sets: [{ name: 'A', type: 'hash:ip', entries: ['10.0.0.1,tcp:80'] }] }),
    ],
    [
      'a server without a port',
      (dump: object) => ({ ...dump, servers: [{ protocol: 'TCP', ip: '10.0.0.1' }] }),
    ],
    ['a device of another state', (dump: object) => ({ ...dump, device: { state: 'gone' } })],
    [
      'tables that are no text',
      (dump: object) => ({ ...dump, rules: { bridges: [], notes: [], tables: { nat: 1 } } }),
    ],
  ])('%s is refused', async (_, spoiled) => {
    const dump = spoiled(await dumped());
    expect(() => ipvsReaderOfDump('IPv4', dump)).toThrow(/the dump cannot be read/);
  });
});

/** The three modes on kernels in memory, each as strict as the real one. */
import { IptablesClient } from '../../src/modes/iptables/client.ts';
import { IptablesProxier } from '../../src/modes/iptables/proxier.ts';
import { LAYOUTS } from '../../src/modes/iptables/rules/layouts/index.ts';
import { IpvsProxier } from '../../src/modes/ipvs/proxier.ts';
import { NftProxier } from '../../src/modes/nftables/proxier.ts';
import { type Family, type Ip, isLoopback } from '../../src/model/ip.ts';
import type { KernelWriter } from '../../src/proxy/proxier.ts';
import { FakeNftKernel } from '../modes/nftables/rules/fakeKernel.ts';
import { meaningOf as nftMeaning } from '../modes/nftables/rules/cluster.ts';
import { meaningOf as iptablesMeaning } from '../modes/iptables/rules/tablesText.ts';
import { printSets, printWorld } from '../modes/ipvs/rules/cluster.ts';
import { walked } from '../scenarios/expectations.ts';
import { FakeIptables } from '../scenarios/fakeIptables.ts';
import { FakeIpvsNode, walkedIpvs } from '../scenarios/ipvsWalk.ts';
import { walkableOf, walkedNft } from '../scenarios/nftablesWalk.ts';
import type { Row } from '../scenarios/packets.ts';
import { FakeClock } from '../time/fakeClock.ts';
import { Faults, faultyIpvs, faultyNft, faultyRunner } from './faults.ts';
import type { Deed, KernelSide } from './node.ts';
import type { World } from './world.ts';

export const MEMORY_MODES = {
  'iptables current': (family) => new IptablesSide(family, 'current'),
  'iptables classic': (family) => new IptablesSide(family, 'classic'),
  ipvs: (family) => new IpvsSide(family),
  nftables: (family) => new NftSide(family),
} satisfies Record<string, (family: Family) => KernelSide>;

/** Other programs' rules are put behind ours too, so what is compared is what differs either way. */
function differencesOf(seen: readonly string[], wanted: readonly string[]): readonly string[] {
  const [here, there] = [new Set(seen), new Set(wanted)];
  return [
    ...wanted.filter((line) => !here.has(line)).map((line) => `missing: ${line}`),
    ...seen.filter((line) => !there.has(line)).map((line) => `extra: ${line}`),
  ];
}

const withoutLoopback = (ips: readonly Ip[]): readonly Ip[] => ips.filter((each) => !isLoopback(each));

abstract class MemorySide implements KernelSide {
  abstract readonly mechanism: KernelSide['mechanism'];
  readonly isProtected = false;
  readonly family: Family;
  readonly clock = new FakeClock();

  constructor(family: Family) {
    this.family = family;
  }

  abstract start(world: World, faults: Faults): Promise<KernelWriter>;
  abstract packets(rows: readonly Row[], world: World): Promise<readonly string[]>;
  abstract perform(deed: Deed): Promise<boolean>;
  /** What the kernel has, in lines that are the same for two states that mean the same. */
  protected abstract get state(): readonly string[];
  protected abstract fresh(): MemorySide;

  async differences(world: World): Promise<readonly string[]> {
    const fresh = this.fresh();
    const writer = await fresh.start(world, new Faults());
    await writer.sync(world.plan, [...world.plan.servicePorts.keys()]);
    return differencesOf(this.state, fresh.state);
  }

  async missingForeign(): Promise<readonly string[]> {
    return [];
  }

  /** Of the others, conntrack keeps connections whatever the rules are. */
  async openConnections(): Promise<void> {}

  async brokenConnections(): Promise<readonly string[]> {
    return [];
  }

  async endConnections(): Promise<void> {}
}

class NftSide extends MemorySide {
  readonly mechanism = 'nftables';
  readonly #kernel: FakeNftKernel;

  constructor(family: Family) {
    super(family);
    this.#kernel = new FakeNftKernel(family);
  }

  async start(world: World, faults: Faults): Promise<KernelWriter> {
    return new NftProxier({
      client: faultyNft(this.#kernel, faults),
      masqueradeBit: 14,
      counters: true,
      nodeIps: () => withoutLoopback(world.nodeIps),
      clock: this.clock,
    });
  }

  async packets(rows: readonly Row[]): Promise<readonly string[]> {
    const table = walkableOf(this.#kernel);
    return rows.map((row) => walkedNft(table, row));
  }

  protected get state(): readonly string[] {
    return nftMeaning(this.#kernel);
  }

  protected fresh(): MemorySide {
    return new NftSide(this.family);
  }

  async perform(deed: Deed): Promise<boolean> {
    const kernel = this.#kernel;
    switch (deed.kind) {
      case 'flush':
        if (kernel.table) kernel.tamper({ kind: 'deleteTable' });
        return true;
      case 'deleteHooks':
        for (const { name, hook } of kernel.ruleset.chains)
          if (hook) kernel.tamper({ kind: 'deleteChain', chain: name });
        return true;
      case 'deleteService':
        for (const set of kernel.ruleset.sets) {
          const elements = kernel.elements.filter(
            (each) => each.set === set.name && each.key.address === deed.clusterIP,
          );
          if (elements.length > 0) kernel.tamper({ kind: 'deleteElements', set, elements });
        }
        return true;
      case 'addOwnRules': // in a table of its own
        return true;
    }
  }
}

/** What a firewall, docker and a CNI plug-in have. */
const FOREIGN = [
  ['filter', 'MY-FIREWALL', '-s 10.1.0.0/16 -j ACCEPT'],
  ['filter', 'INPUT', '-p tcp -m tcp --dport 22 -j MY-FIREWALL'],
  ['nat', 'POSTROUTING', '-s 172.17.0.0/16 ! -o docker0 -j MASQUERADE'],
] as const;

function foreignText(): string {
  const of = (table: string): string =>
    FOREIGN.filter(([each]) => each === table)
      .map(([, chain, rule]) => `-A ${chain} ${rule}`)
      .join('\n');
  return `*filter\n:MY-FIREWALL - [0:0]\n${of('filter')}\nCOMMIT\n*nat\n${of('nat')}\nCOMMIT\n`;
}

/** Deletes every chain of ours, as somebody does who empties all tables. */
class Tampered {
  readonly iptables = new FakeIptables();
  #hasForeign = false;

  flush(): void {
    for (const table of ['filter', 'nat']) {
      const chains = this.iptables.tables.get(table) ?? new Map<string, { readonly policy?: string }>();
      const own = [...chains].filter(([, { policy }]) => policy === undefined).map(([name]) => name);
      const lines = [...[...chains.keys()].map((name) => `-F ${name}`), ...own.map((name) => `-X ${name}`)];
      this.iptables.change(`*${table}\n${lines.join('\n')}\nCOMMIT\n`);
    }
    if (this.#hasForeign) this.addForeign();
  }

  deleteJumps(): void {
    for (const [table, chains] of this.iptables.tables)
      for (const [chain, { policy, rules }] of chains)
        if (policy !== undefined && rules.length > 0)
          this.iptables.change(`*${table}\n-F ${chain}\nCOMMIT\n`);
    if (this.#hasForeign) this.addForeign();
  }

  addForeign(): void {
    this.iptables.change(foreignText());
    this.#hasForeign = true;
  }

  get missing(): readonly string[] {
    if (!this.#hasForeign) return [];
    const lines = new Set(iptablesMeaning(this.iptables.tables).map((line) => line.trim()));
    return FOREIGN.filter(([, , rule]) => ![...lines].some((line) => sameRule(line, rule))).map(
      ([table, chain, rule]) => `${table} ${chain} ${rule}`,
    );
  }

  /** Without other programs' rules. */
  get meaning(): readonly string[] {
    return iptablesMeaning(this.iptables.tables).filter(
      (line) => !line.includes('MY-FIREWALL') && !FOREIGN.some(([, , rule]) => sameRule(line.trim(), rule)),
    );
  }
}

function sameRule(line: string, rule: string): boolean {
  const words = (text: string): string => text.split(' ').sort().join(' ');
  return words(line) === words(rule);
}

class IptablesSide extends MemorySide {
  readonly mechanism: 'current' | 'classic';
  readonly #node = new Tampered();

  constructor(family: Family, layout: 'current' | 'classic') {
    super(family);
    this.mechanism = layout;
  }

  async start(world: World, faults: Faults): Promise<KernelWriter> {
    const runner = faultyRunner(this.#node.iptables.runner, faults);
    return new IptablesProxier({
      client: await IptablesClient.open({ family: this.family, variant: 'nft', runner }),
      layout: LAYOUTS[this.mechanism],
      masqueradeBit: 14,
      addresses: () => world.nodeIps,
      nfacct: { invalidDropped: true, localhostNodePorts: true },
      dropInvalid: true,
    });
  }

  async packets(rows: readonly Row[]): Promise<readonly string[]> {
    return rows.map((row) => walked(this.#node.iptables.tables, row));
  }

  protected get state(): readonly string[] {
    return this.#node.meaning;
  }

  protected fresh(): MemorySide {
    return new IptablesSide(this.family, this.mechanism);
  }

  async perform(deed: Deed): Promise<boolean> {
    switch (deed.kind) {
      case 'flush':
        this.#node.flush();
        return true;
      case 'deleteHooks':
        this.#node.deleteJumps();
        return true;
      case 'deleteService':
        this.#deleteRulesOf(deed.clusterIP);
        return true;
      case 'addOwnRules':
        this.#node.addForeign();
        return true;
    }
  }

  #deleteRulesOf(clusterIP: Ip): void {
    const { iptables } = this.#node;
    for (const [table, chains] of iptables.tables)
      for (const [chain, { rules }] of chains)
        for (let index = rules.length; index > 0; index--)
          if (rules[index - 1]?.matches.some((each) => 'cidr' in each && each.cidr.startsWith(clusterIP)))
            iptables.change(`*${table}\n-D ${chain} ${index}\nCOMMIT\n`);
  }

  override async missingForeign(): Promise<readonly string[]> {
    return this.#node.missing;
  }
}

/** IPVS looks at drained endpoints so often. */
const DRAIN_MS = 31_000;

class IpvsSide extends MemorySide {
  readonly mechanism = 'ipvs';
  readonly #node: FakeIpvsNode;
  readonly #rules = new Tampered();
  /** Each is of a virtual server and one of its real servers. */
  readonly #connections: [server: string, destination: string][] = [];
  #writer: KernelWriter | undefined;
  #world: World | undefined;

  constructor(family: Family) {
    super(family);
    this.#node = new FakeIpvsNode(family, this.#rules.iptables);
  }

  async start(world: World, faults: Faults): Promise<KernelWriter> {
    const { family, clock } = this;
    const runner = faultyRunner(this.#rules.iptables.runner, faults);
    this.#world = world;
    this.#writer = new IpvsProxier({
      iptables: await IptablesClient.open({ family, variant: 'nft', runner }),
      client: faultyIpvs(this.#node.kernel, faults),
      masqueradeBit: 14,
      scheduler: 'rr',
      excludeCIDRs: [],
      drainLimitMs: 0,
      nodeIps: () => withoutLoopback(world.nodeIps),
      onDrainFailure: (error) => {
        throw error;
      },
      clock,
    });
    return this.#writer;
  }

  async packets(rows: readonly Row[], world: World): Promise<readonly string[]> {
    const { snapshot } = this.#node;
    return rows.map((row) => walkedIpvs(snapshot, world.plan, row));
  }

  protected get state(): readonly string[] {
    return [...printSets(this.#node.kernel), ...printWorld(this.#node.kernel), ...this.#rules.meaning].filter(
      (line) => !line.includes('9.9.9.9'),
    );
  }

  protected fresh(): MemorySide {
    return new IpvsSide(this.family);
  }

  async perform(deed: Deed): Promise<boolean> {
    const { kernel } = this.#node;
    switch (deed.kind) {
      case 'flush':
        this.#rules.flush();
        kernel.servers.clear();
        for (const { entries } of kernel.sets.values()) entries.clear();
        kernel.device = undefined;
        return true;
      case 'deleteHooks':
        this.#rules.deleteJumps();
        return true;
      case 'deleteService':
        for (const [key, { attributes }] of kernel.servers)
          if (attributes.ip === deed.clusterIP) kernel.servers.delete(key);
        kernel.device?.addresses.delete(deed.clusterIP);
        return true;
      case 'addOwnRules':
        this.#rules.addForeign();
        return true;
    }
  }

  override async missingForeign(): Promise<readonly string[]> {
    return this.#rules.missing;
  }

  override async openConnections(): Promise<void> {
    for (const [server, { destinations }] of this.#node.kernel.servers)
      for (const [key, each] of destinations) {
        each.connections = 1;
        this.#connections.push([server, key]);
      }
  }

  override async brokenConnections(): Promise<readonly string[]> {
    const { servers } = this.#node.kernel;
    return this.#connections
      .filter(([server, key]) => servers.get(server)?.destinations.get(key) === undefined)
      .map(([server, key]) => `${server} ${key}`);
  }

  override async endConnections(): Promise<void> {
    this.#connections.length = 0;
    for (const { destinations } of this.#node.kernel.servers.values())
      for (const each of destinations.values()) each.connections = 0;
    await this.clock.advance(DRAIN_MS);
    if (this.#world) await this.#writer?.sync(this.#world.plan, []);
  }
}

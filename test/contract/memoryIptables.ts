/** The iptables mode on the stand-in for iptables, which other programs change too. */
import type { Family, Ip } from '../../src/model/ip.ts';
import type { IptablesReader } from '../../src/modes/iptables/inspect.ts';
import type { Layout, LayoutName } from '../../src/modes/iptables/rules/fragment.ts';
import { LAYOUTS } from '../../src/modes/iptables/rules/layouts/index.ts';
import type { CommandRunner } from '../../src/system/processes.ts';
import type { KernelWriter } from '../../src/proxy/proxier.ts';
import { applyRestore } from '../modes/iptables/rules/restore.ts';
import { walked } from '../scenarios/expectations.ts';
import { describeState } from '../scenarios/kernelState.ts';
import { FakeIptables } from '../scenarios/fakeIptables.ts';
import type { Subject } from '../scenarios/packets.ts';
import { node1Addresses } from '../scenarios/scenario.ts';
import { type Faults, faultyRunner } from './faults.ts';
import { MemorySide } from './memorySide.ts';
import {
  ALL_TABLES,
  type Counters,
  type GivenIptables,
  iptablesMode,
  iptablesReader,
  openIptables,
} from './modes.ts';
import type { Deed } from './node.ts';

const COUNTERS: Counters = { invalidDropped: true, localhostNodePorts: true };

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
export class Tampered {
  readonly iptables: FakeIptables;
  readonly #layout: Layout;
  /** Rules, not chains. */
  readonly #foreign: readonly string[];
  #hasForeign = false;

  constructor(layout: Layout, iptables = new FakeIptables()) {
    this.iptables = iptables;
    this.#layout = layout;
    const lines = describeState(applyRestore(new Map(), foreignText()), layout, 'anyOrder');
    this.#foreign = lines.filter((line) => line.includes(': '));
  }

  flush(): void {
    for (const table of ['filter', 'nat']) {
      const chains = this.iptables.tables.get(table) ?? new Map<string, { readonly policy?: string }>();
      const own = [...chains].filter(([, { policy }]) => policy === undefined).map(([name]) => name);
      const lines = [...[...chains.keys()].map((name) => `-F ${name}`), ...own.map((name) => `-X ${name}`)];
      this.iptables.change(`*${table}\n${lines.join('\n')}\nCOMMIT\n`);
    }
    if (this.#hasForeign) this.addOwnRules();
  }

  deleteHooks(): void {
    for (const [table, chains] of this.iptables.tables)
      for (const [chain, { policy, rules }] of chains)
        if (policy !== undefined && rules.length > 0)
          this.iptables.change(`*${table}\n-F ${chain}\nCOMMIT\n`);
    if (this.#hasForeign) this.addOwnRules();
  }

  deleteRulesOf(clusterIP: Ip): void {
    const { iptables } = this;
    for (const [table, chains] of iptables.tables)
      for (const [chain, { rules }] of chains)
        for (let index = rules.length; index > 0; index--)
          if (rules[index - 1]?.options.some(({ values }) => values[0]?.startsWith(clusterIP)))
            iptables.change(`*${table}\n-D ${chain} ${index}\nCOMMIT\n`);
  }

  addOwnRules(): void {
    this.iptables.change(foreignText());
    this.#hasForeign = true;
  }

  get missing(): readonly string[] {
    if (!this.#hasForeign) return [];
    const lines = new Set(this.#state);
    return this.#foreign.filter((line) => !lines.has(line));
  }

  /** Without other programs' rules. */
  get meaning(): readonly string[] {
    return this.#state.filter((line) => !line.includes('MY-FIREWALL') && !this.#foreign.includes(line));
  }

  get #state(): readonly string[] {
    return describeState(this.iptables.tables, this.#layout, 'anyOrder');
  }
}

export class IptablesSide extends MemorySide {
  readonly mechanism: LayoutName;
  readonly #node: Tampered;
  readonly #nfacct: Counters;

  constructor(family: Family, layout: LayoutName, iptables = new FakeIptables(), nfacct = COUNTERS) {
    super(family);
    this.mechanism = layout;
    this.#node = new Tampered(LAYOUTS[layout], iptables);
    this.#nfacct = nfacct;
  }

  get iptables(): FakeIptables {
    return this.#node.iptables;
  }

  protected async open(nodeIps: () => readonly Ip[], faults: Faults): Promise<KernelWriter> {
    return iptablesMode(await this.#given(faultyRunner(this.iptables.runner, faults), nodeIps));
  }

  async reader(): Promise<IptablesReader> {
    return iptablesReader(
      await this.#given(this.iptables.runner),
      () => ALL_TABLES,
      () => 1,
    );
  }

  async #given(
    runner: CommandRunner,
    nodeIps = (): readonly Ip[] => node1Addresses(this.family),
  ): Promise<GivenIptables> {
    const client = await openIptables(this.family, runner);
    return { client, layout: this.mechanism, nodeIps, nfacct: this.#nfacct };
  }

  async packets(rows: readonly Subject[]): Promise<readonly string[]> {
    return rows.map((row) => walked(this.iptables.tables, row));
  }

  get state(): readonly string[] {
    return this.#node.meaning;
  }

  protected fresh(): MemorySide {
    return new IptablesSide(this.family, this.mechanism);
  }

  async perform(deed: Deed): Promise<boolean> {
    if (deed.kind === 'deleteService') this.#node.deleteRulesOf(deed.clusterIP);
    else this.#node[deed.kind]();
    return true;
  }

  override async missingForeign(): Promise<readonly string[]> {
    return this.#node.missing;
  }
}

/** A cluster in text, a writer with its rules, and a kernel in memory behind both. */
import { IptablesRules } from '../../../../src/modes/iptables/reconcile.ts';
import type { SyncReport } from '../../../../src/proxy/report.ts';
import { IpvsServers } from '../../../../src/modes/ipvs/reconcile.ts';
import type { VirtualServerOptions } from '../../../../src/modes/ipvs/rules/compile.ts';
import { ipvsLayout, ruleOptions } from '../../../../src/modes/ipvs/rules/rules.ts';
import type { Cidr, Family } from '../../../../src/model/ip.ts';
import type { ServicePortId } from '../../../../src/model/serviceTracker.ts';
import type { NodeView } from '../../../../src/plan/types.ts';
import { Cluster } from '../../../plan/cluster.ts';
import { ip, VIEW } from '../../../plan/given.ts';
import { meaningOf } from '../../iptables/rules/fakeKernel.ts';
import { FakeIpvsKernel } from './fakeKernel.ts';
import { printSets, printWorld } from './cluster.ts';

export type Settings = Omit<VirtualServerOptions, 'family'>;

export const NODE_IPS = [ip('192.0.2.10'), ip('192.0.2.11')];
export const SETTINGS: Settings = { scheduler: 'rr', nodeIps: NODE_IPS, nodePortIps: NODE_IPS };
export const DRAIN_LIMIT_MS = 900_000;

export interface HarnessOptions {
  readonly kernel?: FakeIpvsKernel;
  readonly cluster?: Cluster;
  readonly view?: NodeView;
  readonly family?: Family;
  readonly settings?: Partial<Settings>;
  readonly excludeCIDRs?: readonly Cidr[];
  readonly drainLimitMs?: number;
}

export interface Everything {
  readonly sets: readonly string[];
  readonly world: readonly string[];
  readonly rules: readonly string[];
}

export class Harness {
  readonly kernel: FakeIpvsKernel;
  readonly cluster: Cluster;
  settings: Settings;
  /** Milliseconds, as the writer sees them. */
  now = 0;
  readonly #given: HarnessOptions;
  readonly #writer: IpvsServers;
  readonly #unwritten = new Set<ServicePortId>();

  constructor(given: HarnessOptions = {}) {
    const { family = 'IPv4', excludeCIDRs = [], drainLimitMs = DRAIN_LIMIT_MS } = given;
    this.#given = given;
    this.kernel = given.kernel ?? new FakeIpvsKernel(family);
    this.cluster = given.cluster ?? new Cluster(given.view ?? VIEW, family);
    this.settings = { ...SETTINGS, ...given.settings };
    this.#writer = new IpvsServers({
      client: this.kernel,
      rules: new IptablesRules(ipvsLayout, this.kernel.iptables, { now: () => 0 }),
      ruleOptions: ruleOptions(14, true),
      excludeCIDRs,
      drainLimitMs,
      now: () => this.now,
    });
  }

  /** Tells the cluster these lines, and syncs. What a failed sync left undone is tried again by the next. */
  async sync(...lines: readonly string[]): Promise<SyncReport> {
    this.cluster.tell(...lines);
    for (const id of this.cluster.takeDirty()) this.#unwritten.add(id);
    this.kernel.forget();
    const report = await this.#writer.sync(this.cluster.planner, this.#unwritten, this.settings);
    this.#unwritten.clear();
    return report;
  }

  requestFull(): void {
    this.#writer.requestFull();
  }

  async syncFull(...lines: readonly string[]): Promise<SyncReport> {
    this.requestFull();
    return this.sync(...lines);
  }

  async drain(afterMs = 0): Promise<void> {
    this.now += afterMs;
    await this.#writer.drain();
  }

  get isDraining(): boolean {
    return this.#writer.isDraining;
  }

  isBound(address: string): boolean {
    return this.#writer.isBound(address);
  }

  /** Junction stops and starts again: same cluster, same kernel, no memory. */
  restarted(): Harness {
    const { kernel, cluster, settings } = this;
    kernel.before = () => {};
    return new Harness({ ...this.#given, kernel, cluster, settings });
  }

  /** What a kernel has that never had anything else. */
  async fromScratch(): Promise<Everything> {
    const kernel = new FakeIpvsKernel(this.kernel.family);
    kernel.schedulers = this.kernel.schedulers;
    const { cluster, settings } = this;
    const fresh = new Harness({ ...this.#given, kernel, cluster, settings });
    await fresh.sync();
    return fresh.everything;
  }

  /** Entries, servers, destinations, addresses. */
  get world(): readonly string[] {
    return printWorld(this.kernel);
  }

  get everything(): Everything {
    return { sets: printSets(this.kernel), world: this.world, rules: this.rules };
  }

  get rules(): readonly string[] {
    return inOneOrder(meaningOf(this.kernel.iptables.tables));
  }

  /** Every connection ends, and what waited for that goes. */
  async endConnections(): Promise<void> {
    for (const { destinations } of this.kernel.servers.values())
      for (const each of destinations.values()) each.connections = 0;
    await this.drain();
  }
}

/** The only chain with rules of services, which are there in the order in which they came. */
const SERVICES_CHAIN = 'filter KUBE-IPVS-OUT-FILTER';

function inOneOrder(lines: readonly string[]): readonly string[] {
  const start = lines.indexOf(SERVICES_CHAIN) + 1;
  const length = lines.slice(start).findIndex((line) => !line.startsWith('  '));
  return [
    ...lines.slice(0, start),
    ...lines.slice(start, start + length).sort(),
    ...lines.slice(start + length),
  ];
}

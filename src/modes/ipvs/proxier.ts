/** One address family of the IPVS mode: virtual servers, and the rules of iptables that match its sets. */
import { IptablesRules } from '../iptables/sync.ts';
import { IpvsServers } from './reconcile.ts';
import type { IpvsClient } from './rules/client.ts';
import type { VirtualServer } from './rules/compile.ts';
import { ipvsLayout, ruleOptions } from './rules/rules.ts';
import type { Cidr, Ip } from '../../model/ip.ts';
import type { ServicePortId } from '../../model/serviceTracker.ts';
import { answersNodePorts } from '../../plan/decide.ts';
import type { Plan } from '../../plan/types.ts';
import type { SyncReport } from '../../proxy/report.ts';
import { TimeSlice } from '../../time/timeSlice.ts';
import type { Clock } from '../../time/clock.ts';
import { systemClock } from '../../time/systemClock.ts';
import type { IptablesClient } from '../iptables/client.ts';

interface IpvsProxierOptions {
  /** For the rules that match the sets. */
  readonly iptables: IptablesClient;
  readonly client: IpvsClient;
  readonly masqueradeBit: number;
  readonly scheduler: string;
  readonly excludeCIDRs: readonly Cidr[];
  /** After which connections to an endpoint that is gone are cut; 0: never. */
  readonly drainLimitMs: number;
  /** The node's own addresses in this family, without loopback and without those of our device. */
  readonly nodeIps: () => readonly Ip[];
  /** Draining is tried again; nothing else waits for it. */
  readonly onDrainFailure: (error: unknown) => void;
  readonly clock?: Clock;
}

/** How often drained endpoints are looked at, while there are some. */
const DRAIN_INTERVAL_MS = 30_000;
/** A limit on draining is kept to that much. */
const SHORTEST_DRAIN_INTERVAL_MS = 1000;
/** Timers may come a little early. */
const EARLY_MS = 10;

/** Each frontend is a virtual server, an address and entries of sets. */
const WRITES_PER_SYNC = 2000;

export class IpvsProxier {
  readonly writesPerSync = WRITES_PER_SYNC;
  readonly #options: IpvsProxierOptions;
  readonly #servers: IpvsServers;
  readonly #clock: Clock;
  /** When drained endpoints are to be looked at, while there are some. */
  #drainAt: number | undefined;

  constructor(options: IpvsProxierOptions) {
    const { iptables, client, excludeCIDRs, drainLimitMs, clock = systemClock } = options;
    this.#options = options;
    this.#clock = clock;
    const now = (): number => clock.now();
    this.#servers = new IpvsServers({
      client,
      rules: new IptablesRules(ipvsLayout, iptables, { now }),
      ruleOptions: ruleOptions(options.masqueradeBit, iptables.features.randomFully),
      excludeCIDRs,
      drainLimitMs,
      now,
      timeSlice: new TimeSlice(systemClock),
    });
  }

  async sync(plan: Plan, dirty: Iterable<ServicePortId>): Promise<SyncReport> {
    const { scheduler, nodeIps } = this.#options;
    await this.#drainIfDue();
    const ips = [...nodeIps()].sort();
    const nodePortIps = ips.filter((ip) => answersNodePorts(plan.view.nodePorts, ip));
    const report = await this.#servers.sync(plan, dirty, { scheduler, nodeIps: ips, nodePortIps });
    if (!this.#servers.isDraining) this.#drainAt = undefined;
    else this.#drainAt ??= this.#clock.now() + drainInterval(this.#options.drainLimitMs);
    if (this.#drainAt === undefined) return report;
    const drainMs = Math.max(0, this.#drainAt - this.#clock.now());
    return { ...report, retryAfterMs: Math.min(report.retryAfterMs ?? drainMs, drainMs) };
  }

  requestFull(): void {
    this.#servers.requestFull();
  }

  /** Virtual servers as they should be in the kernel. */
  get virtualServers(): Iterable<readonly [key: string, server: VirtualServer]> {
    return this.#servers.servers;
  }

  get isDraining(): boolean {
    return this.#servers.isDraining;
  }

  isBound(ip: Ip): boolean {
    return this.#servers.isBound(ip);
  }

  async #drainIfDue(): Promise<void> {
    if (this.#drainAt === undefined || this.#clock.now() < this.#drainAt - EARLY_MS) return;
    this.#drainAt = undefined;
    await this.#servers.drain().catch(this.#options.onDrainFailure);
  }
}

function drainInterval(limitMs: number): number {
  if (limitMs === 0) return DRAIN_INTERVAL_MS;
  return Math.min(Math.max(limitMs, SHORTEST_DRAIN_INTERVAL_MS), DRAIN_INTERVAL_MS);
}

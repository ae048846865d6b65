/** The IPVS backend of one family, joined to the real kernel. */
import { IptablesBackend, type StaticOptions, type SyncReport } from '../iptables/reconcile.ts';
import { IpvsBackend } from './reconcile.ts';
import type { IpvsClient } from './rules/client.ts';
import { ipvsLayout } from './rules/rules.ts';
import type { Cidr, Ip } from '../../model/ip.ts';
import type { ServicePortId } from '../../model/serviceTracker.ts';
import { answersNodePorts } from '../../plan/decide.ts';
import type { Plan } from '../../plan/types.ts';
import { TimeSlice } from '../../time/timeSlice.ts';
import type { Clock } from '../../time/clock.ts';
import { systemClock } from '../../time/systemClock.ts';
import type { IptablesClient } from '../iptables/client.ts';
import { tableClient } from '../iptables/proxier.ts';

export interface IpvsProxierOptions {
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
  /** Something may be wrong that only a look at the kernel can tell. */
  readonly onDrainFailure: (error: unknown) => void;
  readonly clock?: Clock;
}

/** How often drained endpoints are looked at, while there are some. */
const DRAIN_INTERVAL_MS = 30_000;
/** A limit on draining is kept to that much. */
const SHORTEST_DRAIN_INTERVAL_MS = 1000;

/** Each frontend is a virtual server, an address and entries of sets. */
const WRITES_PER_SYNC = 2000;

export class IpvsProxier {
  readonly writesPerSync = WRITES_PER_SYNC;
  readonly #options: IpvsProxierOptions;
  readonly #backend: IpvsBackend;
  readonly #clock: Clock;
  /** One at a time writes. */
  #turn: Promise<unknown> = Promise.resolve();
  #cancelDrain: (() => void) | undefined;
  #isClosed = false;

  constructor(options: IpvsProxierOptions) {
    const { iptables, client, excludeCIDRs, drainLimitMs, clock = systemClock } = options;
    this.#options = options;
    this.#clock = clock;
    const timeSlice = new TimeSlice(systemClock);
    const rules = new IptablesBackend(ipvsLayout, tableClient(iptables));
    const fixed: Omit<StaticOptions, 'filledSets'> = {
      nodePortIps: 'all',
      masqueradeMark: (1 << options.masqueradeBit) >>> 0,
      randomFully: iptables.features.randomFully,
      dropInvalid: false,
      nfacct: { invalidDropped: false, localhostNodePorts: false },
    };
    this.#backend = new IpvsBackend({
      client,
      rules: {
        sync: (plan, dirty, filledSets, beforeSwitch) =>
          rules.sync(plan, dirty, { ...fixed, filledSets }, beforeSwitch),
        requestFull: () => rules.requestFull(),
      },
      excludeCIDRs,
      drainLimitMs,
      now: () => clock.now(),
      timeSlice,
    });
  }

  sync(plan: Plan, dirty: Iterable<ServicePortId>): Promise<SyncReport> {
    const { scheduler, nodeIps } = this.#options;
    return this.#inTurn(async () => {
      const ips = [...nodeIps()].sort();
      const nodePortIps = ips.filter((ip) => answersNodePorts(plan.view.nodePorts, ip));
      const report = await this.#backend.sync(plan, dirty, { scheduler, nodeIps: ips, nodePortIps });
      this.#scheduleDrain();
      return report;
    });
  }

  requestFull(): void {
    this.#backend.requestFull();
  }

  isBound(ip: Ip): boolean {
    return this.#backend.isBound(ip);
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelDrain?.();
  }

  #scheduleDrain(): void {
    if (this.#cancelDrain || this.#isClosed || !this.#backend.isDraining) return;
    this.#cancelDrain = this.#clock.schedule(drainInterval(this.#options.drainLimitMs), () => {
      this.#cancelDrain = undefined;
      void this.#inTurn(() => this.#backend.drain())
        .catch(this.#options.onDrainFailure)
        .finally(() => this.#scheduleDrain());
    });
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => undefined);
    return done;
  }
}

function drainInterval(limitMs: number): number {
  if (limitMs === 0) return DRAIN_INTERVAL_MS;
  return Math.min(Math.max(limitMs, SHORTEST_DRAIN_INTERVAL_MS), DRAIN_INTERVAL_MS);
}

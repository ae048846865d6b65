/** One address family of the iptables mode: its rules, and what they depend on besides the plan. */
import { IptablesSync } from './sync.ts';
import { type Layout, nodePortIpsOf, type StaticOptions } from './rules/fragment.ts';
import { NFACCT } from './rules/names.ts';
import type { Ip } from '../../model/ip.ts';
import type { ServicePortId } from '../../model/serviceTracker.ts';
import type { Plan } from '../../plan/types.ts';
import type { SyncAttempt, SyncReport } from '../../proxy/report.ts';
import { isJunctionError } from '../../errors.ts';
import { localIps } from '../../system/interfaces.ts';
import { ensureNfacct } from '../../netlink/nfacct.ts';
import { readSysctl } from '../../system/sysctl.ts';
import { systemClock } from '../../time/systemClock.ts';
import type { IptablesClient } from './client.ts';

export interface IptablesProxierOptions {
  readonly client: IptablesClient;
  readonly layout: Layout;
  readonly masqueradeBit: number;
  /** The node's addresses in this family; read again at each sync. */
  readonly addresses?: () => readonly Ip[];
  readonly nfacct?: StaticOptions['nfacct'];
  readonly dropInvalid?: boolean;
  readonly now?: () => number;
}

/** What the rules depend on besides the plan and the node's addresses. */
export type MachineSettings = Omit<StaticOptions, 'nodePortIps'>;

const COUNTERS = ['invalidDropped', 'localhostNodePorts'] as const;

/** Some 400 ms of iptables-nft-restore. In legacy a restore writes the whole table, whatever it is about. */
const WRITES_PER_SYNC = 2000;

export class IptablesProxier {
  readonly writesPerSync: number | undefined;
  readonly rules: IptablesSync;
  readonly addresses: () => readonly Ip[];
  readonly settings: MachineSettings;

  constructor(options: IptablesProxierOptions) {
    const { client, layout, now = () => systemClock.now() } = options;
    this.rules = new IptablesSync(layout, client, { now });
    this.writesPerSync = client.variant === 'legacy' ? undefined : WRITES_PER_SYNC;
    this.addresses = options.addresses ?? (() => localIps(client.family));
    this.settings = {
      masqueradeMark: (1 << options.masqueradeBit) >>> 0,
      randomFully: client.features.randomFully,
      dropInvalid: options.dropInvalid ?? !isConntrackLiberal(),
      nfacct: options.nfacct ?? {
        invalidDropped: hasCounter('invalidDropped'),
        localhostNodePorts: hasCounter('localhostNodePorts'),
      },
    };
  }

  async sync(plan: Plan, dirty: Iterable<ServicePortId>): Promise<SyncReport> {
    const ids = [...dirty];
    const nodePortIps = nodePortIpsOf(plan.view.nodePorts, this.addresses);
    const options = { ...this.settings, nodePortIps };
    try {
      const report = await this.rules.sync(plan, ids, options);
      if (report.refused.size === 0 || !this.#makeMissingCounters()) return report;
    } catch (error) {
      if (!this.#makeMissingCounters()) throw error;
    }
    this.rules.requestFull();
    return this.rules.sync(plan, ids, options);
  }

  /**
   * Whether one was missing: the kernel refuses rules that count into it. Once our rules are flushed no rule holds the
   * counters, and `junction cleanup --force` and `nfacct flush` delete them.
   */
  #makeMissingCounters(): boolean {
    const { nfacct } = this.settings;
    const used = COUNTERS.filter((counter) => nfacct[counter]);
    return used.filter((counter) => ensureNfacct(NFACCT[counter]).state === 'created').length > 0;
  }

  get attempt(): SyncAttempt {
    return this.rules.attempt;
  }

  requestFull(): void {
    this.rules.requestFull();
  }
}

/** With nf_conntrack_tcp_be_liberal the kernel itself lets odd packets through; dropping them would undo that. */
export function isConntrackLiberal(): boolean {
  try {
    return readSysctl('net/netfilter/nf_conntrack_tcp_be_liberal') !== '0';
  } catch (error) {
    if (isJunctionError(error)) return false;
    throw error;
  }
}

function hasCounter(counter: keyof typeof NFACCT): boolean {
  return ensureNfacct(NFACCT[counter]).state !== 'unavailable';
}

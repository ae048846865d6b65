/** What the rules of the iptables mode depend on besides the plan: this machine. */
import { IptablesSync } from './sync.ts';
import { type Layout, nodePortIpsOf, type StaticOptions } from './rules/fragment.ts';
import { NFACCT } from './rules/names.ts';
import type { Ip } from '../../model/ip.ts';
import { isJunctionError } from '../../errors.ts';
import { localIps } from '../../system/interfaces.ts';
import { ensureNfacct } from '../../netlink/nfacct.ts';
import { readSysctl } from '../../system/sysctl.ts';
import { systemClock } from '../../time/systemClock.ts';
import type { IptablesClient } from './client.ts';

/** What the rules depend on besides the plan and the node's addresses. */
export type MachineSettings = Omit<StaticOptions, 'nodePortIps'>;

const COUNTERS = ['invalidDropped', 'localhostNodePorts'] as const;

/** Those of this machine. */
export function machineSettings(
  { features }: IptablesClient,
  masqueradeBit: number,
  hasCounter: (name: string) => boolean,
): MachineSettings {
  return {
    masqueradeMark: (1 << masqueradeBit) >>> 0,
    randomFully: features.randomFully,
    dropInvalid: !isConntrackLiberal(),
    nfacct: {
      invalidDropped: hasCounter(NFACCT.invalidDropped),
      localhostNodePorts: hasCounter(NFACCT.localhostNodePorts),
    },
  };
}

export function makeCounter(name: string): boolean {
  return ensureNfacct(name).state !== 'unavailable';
}

/** Some 400 ms of iptables-nft-restore. In legacy a restore writes the whole table, whatever it is about. */
const WRITES_PER_SYNC = 2000;

interface WriterOptions {
  readonly client: IptablesClient;
  readonly layout: Layout;
  readonly settings: MachineSettings;
  /** The node's addresses in this family. */
  readonly addresses?: () => readonly Ip[];
}

export function iptablesSync({ client, layout, settings, addresses }: WriterOptions): IptablesSync {
  const ips = addresses ?? (() => localIps(client.family));
  return new IptablesSync({
    layout,
    client,
    now: () => systemClock.now(),
    settings: ({ view }) => ({ ...settings, nodePortIps: nodePortIpsOf(view.nodePorts, ips) }),
    writesPerSync: client.variant === 'legacy' ? undefined : WRITES_PER_SYNC,
    makeMissingCounters: () => makeMissingCounters(settings),
  });
}

/** Once our rules are flushed no rule holds the counters, and `junction cleanup --force` and `nfacct flush` delete them. */
function makeMissingCounters({ nfacct }: MachineSettings): boolean {
  const used = COUNTERS.filter((counter) => nfacct[counter]);
  return used.filter((counter) => ensureNfacct(NFACCT[counter]).state === 'created').length > 0;
}

/** With nf_conntrack_tcp_be_liberal the kernel itself lets odd packets through; dropping them would undo that. */
function isConntrackLiberal(): boolean {
  try {
    return readSysctl('net/netfilter/nf_conntrack_tcp_be_liberal') !== '0';
  } catch (error) {
    if (isJunctionError(error)) return false;
    throw error;
  }
}

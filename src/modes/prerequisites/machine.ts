/** All that the checks may do to a machine: reads, and trials that leave nothing behind. `systemMachine.ts` does them. */
import type { Family } from '../../model/ip.ts';
import type { IpsetType } from '../../netlink/ipsetEntry.ts';
import type { IpsetSupport } from '../../netlink/ipset.ts';
import type { CommandRunner } from '../../system/processes.ts';
import type { IptablesClient } from '../iptables/client.ts';
import type { LayoutName } from '../iptables/rules/fragment.ts';
import type { NftTrial, TrialTable } from '../nftables/trialTable.ts';

/** What of the configuration decides on what a mode needs. */
export interface PreflightSettings {
  readonly layout: LayoutName;
  /** Node ports answer on 127.0.0.1. */
  readonly localhostNodePorts: boolean;
  readonly scheduler: string;
  readonly strictArp: boolean;
}

export type Trial =
  | { readonly state: 'done' }
  /** In the kernel's word (`EOPNOTSUPP`) or a program's. */
  | { readonly state: 'refused'; readonly reason: string };

export const DONE: Trial = { state: 'done' };

export type SysctlLook =
  | { readonly state: 'value'; readonly value: string; readonly writable: boolean }
  | { readonly state: 'absent' }
  | { readonly state: 'unreadable'; readonly reason: string };

/** What the checks need of a client of iptables. */
export type TrialClient = Pick<
  IptablesClient,
  'family' | 'version' | 'variant' | 'reason' | 'features' | 'programs' | 'restore'
>;

export interface Machine {
  /** `6.1.0-18-amd64` */
  readonly kernelRelease: string;
  readonly run: CommandRunner;
  /** /proc/self/status */
  processStatus(): string;
  hasIpv6(): boolean;
  /** Whether /lib/modules has the modules of the running kernel. */
  hasModuleFolder(): boolean;
  /** Tries each module once. */
  loadModule(name: string): Promise<Trial>;
  sysctl(name: string): SysctlLook;
  openClient(family: Family): Promise<TrialClient>;
  /** Writes a table of nftables that no other program has, reads it back, and deletes it. */
  tryTable(family: Family, table: TrialTable): Promise<NftTrial>;

  setType(type: IpsetType, family: Family): IpsetSupport;
  /** A set of type hash:ip, until `removeSet`. */
  makeSet(name: string, family: Family): Trial;
  removeSet(name: string): Promise<void>;
  /** A counter for the match nfacct, until `removeCounter`. */
  makeCounter(name: string): Trial;
  removeCounter(name: string): Promise<void>;

  findIpvs(): Trial;
  schedulersInUse(): readonly string[];
  tryScheduler(name: string): Trial;
  link(name: string): { readonly kind: string | undefined } | undefined;
  tryLink(kind: string): Trial;
  tryConntrack(family: Family): Trial;
}

/**
 * All that the checks may do to a machine: looks, and trials that leave nothing behind. `systemMachine.ts` does them to
 * the machine that we run on.
 */
import type { Family } from '../../model/ip.ts';
import type { IptablesClient } from '../iptables/client.ts';
import type { IpsetType } from '../../netlink/ipsetEntry.ts';
import type { IpsetSupport } from '../../netlink/ipset.ts';
import type { CommandRunner } from '../../system/processes.ts';
import type { TableTrial, TrialTable } from './nftTrial.ts';

export type Trial =
  | { readonly state: 'done' }
  /** In the kernel's word (`EOPNOTSUPP`) or a program's. */
  | { readonly state: 'refused'; readonly reason: string };

export const DONE: Trial = { state: 'done' };

export type SysctlLook =
  | { readonly state: 'value'; readonly value: string; readonly writable: boolean }
  | { readonly state: 'absent' }
  | { readonly state: 'unreadable'; readonly reason: string };

export type LinkLook = { readonly kind: string | undefined } | undefined;

/** What the checks need of a door. */
export type TrialDoor = Pick<
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
  /** Whether the modules of the running kernel are in sight. */
  hasModuleFolder(): boolean;
  /** Tries each module once. */
  loadModule(name: string): Promise<Trial>;
  openDoor(family: Family): Promise<TrialDoor>;

  setType(type: IpsetType, family: Family): IpsetSupport;
  /** A set of type hash:ip, until `removeSet`. */
  makeSet(name: string, family: Family): Trial;
  removeSet(name: string): Promise<void>;
  /** A counter for the match nfacct, until `removeCounter`. */
  makeCounter(name: string): Trial;
  removeCounter(name: string): Promise<void>;

  /** Writes a table of nftables that nobody else has, reads it back, and removes it. */
  tryTable(family: Family, table: TrialTable): Promise<TableTrial>;

  findIpvs(): Trial;
  schedulersInUse(): readonly string[];
  tryScheduler(name: string): Trial;

  link(name: string): LinkLook;
  tryLink(kind: string): Trial;
  tryConntrack(family: Family): Trial;
  sysctl(name: string): SysctlLook;
}

/** What the daemon asks of a proxy mode. Each mode is one folder beside this file, and builds all that it runs on. */
import type { ValidConfig } from '../config/effective.ts';
import type { CommandRunner } from '../system/processes.ts';
import type { Log } from '../log/log.ts';
import type { ConnectionReading } from '../telemetry/metrics/connections.ts';
import type { Cidr, Family, Ip } from '../model/ip.ts';
import type { FlowTable } from '../proxy/conntrack.ts';
import type { KernelWriter } from '../proxy/proxier.ts';
import type { FamilyEvents } from '../proxy/foreignChanges.ts';
import type { Verification } from '../proxy/syncRunner.ts';
import type { KernelReader } from './kernelRules.ts';
import { openIptablesMode } from './iptables/mode.ts';
import { openIpvsMode } from './ipvs/mode.ts';
import { openNftMode } from './nftables/mode.ts';

export interface ModeOptions {
  readonly config: ValidConfig;
  readonly nodeName: string;
  readonly log: Log;
  /** Runs programs. */
  readonly runner: CommandRunner;
  /** Ends the start. */
  readonly signal: AbortSignal;
}

export interface Mode {
  readonly name: ValidConfig['mode'];
  /** Those of this machine, with what was found at the start. */
  readonly families: readonly FamilySupport[];
  /** Writes what keeps neighbours from 127.0.0.0/8; route_localnet may be set once it is done. */
  guardLocalnet(): Promise<void>;
  /** Kernel settings of the mode's own: the first that it changes. */
  applySettings(): Promise<void>;
  /** Everything that serves one family. The mode reports to `events` what it notices in the kernel. */
  open(family: Family, events: FamilyEvents): ModeFamily;
  /** Whether one that was left out can be served now. */
  probe(family: Family): Promise<FamilyAnswer>;
  /** How many connections each endpoint got, where the mode counts them. */
  readonly connections?: () => Promise<readonly ConnectionReading[]>;
  close(): Promise<void>;
}

export interface ModeFamily {
  readonly writer: KernelWriter;
  /** How changes by other programs are noticed. */
  readonly verification: Verification;
  /** Reads the kernel for questions. */
  readonly kernel?: KernelReader;
  /** The kernel's flows. */
  readonly flows: FlowTable;
  /** The node's own addresses. */
  localIps(): readonly Ip[];
  /** The first rules are in the kernel. Resolves when what other modes left is removed, as far as it can be now. */
  ready(): Promise<unknown>;
  /** Where cluster IPs come from. */
  setServiceCidrs?(cidrs: readonly Cidr[]): void;
}

/** Whether an address family can be served on this machine, as far as that could be found out. */
export type FamilyAnswer =
  | { readonly state: 'works' }
  /** The machine does not have it. */
  | { readonly state: 'absent'; readonly reason: string; readonly remedy: string }
  /** Nobody knows: the lock was held, a program was killed. */
  | { readonly state: 'unanswered'; readonly reason: string; readonly remedy: string };

export type NotServed = Exclude<FamilyAnswer, { state: 'works' }>;

export interface FamilySupport {
  readonly family: Family;
  readonly answer: FamilyAnswer;
  /** It is served, or may be later. */
  readonly isStartable: boolean;
}

/** Checks first whether the machine has what the mode needs. */
export function openMode(options: ModeOptions): Promise<Mode> {
  switch (options.config.mode) {
    case 'iptables':
      return openIptablesMode(options);
    case 'ipvs':
      return openIpvsMode(options);
    case 'nftables':
      return openNftMode(options);
  }
}

/** A proxy mode, ready to serve: what it writes with, and what it needs besides. */
import type { ValidConfig } from '../config/index.ts';
import type { IptablesClient } from './iptables/client.ts';
import type { CommandRunner } from '../system/processes.ts';
import type { Log } from '../log/log.ts';
import type { ConnectionReading } from '../telemetry/metrics/connections.ts';
import type { Cidr, Family, Ip } from '../model/ip.ts';
import type { SyncRunner, Generation } from '../proxy/syncRunner.ts';
import type { Backend } from '../proxy/proxier.ts';
import type { FamilyAnswer, LeftOutFamily } from './familyState.ts';
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

export interface ProxyMode {
  readonly name: ValidConfig['mode'];
  /** Those that this machine can serve. */
  readonly families: readonly Family[];
  /** Those that it could not serve at the start. */
  readonly leftOut: readonly LeftOutFamily[];
  /** Those that are served, and those that may be later. */
  readonly startable: readonly Family[];
  /** Whether one that was left out can be served now. */
  ask(family: Family): Promise<FamilyAnswer>;
  /** Kernel settings of the mode's own: the first that it changes. */
  applySettings?(): Promise<void>;
  backend(family: Family): Backend;
  /**
   * The loop of a family is made: the mode may ask it to look at the kernel, and tells `loop.foreignChanges` what other
   * programs changed.
   */
  attach(loop: SyncRunner): void;
  /** By what to notice that all rules were flushed; a mode that is told of it needs none. */
  canary?(family: Family): IptablesClient | undefined;
  /** The kernel tells of every change that others make. */
  readonly isTold?: boolean;
  /** Everything is read back in each sync period, whatever that takes: no cheaper look would notice each change. */
  readonly verifiesEachPeriod?: boolean;
  generation?(family: Family): (() => Generation | undefined) | undefined;
  /** Asks for a look at the base-chain jumps; in modes that have it as a look of its own. */
  requestJumps?(family: Family): (() => void) | undefined;
  /** How many connections each endpoint got, where the mode counts them. */
  readonly connections?: () => Promise<readonly ConnectionReading[]>;
  /** Writes what keeps neighbours from 127.0.0.0/8; route_localnet may be set once it is done. */
  readonly guardLocalnet?: () => Promise<void>;
  /** The first rules of a family are in the kernel. */
  ready?(family: Family): void;
  /** Where cluster IPs come from was told. */
  setServiceCidrs?(cidrs: readonly Cidr[]): void;
  /** The node's own addresses. */
  localIps(family: Family): readonly Ip[];
  close(): Promise<void>;
}

/** Looks first whether the machine has what the mode needs. */
export function openMode(options: ModeOptions): Promise<ProxyMode> {
  switch (options.config.mode) {
    case 'iptables':
      return openIptablesMode(options);
    case 'ipvs':
      return openIpvsMode(options);
    case 'nftables':
      return openNftMode(options);
  }
}

/** What `status` says: the running proxy as a whole, and each family. Fields are added, never renamed. */
import type { Family } from '../model/ip.ts';
import type { ModeName } from '../model/mode.ts';
import type { ServicePortId } from '../model/serviceTracker.ts';
import type { Finding } from './types.ts';

/** Times are milliseconds since the epoch. */
export interface Status {
  readonly version: string;
  readonly processId: number;
  readonly node: string;
  readonly mode: ModeName;
  /** Of iptables: `current` or `classic`. */
  readonly layout: string;
  /** `net:[4026531840]`: which network namespace it serves; unset where /proc does not say. */
  readonly networkNamespace?: string;
  readonly startedAt: number;
  readonly now: number;
  readonly source: SourceStatus;
  readonly families: readonly FamilyStatus[];
  /** Not served on this machine. */
  readonly leftOut: readonly { readonly family: Family; readonly reason: string; readonly since: number }[];
  /** `starting` until the first rules of every family that can be served are in the kernel; unset in files of older versions. */
  readonly state?: ProxyStage;
  /** Of a question that waited. */
  readonly wait?: WaitStatus;
  /** Of the network namespace; unset where the kernel does not say. */
  readonly conntrack?: { readonly count: number; readonly max: number };
  /** What its parts find wrong. Empty: nothing. */
  readonly findings: readonly Finding[];
  /** Who answers, where it is not the proxy itself. */
  readonly answeredBy?: AnsweredBy;
}

type ProxyStage = 'starting' | 'errors' | 'ok';

/** Whether everything that the proxy had received is in the kernel. */
interface WaitStatus {
  readonly isApplied: boolean;
  /** How long the answer waited. */
  readonly milliseconds: number;
  /** What is still open, a sentence each. */
  readonly open: readonly string[];
  /** What is wrong and was not waited for, a sentence each. */
  readonly warnings: readonly string[];
}

/** A plan that is written nowhere, of manifests or a cluster; or a bundle, with what the proxy said when it was taken. */
type AnsweredBy =
  | { readonly kind: 'plan' }
  | { readonly kind: 'bundle'; readonly file: string; readonly takenAt: number };

/** Where the objects come from. */
export type SourceStatus =
  | {
      readonly kind: 'api';
      readonly server: string;
      /** When an object last came; unset: none yet. */
      readonly lastEventAt?: number;
      /** Watches that began again after a failure. */
      readonly reconnects: number;
      readonly resources: readonly ResourceStatus[];
    }
  | {
      readonly kind: 'manifests';
      readonly paths: readonly string[];
      readonly lastEventAt?: number;
      /** What is wrong with them now. */
      readonly problems: readonly string[];
    };

export interface ResourceStatus {
  readonly resource: string;
  /** At least once. Until then there is nothing to serve. */
  readonly hasListed: boolean;
  /** What its objects come as; unset before the first answer. */
  readonly encoding?: 'protobuf' | 'json';
  /** Since when it cannot be listed or watched; unset where it can. */
  readonly failingSince?: string;
  readonly reason?: string;
}

export interface FamilyStatus {
  readonly family: Family;
  /** The first rules are in the kernel. */
  readonly isServed: boolean;
  readonly services: number;
  readonly servicePorts: number;
  readonly endpoints: number;
  readonly lastSync?: SyncStatus;
  /** How many there were of each kind. */
  readonly syncs: Readonly<Record<SyncKind, number>>;
  /** When the kernel was last read as a whole, and whether it was as it should be. */
  readonly lastVerification?: { readonly at: number; readonly ms: number; readonly isUnchanged: boolean };
  /** The kernel notifies of every foreign change, so that nothing has to be read now and then. */
  readonly isNotified: boolean;
  /** Ports that other programs have, a sentence each. */
  readonly takenPorts?: readonly string[];
  /** IPVS: endpoints that are gone are kept until their connections have ended. */
  readonly isDraining?: boolean;
  readonly refused: readonly { readonly servicePort: ServicePortId; readonly error: string }[];
  readonly foreignChanges: ForeignChangesStatus;
}

export type SyncKind = 'full' | 'incremental' | 'nothing' | 'failed';

export interface SyncStatus {
  readonly at: number;
  readonly kind: SyncKind;
  readonly cause: string;
  readonly ms: number;
  /** Of `ms`: to plan, and to write. Unset where it failed. */
  readonly planMs?: number;
  readonly writeMs?: number;
  readonly commits: number;
  readonly objects: number;
  readonly error?: string;
}

export interface ForeignChangesStatus {
  readonly count: number;
  readonly byProgram: Readonly<Record<string, number>>;
  readonly last?: {
    readonly at: number;
    readonly objects: readonly string[];
    readonly program: string;
    /** Unset: not repaired yet. */
    readonly repairedMs?: number;
  };
}

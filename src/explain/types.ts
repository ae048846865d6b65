/**
 * The answers: what `explain`, `services`, `endpoints`, `status` and `watch` say, as data. These are the JSON shapes of the
 * local API and of `--output json`; `docs/reference/api.md` documents them. Fields are added, never renamed.
 */
import type { Family, Ip } from '../model/ip.ts';
import type { ModeName } from '../model/mode.ts';
import type { ObjectKey, Protocol, ServiceType, TrafficPolicy } from '../model/objects.ts';
import type { KubernetesObject } from '../model/project/toKubernetes.ts';
import type { ServicePortId } from '../model/serviceTracker.ts';
import type { FrontendKind, PoolName, SourceClass } from '../plan/types.ts';

/** `passed`: no service answers there; the packet goes where it would go without a proxy. */
export type Verdict = 'forwarded' | 'rejected' | 'dropped' | 'passed';

/** Where a text comes from that decides: `Service shop/web`, `spec.loadBalancerSourceRanges`, `examples/web.yaml:19`. */
export interface FieldReference {
  readonly object: string;
  readonly field: string;
  /** File and line, where manifests are the source. */
  readonly where?: string;
}

export interface Finding {
  /** Stable, for programs: `source-not-allowed`, `no-endpoints`, `hints-ignored`. */
  readonly code: string;
  readonly severity: 'error' | 'warning' | 'info';
  /** One line. */
  readonly text: string;
  /** What was seen: a value, a rule, a counter. */
  readonly evidence?: string;
  /** What follows from it. */
  readonly consequence?: string;
  /** A command, or what to change. */
  readonly cure?: string;
  readonly reference?: FieldReference;
}

export interface EndpointName {
  /** `10.244.1.11:8081` */
  readonly address: string;
  readonly pod?: string;
  readonly node?: string;
  /** Of its EndpointSlice, where that says one. */
  readonly zone?: string;
  readonly isLocal: boolean;
}

export interface ChosenEndpoint extends EndpointName {
  /** From 0 to 1. */
  readonly probability: number;
  readonly masquerade: boolean;
  readonly masqueradeReason: string;
}

export type LeftOutReason =
  | 'not-ready'
  | 'terminating'
  | 'other-zone'
  | 'other-node-hint'
  | 'not-local'
  | 'wrong-family'
  | 'no-such-port'
  | 'beyond-capacity';

export interface LeftOutEndpoint extends EndpointName {
  readonly reason: LeftOutReason;
  readonly text: string;
}

export interface FrontendName {
  readonly kind: FrontendKind;
  /** Of a node port, the address that was dialled; unset where none was. */
  readonly address?: Ip;
  readonly port: number;
  readonly service: ObjectKey;
  readonly servicePort: ServicePortId;
  /** `externalTrafficPolicy: Local` */
  readonly policy: string;
  /** Where else the same service port answers: `load-balancer IP 203.0.113.10:80`, `node port 30020`. */
  readonly others: readonly string[];
}

export interface PacketExplanation {
  readonly node: string;
  readonly mode: ModeName;
  readonly family: Family;
  readonly packet: {
    readonly source: Ip;
    /** `shop/pod-a`, where it is known. */
    readonly sourceName?: string;
    readonly destination: Ip;
    readonly port: number;
    readonly protocol: Protocol;
    /** Unset: this node sends it. */
    readonly inInterface?: string;
  };
  readonly source: { readonly class: SourceClass; readonly why: string };
  readonly verdict: Verdict;
  /** One sentence. */
  readonly reason: string;
  readonly frontend?: FrontendName;
  readonly pool?: PoolName;
  readonly affinitySeconds?: number;
  /** What decided, and what is noteworthy besides. */
  readonly findings: readonly Finding[];
  readonly endpoints: readonly ChosenEndpoint[];
  readonly leftOut: readonly LeftOutEndpoint[];
  /** How many endpoints are not listed, where they are many. */
  readonly unlisted?: { readonly endpoints: number; readonly leftOut: number };
  /** Where it would go if what stops it were not there. */
  readonly ifAllowed?: { readonly condition: string; readonly endpoints: readonly ChosenEndpoint[] };
  /** The mode does something else than the plan says, as documented; `verdict` and `endpoints` are the mode's. */
  readonly deviation?: string;
  /** Unset where no kernel was asked. */
  readonly kernel?: KernelExplanation;
}

/** What the rules in the kernel do with the packet, and whether that is what was planned. */
export interface KernelExplanation {
  readonly mode: ModeName;
  /** Milliseconds since the epoch. */
  readonly readAt: number;
  readonly readMs: number;
  /** Unset where the rules could not be read; `notes` says why. */
  readonly asPlanned?: boolean;
  /** Where it is not: each difference, in words. */
  readonly differences: readonly string[];
  readonly outcomes: readonly KernelOutcome[];
  /** How many are not listed, where a service is explained that has many endpoints. */
  readonly moreOutcomes?: number;
  /** What could not be evaluated. */
  readonly notes: readonly string[];
}

export interface KernelOutcome {
  readonly verdict: Verdict;
  /** `10.244.1.11:8081`, of what is forwarded. */
  readonly to?: string;
  readonly masquerade?: boolean;
  readonly probability: number;
  /** An affinity entry of the client sent it there. */
  readonly byAffinity?: boolean;
  readonly steps: readonly KernelStep[];
}

/** A rule that matched, or what IPVS found. */
export interface KernelStep {
  /** `nat prerouting`, `filter forward`, `ipvs` */
  readonly hook: string;
  /** `nat`; `ip junction` */
  readonly table: string;
  readonly chain: string;
  readonly rule: string;
  /** Elements of sets and maps that it found. */
  readonly found: readonly string[];
  /** Unset where nothing counts. */
  readonly packets?: number;
  /** Another program's. */
  readonly isForeign?: boolean;
}

/** `explain NS/NAME`. */
export interface ServiceExplanation {
  readonly node: string;
  readonly mode: ModeName;
  readonly service: ObjectKey;
  /** Unset where this proxy does not serve it; `findings` says why. */
  readonly type?: ServiceType;
  readonly findings: readonly Finding[];
  readonly ports: readonly ServicePortExplanation[];
  /** The last changes that concerned it, newest first. */
  readonly changes: readonly ChangeRecord[];
}

export interface ServicePortExplanation {
  readonly servicePort: ServicePortId;
  readonly family: Family;
  readonly state: ServiceState;
  /** For each frontend and source class, one representative packet. */
  readonly packets: readonly PacketExplanation[];
  /** Frontends that are not among `packets`: a service may have thousands. */
  readonly moreFrontends?: number;
  readonly endpoints: readonly EndpointRow[];
}

export type ServiceState = 'ok' | 'no endpoints' | 'refused' | 'not served' | 'partly served';

export interface ServiceRow {
  readonly service: ObjectKey;
  readonly type: ServiceType;
  readonly clusterIPs: readonly Ip[];
  readonly externalIPs: readonly Ip[];
  readonly loadBalancerIPs: readonly Ip[];
  /** `80/TCP`, `80:30080/TCP` */
  readonly ports: readonly string[];
  readonly endpoints: { readonly ready: number; readonly local: number; readonly all: number };
  readonly externalTrafficPolicy: TrafficPolicy;
  readonly internalTrafficPolicy: TrafficPolicy;
  readonly affinitySeconds?: number;
  readonly state: ServiceState;
  /** Why it is not ok. */
  readonly detail?: string;
}

export interface EndpointRow extends EndpointName {
  readonly servicePort: ServicePortId;
  readonly family: Family;
  readonly ready: boolean;
  readonly serving: boolean;
  readonly terminating: boolean;
  readonly zoneHints: readonly string[];
  readonly nodeHints: readonly string[];
  /** Which pools it is in. */
  readonly pools: readonly PoolName[];
  readonly leftOut?: { readonly reason: LeftOutReason; readonly text: string };
  /** Where the mode counts. */
  readonly connections?: number;
  /** When the kernel was read for that, in milliseconds since the epoch. */
  readonly countedAt?: number;
}

/** What the plan of a service is made from. */
export interface ServiceObjects {
  readonly service: KubernetesObject;
  readonly endpointSlices: readonly KubernetesObject[];
  /** How many are not listed, where they are many. */
  readonly unlisted?: { readonly endpointSlices: number; readonly endpoints: number };
  /** Fields that decide. */
  readonly fields: readonly DecidingField[];
}

export interface DecidingField extends FieldReference {
  /** As a manifest says it: `Local`, `[192.0.2.0/24, 198.51.100.0/24]`. */
  readonly value: string;
}

/** One change: seen, planned, committed. Times are milliseconds since the epoch. */
export interface ChangeRecord {
  readonly id: number;
  readonly family: Family;
  readonly service: ObjectKey;
  /** `EndpointSlice shop/web-1: endpoint 10.1.0.7 not ready` */
  readonly causes: readonly string[];
  /** What it changed in the plan: `shop/web:http/TCP: endpoint 10.1.0.7:80 removed from cluster`. */
  readonly effects: readonly string[];
  readonly seenAt: number;
  readonly plannedAt: number;
  readonly committedAt?: number;
  /** What the kernel said, where it refused. */
  readonly refused?: string;
}

/** One line of `watch`. */
export type WatchEvent =
  | ({ readonly kind: 'change' } & ChangeRecord)
  | {
      readonly kind: 'sync';
      /** When it ended. */
      readonly at: number;
      readonly family: Family;
      readonly sync: 'full' | 'incremental' | 'nothing' | 'failed';
      readonly cause: string;
      readonly commits: number;
      readonly objects: number;
      readonly ms: number;
      /** Of `ms`: to plan, and to write. Unset where it failed. */
      readonly planMs?: number;
      readonly writeMs?: number;
      /** When the oldest change that it wrote was seen; unset where it wrote none. */
      readonly seenAt?: number;
      readonly error?: string;
    }
  | {
      readonly kind: 'foreign';
      readonly at: number;
      readonly family: Family;
      readonly objects: readonly string[];
      readonly program: string;
      readonly repairedMs?: number;
    }
  | {
      readonly kind: 'refused';
      readonly at: number;
      readonly family: Family;
      readonly servicePort: ServicePortId;
      readonly error: string;
    }
  | {
      readonly kind: 'conntrack';
      readonly at: number;
      readonly family: Family;
      readonly deleted: number;
      readonly ms: number;
    }
  /** The client read too slowly. */
  | { readonly kind: 'lost'; readonly at: number; readonly events: number };

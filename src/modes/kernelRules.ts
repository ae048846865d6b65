/** What questions ask a mode's kernel, and what it answers; what a walk through its rules is made of. */
import type { Ip } from '../model/ip.ts';
import type { Protocol } from '../model/objects.ts';
import type { ServicePortId } from '../model/serviceTracker.ts';
import type { Host, Packet } from '../plan/decide.ts';
import type { Plan } from '../plan/types.ts';

/** Yields promises of what has to be read from the kernel, and nothing where other work may have its turn. */
export type Steps<T> = Generator<Promise<unknown> | undefined, T>;

/** What one walk reads, once. */
export class ReadOnce<Value> {
  readonly #known = new Map<string, Value | undefined>();

  *get(key: string, read: () => Promise<Value | undefined>): Steps<Value | undefined> {
    if (!this.#known.has(key)) yield read().then((value) => this.#known.set(key, value));
    return this.#known.get(key);
  }
}

export type HookPoint = 'prerouting' | 'input' | 'forward' | 'output' | 'postrouting';

/** What rules remember of a client: the name of a recent list, a persistence entry, an element of a map. */
export interface Learned {
  readonly name: string;
  readonly key?: Uint8Array | undefined;
  readonly data?: Uint8Array | undefined;
  readonly timeoutMs?: number | undefined;
}

/** A packet on one of its possible ways. */
export interface PacketState {
  readonly source: Ip;
  readonly destination: Ip;
  readonly protocol: Protocol;
  readonly port: number;
  /** What the client dialled. */
  readonly original: { readonly source: Ip; readonly destination: Ip; readonly port: number };
  /** Empty where a packet has no such interface: in the hooks output and postrouting. */
  readonly inInterface: string;
  readonly mark: number;
  readonly isRewritten: boolean;
  /** Of IPVS, which sent it on. The kernel does not count that as DNAT. */
  readonly virtualServer: { readonly ip: Ip; readonly port: number } | undefined;
  /** Its source was rewritten, to an address of this node or to another. */
  readonly masqueraded: boolean;
  /** Connection tracking has not seen it yet. */
  readonly isBeforeConntrack: boolean;
  /** A rule took it out of connection tracking: chains of the type nat do not see it. */
  readonly isUntracked: boolean;
  /** An affinity entry sent it where it goes. */
  readonly byAffinity: boolean;
  readonly probability: number;
  /** How often rules looked it up in sets. */
  readonly lookups: number;
  readonly learned: readonly Learned[];
  readonly trace: Trace | undefined;
  readonly point: HookPoint;
  /** `nat prerouting` */
  readonly hook: string;
}

/** The steps so far, newest first, so that states share their beginnings. */
export interface Trace {
  readonly steps: () => readonly TraceStep[];
  readonly before: Trace | undefined;
}

export type WalkVerdict =
  | { readonly kind: 'accept' | 'drop' | 'reject' | 'return' | 'masquerade' }
  | { readonly kind: 'jump' | 'goto'; readonly chain: string }
  | { readonly kind: 'dnat'; readonly ip: Ip; readonly port: number }
  | { readonly kind: 'snat'; readonly ip: Ip };

/** One of the states in which a packet can leave a rule. */
export interface RuleResult {
  readonly state: PacketState;
  readonly isMatch: boolean;
  /** Without one, the next rule follows. */
  readonly verdict?: WalkVerdict | undefined;
  /** What the rule found in its sets. */
  readonly found?: (() => readonly string[]) | undefined;
  /** What the elements that it found have counted. */
  readonly packets?: number | undefined;
  /** Instead of a step that names the rule. */
  readonly steps?: () => readonly Partial<TraceStep>[];
}

export interface WalkContext {
  readonly isLocal: (ip: Ip) => boolean;
  /** Says what could not be evaluated. */
  readonly note: (text: string) => void;
  /** This node did not send the packet. */
  readonly hasArrived: boolean;
  readonly place: PacketPlace;
  /** Of this family, and not loopback. */
  readonly localIp: Ip | undefined;
}

/** What is known of a packet besides its headers. */
export interface PacketPlace {
  /** It came in through a port of a bridge. */
  readonly viaBridge?: boolean;
  /** By which interface a packet leaves that is not for this node; unset, or `undefined`: it is not known. */
  readonly outInterface?: ((state: PacketState) => string | undefined) | undefined;
  /** Whether rules remember the client under this name; by default they do not. */
  readonly remembers?: (name: string) => boolean;
  /** Looks the packet up in a set of ipset, by one side for each part of its entries; unset: sets are not known. */
  readonly inSet?: (set: string, sides: readonly string[], state: PacketState) => Steps<SetAnswer>;
}

interface SetAnswer {
  /** `undefined`: it is not known. */
  readonly isMember: boolean | undefined;
  /** What it was looked up by: `KUBE-CLUSTER-IP { 10.96.0.1,tcp:80 }`. */
  readonly entry?: string;
}

export interface WalkRule {
  /** With a match of its statements or without. The probabilities of all results add up to that of the state. */
  evaluate(state: PacketState, context: WalkContext): readonly RuleResult[] | Steps<readonly RuleResult[]>;
  print(): string;
  /** Its place in the chain, where the chain is not walked whole. */
  readonly index?: number;
  readonly packets?: number | undefined;
  /** Another program's. */
  readonly isForeign?: boolean | undefined;
}

export interface BaseChain {
  /** `ipvs`: the place of IPVS among the chains. */
  readonly type: 'filter' | 'nat' | 'route' | 'ipvs';
  /** The hook's name in steps, where that is not the type: `raw`. */
  readonly hookName?: string;
  readonly table: string;
  readonly chain: string;
  readonly priority: number;
  readonly policy: 'accept' | 'drop';
  readonly isForeign?: boolean | undefined;
  /** What the policy has counted. */
  readonly policyPackets?: number | undefined;
}

/** What a mode supplies. */
export interface KernelRules {
  /** In the order of equal priorities. A hook without a chain lets everything through. */
  baseChains(point: HookPoint): Steps<readonly BaseChain[]>;
  /** All rules of a chain, or only those that this packet may match. `undefined`: there is no such chain. */
  rulesOf(
    table: string,
    chain: string,
    state: PacketState,
    context: WalkContext,
  ): Steps<readonly WalkRule[] | undefined>;
  /** Addresses of the node besides the host's. */
  isBound?(ip: Ip): boolean;
}

/** A rule on the packet's path. */
export interface TraceStep {
  /** `nat prerouting`, `filter forward` */
  readonly hook: string;
  readonly table: string;
  readonly chain: string;
  readonly ruleIndex: number;
  readonly text: string;
  /** `any-1 { 10.96.0.1 . tcp . 80 : 10.244.0.1 . 8080 }` */
  readonly found: readonly string[];
  /** Packets that the rule, or what it found, has counted; unset where nothing counts. */
  readonly packets?: number | undefined;
  /** Another program's. */
  readonly isForeign?: boolean | undefined;
}

export interface WalkEnding extends Pick<PacketState, 'byAffinity' | 'probability' | 'lookups' | 'learned'> {
  readonly path: readonly TraceStep[];
}

export type WalkOutcome =
  | ({
      readonly kind: 'forward';
      readonly to: Ip;
      readonly port: number;
      readonly masqueraded: boolean;
    } & WalkEnding)
  /** Goes on to where it was going. */
  | ({ readonly kind: 'pass'; readonly masqueraded: boolean } & WalkEnding)
  | ({ readonly kind: 'reject' | 'drop' } & WalkEnding);

export interface WalkResult {
  /** Their probabilities add up to 1. */
  readonly outcomes: readonly WalkOutcome[];
  /** What could not be evaluated, or is missing from the rules. */
  readonly notes: readonly string[];
}

/** Reads the kernel for questions: what becomes of a packet there, and where it differs from the plan. Changes nothing. */
export interface KernelReader {
  /** Of a dump: when it was read, in milliseconds since the epoch. */
  readonly readAt?: number;
  /** Reads only what lies on the packet's way: the rules of a chain, elements by key, one virtual server. */
  walk(packet: Packet, host: Host): Promise<WalkResult>;
  /** Reads all that is ours, and says what a sync would change. */
  compare(plan: Plan): Promise<readonly KernelDifference[]>;
  /** All that is ours, as JSON: kept in a bundle, from which another reader can be made. */
  dump(): Promise<unknown>;
}

export interface KernelDifference {
  /** `missing`: planned and not in the kernel. `extra`: in the kernel and not planned. */
  readonly kind: 'missing' | 'extra' | 'different';
  /** `chain nat KUBE-SVC-…`, `element any-2`, `virtual server TCP 10.96.0.1:80` */
  readonly object: string;
  /** As the mode's own program would print it. */
  readonly text: string;
  readonly servicePort?: ServicePortId;
}

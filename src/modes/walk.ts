/**
 * Sends the first packet of a connection through the rules of a mode, and returns everything that can become of it.
 *
 * `path.ts` draws its way from hook to hook.
 *
 * A random choice splits the packet: every possible way is walked, with its probability. A mode supplies the chains at a
 * hook, the rules of a chain, and what one rule does to a packet.
 */
import { type Ip, isLoopback } from '../model/ip.ts';
import type { Protocol } from '../model/objects.ts';
import type { Host, Packet } from '../plan/decide.ts';
import { addAll, arrival, distinct, ending, firstWay, policyStep } from './walkOutcome.ts';
import { type HookPoint, isOnPath, type PathHook, pathOf, type Trail } from './path.ts';

/** One possible way of the packet, as far as it has been walked. `Learned`: what a mode keeps of a client. */
export interface Way<Learned> {
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
  /** A rule took it out of connection tracking: chains of the type nat do not see it. */
  readonly isUntracked: boolean;
  /** An affinity entry sent it where it goes. */
  readonly byAffinity: boolean;
  readonly probability: number;
  /** Sets that were asked or changed. */
  readonly lookups: number;
  readonly learned: readonly Learned[];
  readonly trail: Trail<TraceStep> | undefined;
  /** Where it is: `nat prerouting`. */
  readonly hook: string;
}

export type WalkVerdict =
  | { readonly kind: 'accept' | 'drop' | 'reject' | 'return' | 'masquerade' }
  | { readonly kind: 'jump' | 'goto'; readonly chain: string }
  | { readonly kind: 'dnat'; readonly ip: Ip; readonly port: number }
  | { readonly kind: 'snat'; readonly ip: Ip };

/** One of the ways in which a packet can leave a rule. */
export interface RuleExit<Learned> {
  readonly way: Way<Learned>;
  readonly isMatch: boolean;
  /** Without one, the next rule follows. */
  readonly verdict?: WalkVerdict | undefined;
  /** What the rule found in its sets; asked for a trace only. */
  readonly found?: () => readonly string[];
  /** What the elements that it found have counted. */
  readonly packets?: number | undefined;
}

/** One of the things that IPVS can do with a packet. */
export interface Balanced<Learned> {
  /** `pass`: it has no virtual server for it. */
  readonly verdict: 'forward' | 'reject' | 'pass';
  /** Of what it forwards, with the real server's address and port. */
  readonly way: Way<Learned>;
  /** Asked for a trace only. */
  readonly steps: () => readonly Pick<TraceStep, 'chain' | 'text' | 'found' | 'packets'>[];
}

export interface WalkContext {
  readonly isLocal: (ip: Ip) => boolean;
  /** What could not be evaluated. */
  readonly note: (text: string) => void;
}

export interface WalkedChain {
  /** `ipvs`: the place of IPVS among the chains. */
  readonly type: 'filter' | 'nat' | 'route' | 'ipvs';
  /** What the hook is called in steps, where that is not the type: `raw`. */
  readonly hookName?: string | undefined;
  readonly table: string;
  readonly chain: string;
  readonly policy: 'accept' | 'drop';
  /** Another program's. */
  readonly isForeign?: boolean | undefined;
  /** What the policy has counted. */
  readonly policyPackets?: number | undefined;
}

/** At once, or in steps where one rule has a way for each of many endpoints. */
export type RuleExits<Learned> = readonly RuleExit<Learned>[] | Generator<void, readonly RuleExit<Learned>[]>;

/** What a mode supplies. */
interface WalkedRules<Rule, Learned> {
  /** In the order in which a packet passes them. A hook without a chain lets everything through. */
  baseChains(point: HookPoint): readonly WalkedChain[];
  /** All, or only those that this packet may match. */
  rulesOf(table: string, chain: string, way: Way<Learned>): readonly Rule[] | undefined;
  /** With a match of its statements or without. The probabilities of all exits add up to that of the way. */
  leave(rule: Rule, way: Way<Learned>, context: WalkContext): RuleExits<Learned>;
  print(rule: Rule, way: Way<Learned>): string;
  /** What is known of a rule besides, where rules were read from a kernel. */
  detailsOf?(
    rule: Rule,
    table: string,
    chain: string,
  ): Pick<TraceStep, 'packets' | 'isForeign'> & Partial<Pick<TraceStep, 'ruleIndex'>>;
  /** IPVS. The probabilities of all that it can do add up to that of the way. */
  balance?(way: Way<Learned>, context: WalkContext): readonly Balanced<Learned>[];
  /** Addresses of the node besides the host's. */
  isBound?(ip: Ip): boolean;
  /** One jump more is a loop. */
  readonly deepestJump: number;
}

export interface WalkOptions {
  /** The default: the rules that matched are in the outcomes' paths. */
  readonly record?: boolean;
  /** Only what it asks for counts: ways that differ in nothing that a rule can see go on as one. */
  readonly isTrial?: boolean;
}

/** A rule on the packet's way. */
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

export interface WalkEnding<Learned> extends Pick<Way<Learned>, 'byAffinity'> {
  readonly probability: number;
  readonly path: readonly TraceStep[];
  readonly lookups: number;
  readonly learned: readonly Learned[];
}

export type WalkOutcome<Learned> =
  | ({
      readonly kind: 'forward';
      readonly to: Ip;
      readonly port: number;
      readonly masqueraded: boolean;
    } & WalkEnding<Learned>)
  /** Goes on to where it was going. */
  | ({ readonly kind: 'pass'; readonly masqueraded: boolean } & WalkEnding<Learned>)
  | ({ readonly kind: 'reject' | 'drop' } & WalkEnding<Learned>);

export interface WalkResult<Learned> {
  /** Their probabilities add up to 1. */
  readonly outcomes: readonly WalkOutcome<Learned>[];
  /** What could not be evaluated, or is missing from the rules. */
  readonly notes: readonly string[];
}

/** A pool may have thousands of endpoints, each of which is a way of its own: a step for each rule on each way. */
export function* walkPacket<Rule, Learned>(
  rules: WalkedRules<Rule, Learned>,
  packet: Packet,
  host: Host,
  options: WalkOptions = {},
): WalkSteps<Learned> {
  const notes = new Set<string>();
  const addresses = new Set<string>(host.addresses);
  const walker = new Walker(rules, options, {
    isLocal: (ip) => isLoopback(ip) || addresses.has(ip) || (rules.isBound?.(ip) ?? false),
    note: (text) => notes.add(text),
  });
  const outcomes = yield* walker.outcomes(packet);
  return { outcomes, notes: [...notes] };
}

/** To be run at once, or in slices. */
export type WalkSteps<Learned> = Generator<void, WalkResult<Learned>>;

interface Decided<Learned> {
  readonly verdict: 'accept' | 'drop' | 'reject';
  readonly way: Way<Learned>;
}

/** Where ways are when a rule, or a chain, is done with them. */
interface Passage<Learned> {
  readonly decided: Decided<Learned>[];
  /** Came out at the end of the chain, or by a return. */
  readonly returned: Way<Learned>[];
}

class Walker<Rule, Learned> {
  readonly #rules: WalkedRules<Rule, Learned>;
  readonly #record: boolean;
  readonly #isTrial: boolean;
  readonly #context: WalkContext;

  constructor(rules: WalkedRules<Rule, Learned>, options: WalkOptions, context: WalkContext) {
    this.#rules = rules;
    this.#record = options.record ?? true;
    this.#isTrial = options.isTrial ?? false;
    this.#context = context;
  }

  *outcomes(packet: Packet): Generator<void, WalkOutcome<Learned>[]> {
    let ways: readonly Way<Learned>[] = [firstWay(packet)];
    const stopped: WalkOutcome<Learned>[] = [];
    for (const hook of pathOf(packet.inInterface)) {
      const through: Way<Learned>[] = [];
      for (const way of ways) {
        if (!isOnPath(hook, way, this.#context.isLocal)) {
          through.push(way);
          continue;
        }
        for (const { verdict, way: after } of yield* this.#passHook(hook, way)) {
          if (verdict === 'accept') through.push(after);
          else stopped.push({ kind: verdict, ...ending(after) });
        }
      }
      ways = this.#isTrial ? distinct(through) : through;
    }
    const arrived: WalkOutcome<Learned>[] = [];
    for (const way of ways) {
      arrived.push(arrival(way));
      yield;
    }
    return [...arrived, ...stopped];
  }

  /** A packet goes on from chain to chain; but once one has rewritten it, no other of the type nat sees it at this hook. */
  *#passHook(
    { point, inInterface, isWithoutNat }: PathHook,
    way: Way<Learned>,
  ): Generator<void, readonly Decided<Learned>[]> {
    const isDestination = point === 'prerouting' || point === 'output';
    let waiting: readonly Way<Learned>[] = [inInterface === undefined ? way : { ...way, inInterface }];
    const ended: Decided<Learned>[] = [];
    for (const base of this.#rules.baseChains(point)) {
      const next: Way<Learned>[] = [];
      for (const each of waiting) {
        const isSettled = each.isUntracked || (isDestination ? each.isRewritten : each.masqueraded);
        if (base.type === 'nat' && (isWithoutNat || isSettled)) {
          next.push(each);
          continue;
        }
        const hook = `${base.hookName ?? base.type} ${point}`;
        for (const one of yield* this.#passBaseChain(base, { ...each, hook })) {
          const isSentOn = base.type === 'ipvs' && one.way.virtualServer && !each.virtualServer;
          if (one.verdict !== 'accept') ended.push(one);
          // What IPVS sends elsewhere begins again at output.
          else if (isSentOn && !this.#context.isLocal(one.way.destination)) ended.push(one);
          else next.push(one.way);
        }
      }
      waiting = next;
    }
    return [...waiting.map((each) => ({ verdict: 'accept', way: each }) as const), ...ended];
  }

  /** What IPVS has sent on already it leaves alone. */
  #balance(way: Way<Learned>): readonly Decided<Learned>[] {
    const balanced = way.virtualServer ? [] : (this.#rules.balance?.(way, this.#context) ?? []);
    if (balanced.length === 0) return [{ verdict: 'accept', way }];
    return balanced.map(({ verdict, way: after, steps }) => {
      let { trail } = way;
      for (const one of this.#record ? steps() : []) {
        const step: TraceStep = { hook: 'ipvs', table: 'ipvs', ruleIndex: 0, ...one };
        trail = { step: () => step, before: trail };
      }
      if (verdict === 'reject') return { verdict, way: { ...after, trail } };
      const virtualServer = verdict === 'forward' ? { ip: way.destination, port: way.port } : undefined;
      return { verdict: 'accept', way: { ...after, virtualServer, trail } };
    });
  }

  *#passBaseChain(base: WalkedChain, way: Way<Learned>): Generator<void, readonly Decided<Learned>[]> {
    const { type, table, chain, policy } = base;
    if (type === 'ipvs') return this.#balance(way);
    const walked = yield* this.#walkChain(table, chain, way, 0);
    const { decided, returned } = walked ?? { decided: [], returned: [way] };
    for (const left of returned)
      decided.push({ verdict: policy, way: policy === 'drop' ? this.#droppedByPolicy(base, left) : left });
    return decided;
  }

  #droppedByPolicy(base: WalkedChain, way: Way<Learned>): Way<Learned> {
    if (!this.#record) return way;
    const ruleIndex = this.#rules.rulesOf(base.table, base.chain, way)?.length ?? 0;
    const step = (): TraceStep => policyStep(base, way.hook, ruleIndex);
    return { ...way, trail: { step, before: way.trail } };
  }

  /** `undefined`: there is no such chain. */
  *#walkChain(
    table: string,
    chain: string,
    way: Way<Learned>,
    depth: number,
  ): Generator<void, Passage<Learned> | undefined> {
    const rules = this.#rules.rulesOf(table, chain, way);
    if (!rules) {
      this.#context.note(`${table === '' ? 'the table' : `table ${table}`} has no chain ${chain}`);
      return undefined;
    }
    if (depth > this.#rules.deepestJump) throw new Error(`too many jumps, a loop through chain ${chain}`);
    const passage: Passage<Learned> = { decided: [], returned: [] };
    let live: readonly Way<Learned>[] = [way];
    for (const [ruleIndex, rule] of rules.entries()) {
      if (live.length === 0) break;
      const next: Way<Learned>[] = [];
      for (const current of live) {
        yield;
        const left = this.#rules.leave(rule, current, this.#context);
        const exits = 'next' in left ? yield* left : left;
        const at = { depth, isChoice: exits.length > 1 };
        for (const exit of exits) {
          const recorded = this.#recorded(table, chain, ruleIndex, rule, exit);
          addAll(next, yield* this.#proceed(table, exit.verdict, recorded, at, passage));
        }
      }
      live = next;
    }
    addAll(passage.returned, live);
    return passage;
  }

  /** Returns the ways that go on to the next rule; others are put where they end. */
  *#proceed(
    table: string,
    verdict: WalkVerdict | undefined,
    way: Way<Learned>,
    { depth, isChoice }: { readonly depth: number; readonly isChoice: boolean },
    { decided, returned }: Passage<Learned>,
  ): Generator<void, readonly Way<Learned>[]> {
    if (!verdict) return [way];
    switch (verdict.kind) {
      case 'jump':
      case 'goto': {
        const below = yield* this.#walkChain(table, verdict.chain, way, depth + 1);
        if (!below) {
          if (!isChoice) return [way];
          // Were it to go on, choices among n missing chains would become 2^n ways.
          decided.push({ verdict: 'accept', way });
          return [];
        }
        addAll(decided, below.decided);
        if (verdict.kind === 'jump') return below.returned;
        addAll(returned, below.returned);
        return [];
      }
      case 'return':
        returned.push(way);
        return [];
      case 'masquerade':
        decided.push({ verdict: 'accept', way: { ...way, masqueraded: true } });
        return [];
      case 'snat':
        decided.push({ verdict: 'accept', way: { ...way, source: verdict.ip, masqueraded: true } });
        return [];
      case 'dnat': {
        const { ip, port } = verdict;
        decided.push({ verdict: 'accept', way: { ...way, destination: ip, port, isRewritten: true } });
        return [];
      }
      default:
        decided.push({ verdict: verdict.kind, way });
        return [];
    }
  }

  #recorded(
    table: string,
    chain: string,
    ruleIndex: number,
    rule: Rule,
    { way, isMatch, found, packets }: RuleExit<Learned>,
  ): Way<Learned> {
    if (!this.#record || !isMatch) return way;
    const step = (): TraceStep => ({
      hook: way.hook,
      table,
      chain,
      ruleIndex,
      text: this.#rules.print(rule, way),
      found: found?.() ?? [],
      ...(packets !== undefined && { packets }),
      ...this.#rules.detailsOf?.(rule, table, chain),
    });
    return { ...way, trail: { step, before: way.trail } };
  }
}

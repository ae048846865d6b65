/**
 * Sends the first packet of a connection through the rules of a kernel and returns everything that can become of it.
 *
 * A random choice splits the packet: every possible state goes on, with its probability.
 *
 * ```
 *  from elsewhere:  prerouting ─┬─ here:  input
 *                               └─ on:    forward ─ postrouting
 *  from the node:   output ─ postrouting ─┬─ here: prerouting and input, from lo
 *                                         └─ on
 * ```
 * IPVS, where a mode has it, is between the chains of input and of output. What it takes goes on as if the node had sent it:
 * through output and postrouting.
 *
 * Chains of the type nat see a connection once for its destination and once for its source: what the node sends to itself
 * has been through output and postrouting, so neither nat prerouting nor nat input sees it again.
 */
import { isLoopback } from '../model/ip.ts';
import type { Host, Packet } from '../plan/decide.ts';
import type {
  Steps,
  HookPoint,
  PacketState,
  WalkVerdict,
  RuleResult,
  WalkContext,
  PacketPlace,
  WalkRule,
  BaseChain,
  KernelRules,
  TraceStep,
  WalkEnding,
  WalkOutcome,
  WalkResult,
} from './kernelRules.ts';

interface PathHook {
  readonly point: HookPoint;
  /** By the destination as it is by then. `routed`, `balanced`: onward, without IPVS or by it. */
  readonly applies: 'always' | 'here' | 'onward' | 'routed' | 'balanced';
  /** The incoming interface, where it is no longer the one that the packet began with. */
  readonly inInterface?: '' | 'lo';
  /** Chains of the type nat do not see it. */
  readonly isWithoutNat?: true;
}

const FROM_ELSEWHERE: readonly PathHook[] = [
  { point: 'prerouting', applies: 'always' },
  { point: 'input', applies: 'here' },
  { point: 'forward', applies: 'routed' },
  { point: 'output', applies: 'balanced', inInterface: '', isWithoutNat: true },
  { point: 'postrouting', applies: 'onward', inInterface: '' },
];

const FROM_NODE: readonly PathHook[] = [
  { point: 'output', applies: 'always' },
  { point: 'output', applies: 'balanced', isWithoutNat: true },
  { point: 'postrouting', applies: 'always' },
  { point: 'prerouting', applies: 'here', inInterface: 'lo', isWithoutNat: true },
  { point: 'input', applies: 'here', inInterface: 'lo', isWithoutNat: true },
];

interface Decided {
  readonly verdict: 'accept' | 'drop' | 'reject';
  readonly state: PacketState;
}

/** Where states are when a chain is done with them. */
interface ChainResult {
  readonly decided: Decided[];
  /** They came to the end of the chain, or to a return. */
  readonly returned: PacketState[];
}

/** Deeper than any kernel goes: only a loop gets there. */
const MAX_JUMPS = 512;
/** Random choices that come back double the states of a packet; nobody has that many rules on the path of one. */
const MAX_RULES = 200_000;
const MAX_NOTES = 50;

/** A pool may have thousands of endpoints, each of which is a state of its own: a step for each rule in each state. */
export function walkPacket(
  rules: KernelRules,
  packet: Packet,
  host: Host,
  place: PacketPlace = {},
): Steps<WalkResult> {
  return new Walk(rules, packet, host, place).run();
}

class Walk {
  readonly #rules: KernelRules;
  readonly #packet: Packet;
  readonly #notes = new Set<string>();
  readonly #context: WalkContext;
  #evaluated = 0;

  constructor(rules: KernelRules, packet: Packet, { addresses }: Host, place: PacketPlace) {
    this.#rules = rules;
    this.#packet = packet;
    const own = new Set(addresses);
    const isIpv6 = packet.destination.includes(':');
    this.#context = {
      isLocal: (ip) => isLoopback(ip) || own.has(ip) || (rules.isBound?.(ip) ?? false),
      note: (text) => this.#notes.add(text),
      hasArrived: packet.inInterface !== undefined,
      place,
      localIp: addresses.find((ip) => ip.includes(':') === isIpv6 && !isLoopback(ip)),
    };
  }

  *run(): Steps<WalkResult> {
    let states: readonly PacketState[] = [this.#begin()];
    const stopped: WalkOutcome[] = [];
    for (const hook of this.#context.hasArrived ? FROM_ELSEWHERE : FROM_NODE) {
      const through: PacketState[] = [];
      for (const state of states) {
        if (!this.#passes(hook, state)) {
          through.push(state);
          continue;
        }
        for (const { verdict, state: after } of yield* this.#passHook(hook, state)) {
          if (verdict === 'accept') through.push(after);
          else stopped.push({ kind: verdict, ...ending(after) });
        }
      }
      states = through;
    }
    const arrived: WalkOutcome[] = [];
    for (const state of states) {
      arrived.push(arrival(state));
      yield;
    }
    return { outcomes: [...arrived, ...stopped], notes: shortened([...this.#notes]) };
  }

  #begin(): PacketState {
    const { source, destination, protocol, port, inInterface = '' } = this.#packet;
    return {
      source,
      destination,
      protocol,
      port,
      original: { source, destination, port },
      inInterface,
      mark: 0,
      isRewritten: false,
      virtualServer: undefined,
      masqueraded: false,
      isBeforeConntrack: false,
      isUntracked: false,
      byAffinity: false,
      probability: 1,
      lookups: 0,
      learned: [],
      trace: undefined,
      point: 'prerouting',
      hook: '',
    };
  }

  #passes({ applies }: PathHook, { destination, virtualServer }: PacketState): boolean {
    if (applies === 'always') return true;
    if (this.#context.isLocal(destination)) return applies === 'here';
    if (applies === 'here') return false;
    return applies === 'onward' || (applies === 'balanced') === (virtualServer !== undefined);
  }

  /** A packet goes on from chain to chain; but once one has rewritten it, no other of the type nat sees it at this hook. */
  *#passHook({ point, inInterface, isWithoutNat }: PathHook, before: PacketState): Steps<readonly Decided[]> {
    const isDestination = point === 'prerouting' || point === 'output';
    const bases = (yield* this.#rules.baseChains(point)).toSorted((a, b) => a.priority - b.priority);
    let waiting: readonly PacketState[] = [
      { ...before, point, ...(inInterface !== undefined && { inInterface }) },
    ];
    const ended: Decided[] = [];
    for (const base of bases) {
      const next: PacketState[] = [];
      for (const state of waiting) {
        const isSettled = state.isUntracked || (isDestination ? state.isRewritten : state.masqueraded);
        if (base.type === 'nat' && (isWithoutNat || isSettled)) {
          next.push(state);
          continue;
        }
        const hook = base.type === 'ipvs' ? 'ipvs' : `${base.hookName ?? base.type} ${point}`;
        const isBeforeConntrack =
          isDestination && base.priority < CONNTRACK_PRIORITY && state.inInterface !== 'lo';
        for (const one of yield* this.#passBaseChain(base, { ...state, hook, isBeforeConntrack })) {
          const isSentOn = one.state.virtualServer !== undefined && !state.virtualServer;
          if (one.verdict !== 'accept') ended.push(one);
          // What IPVS sends elsewhere begins again at output.
          else if (isSentOn && !this.#context.isLocal(one.state.destination)) ended.push(one);
          else next.push(one.state);
        }
      }
      waiting = next;
    }
    return [...waiting.map((state) => ({ verdict: 'accept', state }) as const), ...ended];
  }

  *#passBaseChain(base: BaseChain, state: PacketState): Steps<readonly Decided[]> {
    const { table, chain, policy } = base;
    const walked = yield* this.#walkChain(table, chain, state, 0);
    const { decided, returned } = walked ?? { decided: [], returned: [state] };
    for (const left of returned)
      decided.push({ verdict: policy, state: policy === 'drop' ? droppedByPolicy(base, left) : left });
    return decided;
  }

  /** `undefined`: there is no such chain. */
  *#walkChain(
    table: string,
    chain: string,
    state: PacketState,
    depth: number,
  ): Steps<ChainResult | undefined> {
    if (depth > MAX_JUMPS) throw new Error(`too many jumps, a loop through chain ${chain}`);
    const rules = yield* this.#rules.rulesOf(table, chain, state, this.#context);
    if (!rules) {
      this.#context.note(`${table === '' ? 'the table' : `table ${table}`} has no chain ${chain}`);
      return undefined;
    }
    const done: ChainResult = { decided: [], returned: [] };
    let live: readonly PacketState[] = [state];
    for (const [index, rule] of rules.entries()) {
      if (live.length === 0) break;
      const next: PacketState[] = [];
      for (const current of live) {
        yield;
        const results = yield* this.#evaluate(rule, current);
        const isChoice = results.length > 1;
        for (const result of results) {
          const traced = withStep(result, rule, { table, chain, ruleIndex: rule.index ?? index });
          addAll(next, yield* this.#proceed(table, result.verdict, traced, { depth, isChoice }, done));
        }
      }
      live = next;
    }
    addAll(done.returned, live);
    return done;
  }

  *#evaluate(rule: WalkRule, state: PacketState): Steps<readonly RuleResult[]> {
    if (this.#evaluated++ >= MAX_RULES) {
      this.#context.note(`not evaluated: what comes after ${MAX_RULES} rules`);
      return [{ state, isMatch: false }];
    }
    const results = rule.evaluate(state, this.#context);
    return 'next' in results ? yield* results : results;
  }

  /** Returns the states that go on to the next rule; others are put where they end. */
  *#proceed(
    table: string,
    verdict: WalkVerdict | undefined,
    state: PacketState,
    { depth, isChoice }: { readonly depth: number; readonly isChoice: boolean },
    { decided, returned }: ChainResult,
  ): Steps<readonly PacketState[]> {
    if (!verdict) return [state];
    switch (verdict.kind) {
      case 'jump':
      case 'goto': {
        const below = yield* this.#walkChain(table, verdict.chain, state, depth + 1);
        if (!below) {
          if (!isChoice) return [state];
          // Were it to go on, choices among n missing chains would become 2^n states.
          decided.push({ verdict: 'accept', state });
          return [];
        }
        addAll(decided, below.decided);
        if (verdict.kind === 'jump') return below.returned;
        addAll(returned, below.returned);
        return [];
      }
      case 'return':
        returned.push(state);
        return [];
      case 'masquerade':
        decided.push({ verdict: 'accept', state: { ...state, masqueraded: true } });
        return [];
      case 'snat':
        decided.push({ verdict: 'accept', state: { ...state, source: verdict.ip, masqueraded: true } });
        return [];
      case 'dnat': {
        const { ip, port } = verdict;
        decided.push({ verdict: 'accept', state: { ...state, destination: ip, port, isRewritten: true } });
        return [];
      }
      default:
        decided.push({ verdict: verdict.kind, state });
        return [];
    }
  }
}

/** NF_IP_PRI_CONNTRACK */
const CONNTRACK_PRIORITY = -200;

function withStep(
  { state, isMatch, found, packets, steps }: RuleResult,
  rule: WalkRule,
  place: Pick<TraceStep, 'table' | 'chain' | 'ruleIndex'>,
): PacketState {
  if (!isMatch) return state;
  const counted = packets ?? rule.packets;
  const own = (): TraceStep => ({
    hook: state.hook,
    ...place,
    text: rule.print(),
    found: found?.() ?? [],
    ...(counted !== undefined && { packets: counted }),
    ...(rule.isForeign && { isForeign: true }),
  });
  // Made once: thousands of states share it.
  let made: readonly TraceStep[] | undefined;
  const all = (): readonly TraceStep[] =>
    (made ??= steps ? steps().map((step) => ({ ...own(), ...step })) : [own()]);
  return { ...state, trace: { steps: all, before: state.trace } };
}

/** A step for a packet that came to the end of a base chain. */
function droppedByPolicy(base: BaseChain, state: PacketState): PacketState {
  const { table, chain, isForeign, policyPackets: packets } = base;
  const step: TraceStep = {
    hook: state.hook,
    table,
    chain,
    ruleIndex: -1,
    text: 'policy drop',
    found: [],
    ...(packets !== undefined && { packets }),
    ...(isForeign && { isForeign }),
  };
  return { ...state, trace: { steps: () => [step], before: state.trace } };
}

function arrival(state: PacketState): WalkOutcome {
  const { masqueraded, destination, port } = state;
  if (!state.isRewritten && !state.virtualServer) return { kind: 'pass', masqueraded, ...ending(state) };
  return { kind: 'forward', to: destination, port, masqueraded, ...ending(state) };
}

function ending({ probability, trace, lookups, learned, byAffinity }: PacketState): WalkEnding {
  const path: (readonly TraceStep[])[] = [];
  for (let at = trace; at; at = at.before) path.push(at.steps());
  return { probability, path: path.toReversed().flat(), lookups, learned, byAffinity };
}

function shortened(notes: readonly string[]): readonly string[] {
  if (notes.length <= MAX_NOTES) return notes;
  return [...notes.slice(0, MAX_NOTES), `and ${notes.length - MAX_NOTES} notes more`];
}

/** Not `push(...more)`: of very many, that is too many arguments. */
function addAll<T>(list: T[], more: readonly T[]): void {
  for (const each of more) list.push(each);
}

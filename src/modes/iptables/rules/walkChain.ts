/**
 * A packet's way through one chain and the chains that it jumps to.
 *
 * A random choice splits the packet: every possible way is walked, with its probability.
 */
import { parseIp } from '../../../model/ip.ts';
import type { ParsedChain } from './parse.ts';
import type { Rule, Target } from './rule.ts';
import { chanceOf, type InFlight, type World } from './walkMatch.ts';

/** One possible way of the packet, as far as it has been walked. */
export interface Way extends InFlight {
  readonly probability: number;
  readonly masqueraded: boolean;
  /** The recent-client lists that the client was put on. */
  readonly remembered: readonly string[];
  readonly trail: Trail | undefined;
}

/** The rules that matched, newest first, so that ways share their beginnings. */
export interface Trail {
  readonly table: string;
  readonly chain: string;
  readonly ruleIndex: number;
  readonly rule: Rule;
  readonly before: Trail | undefined;
}

export type Verdict = 'accept' | 'drop' | 'reject';

export interface Decided {
  readonly verdict: Verdict;
  readonly way: Way;
}

export interface Passage {
  readonly decided: readonly Decided[];
  /** The ways that came out at the end, or by RETURN. */
  readonly returned: readonly Way[];
}

export interface Ground extends World {
  readonly table: string;
  readonly chains: ReadonlyMap<string, ParsedChain>;
  readonly record: boolean;
}

/** Deeper than any kernel goes: only a loop gets there. */
const MAX_DEPTH = 512;

export function walkChain(ground: Ground, chain: string, way: Way, depth = 0): Passage {
  const rules = ground.chains.get(chain)?.rules;
  if (!rules) {
    ground.note(`table ${ground.table} has no chain ${chain}`);
    return { decided: [], returned: [way] };
  }
  if (depth > MAX_DEPTH) throw new Error(`a loop of jumps through chain ${chain} of table ${ground.table}`);
  const decided: Decided[] = [];
  const returned: Way[] = [];
  let live: Way[] = [way];
  for (const [ruleIndex, rule] of rules.entries()) {
    if (live.length === 0) break;
    const next: Way[] = [];
    for (const current of live) {
      const chance = chanceOf(rule, current, ground);
      if (chance < 1) next.push(chance === 0 ? current : scaled(current, 1 - chance));
      if (chance === 0) continue;
      const taken = matched(ground, chain, ruleIndex, rule, scaled(current, chance));
      const step = follow(ground, rule.target, taken, depth);
      decided.push(...step.decided);
      returned.push(...step.returned);
      next.push(...step.live);
    }
    live = next;
  }
  return { decided, returned: [...returned, ...live] };
}

interface Step extends Passage {
  /** The ways that go on to the next rule. */
  readonly live: readonly Way[];
}

const NOWHERE: Step = { decided: [], returned: [], live: [] };

function follow(ground: Ground, target: Target | undefined, way: Way, depth: number): Step {
  switch (target?.kind) {
    case undefined:
      return { ...NOWHERE, live: [way] };
    case 'jump': {
      const { decided, returned } = walkChain(ground, target.chain, way, depth + 1);
      return { ...NOWHERE, decided, live: returned };
    }
    case 'return':
      return { ...NOWHERE, returned: [way] };
    case 'accept':
    case 'drop':
    case 'reject':
      return { ...NOWHERE, decided: [{ verdict: target.kind, way }] };
    case 'mark': {
      const mark = target.operation === 'xor' ? way.mark ^ target.value : way.mark | target.value;
      return { ...NOWHERE, live: [{ ...way, mark: mark >>> 0 }] };
    }
    case 'masquerade':
      return { ...NOWHERE, decided: [{ verdict: 'accept', way: { ...way, masqueraded: true } }] };
    case 'dnat':
      return { ...NOWHERE, decided: [{ verdict: 'accept', way: rewrite(ground, target.to, way) }] };
    case 'other':
      return followOther(ground, target.args, way, depth);
    default:
      return target satisfies never;
  }
}

/** A goto does not come back to this chain. Anything else is passed over, as if it only logged. */
function followOther(ground: Ground, args: readonly string[], way: Way, depth: number): Step {
  const chain = args[1];
  if (args[0] === '-g' && chain !== undefined) {
    return { ...NOWHERE, ...walkChain(ground, chain, way, depth + 1) };
  }
  ground.note(`not evaluated, taken as passing: ${args.join(' ')}`);
  return { ...NOWHERE, live: [way] };
}

function rewrite(ground: Ground, to: string, way: Way): Way {
  const whole = parseIp(to);
  if (whole !== undefined) return { ...way, destination: whole, rewritten: true };
  const colon = to.lastIndexOf(':');
  const address = to.slice(0, colon);
  const destination = parseIp(
    address.startsWith('[') && address.endsWith(']') ? address.slice(1, -1) : address,
  );
  const port = to.slice(colon + 1);
  if (destination === undefined || !/^\d+$/.test(port)) {
    ground.note(`not evaluated, not one address and port: ${to}`);
    return way;
  }
  return { ...way, destination, port: Number(port), rewritten: true };
}

function scaled(way: Way, chance: number): Way {
  return chance === 1 ? way : { ...way, probability: way.probability * chance };
}

function matched(ground: Ground, chain: string, ruleIndex: number, rule: Rule, way: Way): Way {
  const names = rule.matches.flatMap((match) => (match.kind === 'recentSet' ? [match.name] : []));
  const remembered = names.length === 0 ? way.remembered : [...way.remembered, ...names];
  if (!ground.record) return names.length === 0 ? way : { ...way, remembered };
  const trail: Trail = { table: ground.table, chain, ruleIndex, rule, before: way.trail };
  return { ...way, remembered, trail };
}

/**
 * A packet's way through one chain and the chains that it jumps to.
 *
 * A number that is drawn splits the packet: every possible way is walked, with its probability.
 */
import type { Element, NftRule } from './rule.ts';
import {
  branchesOf,
  type InFlight,
  type NewlyRemembered,
  type Verdict,
  type World,
} from './walkStatement.ts';

/** One possible way of the packet, as far as it has been walked. */
export interface Way extends InFlight {
  readonly probability: number;
  readonly masqueraded: boolean;
  /** Sets that were asked or changed. */
  readonly lookups: number;
  readonly remembers: readonly NewlyRemembered[];
  readonly trail: Trail | undefined;
}

/** The rules that matched, newest first, so that ways share their beginnings. */
export interface Trail {
  readonly chain: string;
  readonly ruleIndex: number;
  readonly rule: NftRule;
  /** What the rule found in its sets. */
  readonly found: readonly Element[];
  readonly before: Trail | undefined;
}

export interface Decided {
  readonly verdict: 'accept' | 'drop' | 'reject';
  readonly way: Way;
}

export interface Passage {
  readonly decided: readonly Decided[];
  /** The ways that came out at the end, or by a return. */
  readonly returned: readonly Way[];
}

export interface Ground extends World {
  readonly record: boolean;
}

/** As in the kernel; one jump more is a loop. */
const DEEPEST_JUMP = 16;

export function walkChain(ground: Ground, name: string, way: Way, depth = 0): Passage {
  const rules = ground.table.chains.get(name)?.rules;
  if (!rules) {
    ground.note(`the table has no chain ${name}`);
    return { decided: [], returned: [way] };
  }
  if (depth > DEEPEST_JUMP) throw new Error(`too many jumps, by chain ${name}`);
  const decided: Decided[] = [];
  const returned: Way[] = [];
  let live: readonly Way[] = [way];
  for (const [ruleIndex, rule] of rules.entries()) {
    if (live.length === 0) break;
    const next: Way[] = [];
    for (const current of live) {
      for (const left of leaveRule(ground, { chain: name, ruleIndex, rule }, current)) {
        const step = follow(ground, left, depth);
        decided.push(...step.decided);
        returned.push(...step.returned);
        next.push(...step.live);
      }
    }
    live = next;
  }
  return { decided, returned: [...returned, ...live] };
}

interface Left {
  readonly way: Way;
  readonly verdict: Verdict | undefined;
}

interface InRule {
  readonly way: Way;
  readonly found: readonly Element[];
}

type Place = Pick<Trail, 'chain' | 'ruleIndex' | 'rule'>;

/** Statement by statement. A way for which the rule does not match comes out without a verdict, and so goes on. */
function leaveRule(ground: Ground, place: Place, first: Way): readonly Left[] {
  const left: Left[] = [];
  let live: readonly InRule[] = [{ way: first, found: [] }];
  for (const statement of place.rule.statements) {
    const next: InRule[] = [];
    for (const { way, found } of live) {
      for (const branch of branchesOf(statement, way, ground)) {
        const counted: Way = {
          ...way,
          probability: way.probability * branch.chance,
          lookups: way.lookups + branch.lookups,
        };
        if (branch.kind === 'ends') {
          left.push({ way: counted, verdict: undefined });
          continue;
        }
        const { mark, found: element, remembers, verdict } = branch;
        const all = element ? [...found, element] : found;
        const changed: Way = {
          ...counted,
          ...(mark !== undefined && { mark }),
          ...(remembers && { remembers: [...counted.remembers, remembers] }),
        };
        if (verdict) left.push({ way: recorded(ground, place, changed, all), verdict });
        else next.push({ way: changed, found: all });
      }
    }
    live = next;
  }
  for (const { way, found } of live)
    left.push({ way: recorded(ground, place, way, found), verdict: undefined });
  return left;
}

function recorded(ground: Ground, place: Place, way: Way, found: readonly Element[]): Way {
  return ground.record ? { ...way, trail: { ...place, found, before: way.trail } } : way;
}

interface Step extends Passage {
  /** The ways that go on to the next rule. */
  readonly live: readonly Way[];
}

const NOWHERE: Step = { decided: [], returned: [], live: [] };

function follow(ground: Ground, { way, verdict }: Left, depth: number): Step {
  switch (verdict?.kind) {
    case undefined:
      return { ...NOWHERE, live: [way] };
    case 'jump': {
      const { decided, returned } = walkChain(ground, verdict.chain, way, depth + 1);
      return { ...NOWHERE, decided, live: returned };
    }
    case 'goto':
      return { ...NOWHERE, ...walkChain(ground, verdict.chain, way, depth + 1) };
    case 'return':
      return { ...NOWHERE, returned: [way] };
    case 'drop':
    case 'reject':
      return { ...NOWHERE, decided: [{ verdict: verdict.kind, way }] };
    case 'masquerade':
      return { ...NOWHERE, decided: [{ verdict: 'accept', way: { ...way, masqueraded: true } }] };
    case 'dnat': {
      const { ip, port } = verdict;
      return {
        ...NOWHERE,
        decided: [{ verdict: 'accept', way: { ...way, destination: ip, port, isRewritten: true } }],
      };
    }
  }
}

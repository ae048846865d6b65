/** Where a walked packet begins, and where it ends. */
import type { Packet } from '../plan/decide.ts';
import { stepsOf } from './path.ts';
import type { TraceStep, WalkedChain, WalkEnding, WalkOutcome, Way } from './walk.ts';

export function firstWay<Learned>({
  source,
  destination,
  protocol,
  port,
  inInterface,
}: Packet): Way<Learned> {
  return {
    source,
    destination,
    protocol,
    port,
    original: { source, destination, port },
    inInterface: inInterface ?? '',
    mark: 0,
    isRewritten: false,
    virtualServer: undefined,
    masqueraded: false,
    isUntracked: false,
    byAffinity: false,
    probability: 1,
    lookups: 0,
    learned: [],
    trail: undefined,
    hook: '',
  };
}

export function arrival<Learned>(way: Way<Learned>): WalkOutcome<Learned> {
  const { masqueraded, destination, port } = way;
  if (!way.isRewritten && !way.virtualServer) return { kind: 'pass', masqueraded, ...ending(way) };
  return { kind: 'forward', to: destination, port, masqueraded, ...ending(way) };
}

export function ending<Learned>(way: Way<Learned>): WalkEnding<Learned> {
  const { probability, trail, lookups, learned, byAffinity } = way;
  return { probability, path: stepsOf(trail), lookups, learned, byAffinity };
}

/** Of ways that no rule can tell apart, the first. */
export function distinct<Learned>(ways: readonly Way<Learned>[]): readonly Way<Learned>[] {
  const known = new Map<string, Way<Learned>>();
  for (const way of ways) {
    const { source, destination, port, mark, isRewritten, masqueraded, isUntracked, virtualServer } = way;
    const key = `${source} ${destination} ${port} ${mark} ${isRewritten} ${masqueraded} ${isUntracked} ${virtualServer?.ip}`;
    if (!known.has(key)) known.set(key, way);
  }
  return [...known.values()];
}

/** Of a packet that came to the end of a base chain. */
export function policyStep(
  { table, chain, isForeign, policyPackets: packets }: WalkedChain,
  hook: string,
  ruleIndex: number,
): TraceStep {
  return {
    hook,
    table,
    chain,
    ruleIndex,
    text: 'policy drop',
    found: [],
    ...(packets !== undefined && { packets }),
    ...(isForeign && { isForeign }),
  };
}

/** Not `push(...more)`: of very many, that is too many arguments. */
export function addAll<T>(list: T[], more: readonly T[]): void {
  for (const each of more) list.push(each);
}

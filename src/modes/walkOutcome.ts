/** Where a walked packet begins, and where it ends. */
import type { Packet } from '../plan/decide.ts';
import { stepsOf } from './path.ts';
import type { WalkEnding, WalkOutcome, Way } from './walk.ts';

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

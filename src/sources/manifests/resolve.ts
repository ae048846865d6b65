/** Many files → one picture: who wins when an object is defined twice, and what stays when nobody has a good one. */
import type { SourceProblem } from '../source.ts';
import { type World, type WorldObject, worldKey } from '../world.ts';
import type { FileReading, PlacedDefinition } from './fileReading.ts';

/** By the id of the definition. */
export type InForce = ReadonlyMap<string, readonly WorldObject[]>;

export interface Resolution {
  readonly inForce: InForce;
  readonly duplicates: readonly SourceProblem[];
}

/** `files` in the order in which they win. */
export function resolve(files: Iterable<FileReading>, before: InForce): Resolution {
  const byId = new Map<string, PlacedDefinition[]>();
  for (const { definitions } of files) {
    for (const definition of definitions) {
      const others = byId.get(definition.id);
      if (others) others.push(definition);
      else byId.set(definition.id, [definition]);
    }
  }
  const inForce = new Map<string, readonly WorldObject[]>();
  const duplicates: SourceProblem[] = [];
  for (const [id, definitions] of byId) {
    const winner = choose(definitions);
    inForce.set(id, winner?.objects ?? before.get(id) ?? []);
    if (winner && definitions.length > 1) duplicates.push(...losers(id, winner, definitions));
  }
  return { inForce, duplicates };
}

/** The first that says something; what a broken file once said only when no other file says it now. */
function choose(definitions: readonly PlacedDefinition[]): PlacedDefinition | undefined {
  const usable = definitions.filter(({ state, objects }) => state !== 'bad' || objects.length > 0);
  return usable.find(({ carried }) => !carried) ?? usable[0];
}

function losers(id: string, winner: PlacedDefinition, all: readonly PlacedDefinition[]): SourceProblem[] {
  return all
    .filter((definition) => definition !== winner && !definition.carried)
    .map(({ where }) => ({
      severity: 'warning',
      where,
      object: id,
      message: `is also defined at ${winner.where}, and that one is used`,
      expected: 'each object once',
    }));
}

/** Two ids can make the same object only when a slice has the name that we give to a subset of Endpoints. */
export function worldOf(inForce: InForce): World {
  const world = new Map<string, WorldObject>();
  for (const objects of inForce.values()) {
    for (const object of objects) {
      const key = worldKey(object);
      if (!world.has(key)) world.set(key, object);
    }
  }
  return world;
}

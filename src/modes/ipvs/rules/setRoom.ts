/**
 * How many entries each set can have. The kernel fixes that when a set is made; one that has become too small is made
 * anew in twice the size beside the old one, filled, and put in its place while rules go on matching it.
 */
import type { Family } from '../../../model/ip.ts';
import type { Edit } from './kernelDoor.ts';
import type { Ledger } from './ledger.ts';
import { growingName, SET_IDS, SETS, type SetEntry, type SetId, setName } from './sets.ts';

/** Entries that go last. */
type Leaving = ReadonlyMap<SetId, readonly SetEntry[]>;

/** Enough for most; as large as kube-proxy's, so that its sets can be taken over. */
const USUAL_CAPACITY = 65_536;

export class SetRoom {
  readonly #capacities: Map<SetId, number>;

  constructor(capacities: Map<SetId, number> = new Map()) {
    this.#capacities = capacities;
  }

  /** What has to be done so that every set can have all that the ledger wants in it, beside what is to leave it. */
  makeFor(ledger: Ledger, family: Family, leaving: Leaving): readonly Edit[] {
    return SET_IDS.flatMap((id) => {
      if (ledger.sizeOf(id) === 0) return [];
      const old = leaving.get(id) ?? [];
      const size = ledger.sizeOf(id) + old.length;
      const capacity = this.#capacities.get(id);
      if (SETS[id].type === 'bitmap:port') return [];
      if (capacity !== undefined && size <= capacity) return [];
      const enough = capacityFor(size, capacity);
      this.#capacities.set(id, enough);
      if (capacity === undefined) return [create(id, family, enough)];
      const entries = [...ledger.entriesOf(id)].map(([, entry]) => entry);
      return grow(id, family, [...entries, ...old], enough);
    });
  }
}

export function capacityFor(size: number, capacity = USUAL_CAPACITY): number {
  let enough = Math.max(capacity, 1);
  while (enough < size) enough *= 2;
  return enough;
}

export function create(id: SetId, family: Family, capacity: number): Edit {
  return { kind: 'createSet', set: setName(id, family), type: SETS[id].type, capacity };
}

function grow(id: SetId, family: Family, entries: readonly SetEntry[], capacity: number): readonly Edit[] {
  const set = growingName(family);
  const edits: Edit[] = [
    { kind: 'destroySet', set },
    { kind: 'createSet', set, type: SETS[id].type, capacity },
  ];
  for (const entry of entries) edits.push({ kind: 'addEntry', set, entry });
  edits.push({ kind: 'swapSets', set: setName(id, family), other: set }, { kind: 'destroySet', set });
  return edits;
}

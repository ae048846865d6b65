/** Tables in memory, as a dump has them, made to be asked like the kernel. */
import type { SetElement, SetPlace } from '../../../netlink/nftables/elements.ts';
import { wordsOf } from '../../../netlink/nftables/expressions.ts';
import type { TablePlace } from '../../../netlink/nftables/message.ts';
import type { ChainPlace } from '../../../netlink/nftables/objects.ts';
import { tableName } from './source.ts';
import type {
  AskedElement,
  ListedChain,
  ListedRule,
  ListedSet,
  NftSource,
  WholeChain,
  WholeTable,
} from './source.ts';

export interface MemorySet extends ListedSet {
  readonly elements: readonly SetElement[];
}

export interface MemoryTable extends TablePlace, WholeTable {
  readonly sets: readonly MemorySet[];
}

const NFT_SET_INTERVAL = 0x4;
const WORD_BYTES = 4;

export class MemorySource implements NftSource {
  readonly #tables: readonly MemoryTable[];
  readonly #chains = new Map<string, WholeChain>();
  readonly #sets = new Map<string, IndexedSet>();

  constructor(tables: readonly MemoryTable[]) {
    this.#tables = tables;
    for (const table of tables) {
      const name = tableName(table);
      for (const chain of table.chains) this.#chains.set(`${name} ${chain.name}`, chain);
      for (const set of table.sets) this.#sets.set(`${name} ${set.name}`, new IndexedSet(set));
    }
  }

  async generation(): Promise<undefined> {
    return undefined;
  }

  async chains(): Promise<readonly ListedChain[]> {
    const inForce = this.#tables.filter(({ isDormant }) => !isDormant);
    return inForce.flatMap(({ family, table, chains }) =>
      chains.map(({ name: chain, base, rules }) => ({
        family,
        table,
        chain,
        base,
        references: rules.length,
      })),
    );
  }

  async rules(place: ChainPlace): Promise<readonly ListedRule[]> {
    return this.#chains.get(`${tableName(place)} ${place.chain}`)?.rules ?? [];
  }

  async set(place: SetPlace): Promise<ListedSet | undefined> {
    return this.#sets.get(`${tableName(place)} ${place.set}`)?.set;
  }

  async element(asked: AskedElement): Promise<SetElement | undefined> {
    return this.#sets.get(`${tableName(asked)} ${asked.set}`)?.find(asked.key);
  }

  async table(place: TablePlace): Promise<WholeTable | undefined> {
    return this.#tables.find((each) => tableName(each) === tableName(place));
  }

  async allElements(place: SetPlace): Promise<readonly SetElement[]> {
    return this.#sets.get(`${tableName(place)} ${place.set}`)?.set.elements ?? [];
  }
}

class IndexedSet {
  readonly set: MemorySet;
  readonly #byKey = new Map<string, SetElement>();
  /** Of intervals: both ends, by where they are. */
  readonly #ends: readonly SetElement[];
  /** Stands for all keys that have no element. */
  readonly #catchAll: SetElement | undefined;

  constructor(set: MemorySet) {
    this.set = set;
    const isInterval = (set.flags & NFT_SET_INTERVAL) !== 0;
    const isConcatenation = set.description.fields !== undefined;
    const others = set.elements.filter(({ key }) => key.length > 0);
    this.#ends = isInterval && !isConcatenation ? others.sort(byPlace) : [];
    this.#catchAll = set.elements.find(({ key }) => key.length === 0);
    if (!isInterval) for (const element of others) this.#byKey.set(hex(element.key), element);
  }

  find(key: Uint8Array): SetElement | undefined {
    if (key.length === 0) return this.#catchAll;
    const { fields } = this.set.description;
    if (fields)
      return this.set.elements.find((element) => element.key.length > 0 && holdsFields(element, key, fields));
    if (this.#ends.length === 0) return this.#byKey.get(hex(key));
    const last = this.#ends.findLast((element) => Buffer.compare(element.key, key) <= 0);
    return last?.isIntervalEnd ? undefined : last;
  }
}

/** Where one interval ends, the next may begin. */
function byPlace(a: SetElement, b: SetElement): number {
  return Buffer.compare(a.key, b.key) || Number(b.isIntervalEnd ?? 0) - Number(a.isIntervalEnd ?? 0);
}

function holdsFields(
  { key: first, keyEnd: last = first }: SetElement,
  key: Uint8Array,
  fields: readonly { readonly bytes: number }[],
): boolean {
  let at = 0;
  for (const { bytes } of fields) {
    const [value, low, high] = [key, first, last].map((each) => each.subarray(at, at + bytes));
    if (!value || !low || !high) return false;
    if (Buffer.compare(value, low) < 0 || Buffer.compare(value, high) > 0) return false;
    at += wordsOf(bytes) * WORD_BYTES;
  }
  return true;
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

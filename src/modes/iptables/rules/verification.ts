/**
 * Compares what was written with the kernel while syncs go on, by digests: nothing is decoded, and nothing repaired here. What
 * differs and was not changed by our own syncs meanwhile is noted, as if another program had touched it.
 */
import type { ServicePortId } from '../../../model/serviceTracker.ts';
import { forEachSliced, type TimeSlice } from '../../../time/timeSlice.ts';
import type { ChainReader, TableDigests } from './chainReader.ts';
import {
  type ChainRef,
  type CompileOptions,
  type Fragment,
  isSameChain,
  type Layout,
  type OwnChain,
  type SharedRule,
} from './fragment.ts';
import { isRecordChain } from './names.ts';
import { type Table, TABLES } from './rule.ts';
import type { Touch, Touched, TouchedChains, TouchedTable } from './touched.ts';

/** What our own syncs change during a look. */
export class OwnChanges {
  readonly #chains = new Set<string>();
  readonly #scopes: TouchedChains[] = [];
  readonly ids = new Set<ServicePortId>();
  readonly rules: SharedRule[] = [];
  /** Everything may have been written. */
  isAll = false;

  add(id: ServicePortId, before: Fragment, after: Fragment): void {
    this.ids.add(id);
    for (const { chains, shared } of [before, after]) {
      for (const { table, name } of chains) this.#chains.add(keyOf(table, name));
      this.rules.push(...shared);
    }
  }

  addScope(scope: TouchedChains): void {
    this.#scopes.push(scope);
  }

  addAll({ ids, rules, isAll }: OwnChanges, chains: Iterable<string>): void {
    for (const id of ids) this.ids.add(id);
    for (const chain of chains) this.#chains.add(chain);
    this.rules.push(...rules);
    this.isAll ||= isAll;
  }

  /** A copy, to go on with. */
  copy(): OwnChanges {
    const copy = new OwnChanges();
    copy.addAll(this, this.#chains);
    for (const scope of this.#scopes) copy.addScope(scope);
    return copy;
  }

  explains(table: Table, chain: string): boolean {
    return (
      this.isAll ||
      this.#chains.has(keyOf(table, chain)) ||
      this.#scopes.some((each) => each.has(table, chain))
    );
  }
}

interface LookOptions {
  readonly layout: Layout;
  readonly options: CompileOptions;
  readonly reader: VerifyingReader;
  /** What was last written. */
  readonly fragments: Iterable<readonly [ServicePortId, Fragment]>;
  readonly ownChanges: OwnChanges;
  readonly timeSlice: TimeSlice | undefined;
}

type VerifyingReader = ChainReader &
  Required<Pick<ChainReader, 'digestTable' | 'digestRule' | 'compareChains'>>;

export function canVerify(reader: ChainReader): reader is VerifyingReader {
  return (
    reader.digestTable !== undefined && reader.digestRule !== undefined && reader.compareChains !== undefined
  );
}

interface LookOutcome {
  /** Chains that were compared. */
  readonly checked: number;
  readonly suspects: number;
  readonly touched: Touched;
}

export async function lookAtRules(look: LookOptions): Promise<LookOutcome> {
  return new Look(look).run();
}

class Look {
  readonly #look: LookOptions;
  /** Of fixed chains, and of those that others have rules in too. */
  readonly #digests = new Map<Table, TableDigests>();
  readonly #shared = new Map<string, SharedChainLook>();
  /** Service ports whose rules are not in a shared chain, and the chain. */
  readonly #missing: (readonly [ServicePortId, ChainRef])[] = [];
  readonly #suspects = new Map<Table, Map<string, Touch>>();
  #checked = 0;

  constructor(look: LookOptions) {
    this.#look = look;
  }

  async run(): Promise<LookOutcome> {
    const { layout, options, ownChanges } = this.#look;
    const base = layout.base(options);
    for (const table of TABLES) await this.#read(table);
    for (const chain of base.chains)
      this.#compareChain(chain, this.#look.reader.digest(chain.name, chain.rules));
    for (const rule of [...base.foreign, ...layout.jumps]) this.#lookForRule(rule);
    for (const { table, chain } of [...layout.sharedChains, ...layout.foreignChains])
      if (!this.#has(table, chain)) this.#suspect(table, chain);
    await this.#compareServices();
    for (const [id, { table, chain }] of this.#missing)
      if (!ownChanges.ids.has(id)) this.#suspect(table, chain);
    for (const { table, chain } of layout.sharedChains) {
      const tail = base.tail.filter((each) => isSameChain(each, { table, chain }));
      if (!this.#isSharedRight(table, chain, tail)) this.#suspect(table, chain);
    }
    const touched = new Map<Table, TouchedTable>();
    let suspects = 0;
    for (const table of TABLES) {
      const { isDormant = false } = this.#digests.get(table) ?? {};
      const chains = this.#suspects.get(table) ?? new Map<string, Touch>();
      for (const chain of chains.keys()) if (ownChanges.explains(table, chain)) chains.delete(chain);
      suspects += chains.size + (isDormant ? 1 : 0);
      if (chains.size > 0 || isDormant)
        touched.set(table, { isGone: false, isDormant, isDoubtful: true, chains });
    }
    return { checked: this.#checked, suspects, touched };
  }

  /** One thread compiles while the other reads. */
  async #compareServices(): Promise<void> {
    const { fragments, timeSlice, reader } = this.#look;
    const comparison = reader.compareChains();
    await forEachSliced(
      fragments,
      ([id, { chains, shared }]) => {
        let waiting: Promise<void> | undefined;
        for (const chain of chains) waiting = comparison.add(chain) ?? waiting;
        this.#checked += chains.length;
        this.#takeShared(id, shared);
        return waiting;
      },
      timeSlice,
    );
    const { differing, others } = await comparison.end();
    for (const { table, chain } of [...differing, ...others])
      if (!isRecordChain(chain)) this.#suspect(table, chain);
  }

  /** The rules of a service port in each shared chain, in their order. */
  #takeShared(id: ServicePortId, shared: readonly SharedRule[]): void {
    const { reader } = this.#look;
    for (let from = 0; from < shared.length; ) {
      const first = shared[from];
      if (!first) return;
      let to = from + 1;
      for (let next = shared[to]; next && isSameChain(next, first); next = shared[++to]);
      const digests = shared.slice(from, to).map(({ rule }) => reader.digestRule(rule));
      const isTaken = this.#shared.get(keyOf(first.table, first.chain))?.take(digests) ?? true;
      if (!isTaken) this.#missing.push([id, first]);
      from = to;
    }
  }

  async #read(table: Table): Promise<void> {
    const { layout, options, reader } = this.#look;
    const base = layout.base(options);
    const inTable = (ref: ChainRef): boolean => ref.table === table;
    const apart = [...layout.sharedChains, ...layout.foreignChains, ...layout.jumps].filter(inTable);
    const own = base.chains.filter((chain) => chain.table === table).map(({ name }) => name);
    const byRule = new Set(apart.map(({ chain }) => chain));
    const digests = await reader.digestTable(table, new Set(own), byRule);
    this.#digests.set(table, digests);
    for (const { chain } of layout.sharedChains.filter(inTable))
      this.#shared.set(keyOf(table, chain), new SharedChainLook(digests.rules.get(chain) ?? []));
  }

  #has(table: Table, chain: string): boolean {
    const { chains, rules } = this.#digests.get(table) ?? {};
    return (chains?.has(chain) ?? false) || (rules?.has(chain) ?? false);
  }

  #suspect(table: Table, chain: string): void {
    const chains = this.#suspects.get(table) ?? new Map<string, Touch>();
    this.#suspects.set(table, chains.set(chain, 'deleted'));
  }

  #compareChain({ table, name }: Pick<OwnChain, 'table' | 'name'>, wanted: number | undefined): void {
    this.#checked++;
    const found = this.#digests.get(table)?.chains.get(name);
    // What cannot be digested cannot be compared: it only has to be there.
    if (found === undefined || (wanted !== undefined && wanted !== found)) this.#suspect(table, name);
  }

  #lookForRule({ table, chain, rule }: SharedRule): void {
    const wanted = this.#look.reader.digestRule(rule);
    const found = this.#digests.get(table)?.rules.get(chain) ?? [];
    if (wanted !== undefined && !found.includes(wanted)) this.#suspect(table, chain);
  }

  /** After all service ports: nothing is left but the tail, which is the last. */
  #isSharedRight(table: Table, chain: string, tail: readonly SharedRule[]): boolean {
    const { reader, ownChanges } = this.#look;
    const look = this.#shared.get(keyOf(table, chain));
    if (!look) return true;
    const ours = ownChanges.rules.filter((each) => isSameChain(each, { table, chain }));
    const digestsOf = (rules: readonly SharedRule[]): readonly (number | undefined)[] =>
      rules.map(({ rule }) => reader.digestRule(rule));
    return look.endsIn(digestsOf(tail)) && look.isAllTakenBut(new Set(digestsOf(ours)));
  }
}

/** The rules of one shared chain, by digest. Nearly all are there once. */
class SharedChainLook {
  readonly #rules: readonly number[];
  readonly #positions = new Map<number, number | readonly number[]>();
  readonly #taken: Uint8Array;

  constructor(rules: readonly number[]) {
    this.#rules = rules;
    this.#taken = new Uint8Array(rules.length);
    for (const [position, digest] of rules.entries()) {
      const known = this.#positions.get(digest);
      this.#positions.set(digest, known === undefined ? position : [known, position].flat());
    }
  }

  /** Takes these if all are there, one behind the other. Of copies a deletion leaves the last. */
  take(digests: readonly (number | undefined)[]): boolean {
    let last = -1;
    const found: number[] = [];
    for (const digest of digests) {
      if (digest === undefined) return true;
      const next = [this.#positions.get(digest) ?? []]
        .flat()
        .findLast((position) => !this.#isTaken(position));
      if (next === undefined || next <= last) return false;
      found.push(next);
      last = next;
    }
    for (const position of found) this.#taken[position] = 1;
    return true;
  }

  endsIn(tail: readonly (number | undefined)[]): boolean {
    const start = this.#rules.length - tail.length;
    if (start < 0) return false;
    for (const [index, digest] of tail.entries()) {
      if (digest !== undefined && this.#rules[start + index] !== digest) return false;
      this.#taken[start + index] = 1;
    }
    return true;
  }

  isAllTakenBut(others: ReadonlySet<number | undefined>): boolean {
    return this.#rules.every((digest, position) => this.#isTaken(position) || others.has(digest));
  }

  #isTaken(position: number): boolean {
    return this.#taken[position] === 1;
  }
}

function keyOf(table: Table, chain: string): string {
  return `${table} ${chain}`;
}

/**
 * nftables in memory, as strict as the kernel: a transaction is taken whole, or refused by the name that the kernel has
 * for it. It can be changed by hand.
 */
import { affinityMap } from '../../../../src/modes/nftables/rules/names.ts';
import { isSameElement } from '../../../../src/modes/nftables/rules/diff.ts';
import { printKey } from '../../../../src/modes/nftables/rules/print.ts';
import type {
  AffinityEntry,
  DifferingElement,
  Element,
  ForeignElement,
  FrontendPlace,
  KeyList,
  NftClient,
  Ruleset,
  SetsByName,
  TableOperation,
  TableSet,
  TableState,
  TableTransaction,
  TransactionOutcome,
} from '../../../../src/modes/nftables/rules/table.ts';
import { deepEqual } from '../../../../src/model/equal.ts';
import type { Family } from '../../../../src/model/ip.ts';
import type { Protocol } from '../../../../src/model/objects.ts';
import { Draft, type FakeChain, type FakeTable, isSameSet, Refused } from './fakeTable.ts';

const DONE: TransactionOutcome = { state: 'done' };
const EMPTY: FakeTable = { sets: new Map(), chains: new Map() };

export class FakeNftKernel implements NftClient {
  readonly family: Family;
  table: FakeTable | undefined;

  constructor(family: Family = 'IPv4') {
    this.family = family;
  }

  async inspect(wanted: Ruleset, only?: ReadonlySet<string>): Promise<TableState | undefined> {
    if (!this.table) return undefined;
    const { sets, chains, isDormant = false } = this.table;
    const isSame = new Map(
      [...sets].map(([name, { set }]) => {
        const other = wanted.sets.find((each) => each.name === name);
        return [name, other === undefined || isSameSet(set, other) ? 'same' : 'different'] as const;
      }),
    );
    const readable = wanted.sets
      .filter(({ name, dynamicSize }) => isSame.get(name) === 'same' && dynamicSize === undefined)
      .filter(({ name }) => only?.has(name) ?? true);
    return {
      isDormant,
      sets: isSame,
      chains: new Map([...chains].map(([name, chain]) => [name, compareChain(name, chain, wanted)])),
      elements: new Map(readable.map(({ name }) => [name, new Map(sets.get(name)?.elements)])),
    };
  }

  async isThere(): Promise<boolean> {
    return this.table !== undefined;
  }

  async commit(transaction: TableTransaction): Promise<TransactionOutcome> {
    return this.#perform(transaction);
  }

  async differing(elements: readonly Element[], _sets?: SetsByName): Promise<readonly DifferingElement[]> {
    return elements.flatMap((element): readonly DifferingElement[] => {
      const found = this.#find(element);
      if (!found) return [{ element, isMissing: true }];
      const { comment = found.comment } = element;
      return isSameElement(found, { ...element, ...(comment !== undefined && { comment }) })
        ? []
        : [{ element, isMissing: false }];
    });
  }

  async lookUp(elements: readonly Element[], _sets?: SetsByName): Promise<readonly ForeignElement[]> {
    return elements.map((element) => {
      const found = this.#find(element);
      return found ? { element: found, isThere: true } : { element, isThere: false };
    });
  }

  #find({ set, key }: Element): Element | undefined {
    return this.table?.sets.get(set)?.elements.get(printKey(key));
  }

  async sizes(): Promise<ReadonlyMap<string, number | undefined>> {
    const { sets } = this.table ?? EMPTY;
    return new Map([...sets].map(([name, { elements }]) => [name, elements.size]));
  }

  keyList(): KeyList {
    return new FakeKeys();
  }

  async others(set: TableSet, keys: KeyList): Promise<readonly Element[] | undefined> {
    const elements = [...(this.table?.sets.get(set.name)?.elements.values() ?? [])];
    return elements.filter(({ key }) => !(keys instanceof FakeKeys && keys.printed.has(printKey(key))));
  }

  async affinityEntries(
    protocol: Protocol,
    frontends?: readonly FrontendPlace[],
  ): Promise<readonly AffinityEntry[]> {
    const places = frontends && new Set(frontends.map(({ address, port }) => `${address} ${port}`));
    return this.#clients(affinityMap(protocol)).filter(
      ({ destination, port }) =>
        !places || places.has(`${destination} ${port}`) || places.has(`undefined ${port}`),
    );
  }

  /** Who is in a map of affinity. */
  #clients(map: string): readonly AffinityEntry[] {
    const elements = this.table?.sets.get(map)?.elements.values() ?? [];
    return [...elements].flatMap(({ key: { address, secondAddress, port }, endpoint }) =>
      address && secondAddress && port !== undefined && endpoint
        ? [{ client: address, destination: secondAddress, port, endpoint }]
        : [],
    );
  }

  get ruleset(): Ruleset {
    const { sets, chains } = this.table ?? EMPTY;
    return {
      sets: [...sets.values()].map(({ set }) => set),
      chains: [...chains].map(([name, { hook, rules }]) => ({ name, rules, ...(hook && { hook }) })),
    };
  }

  get elements(): readonly Element[] {
    return [...(this.table ?? EMPTY).sets.values()].flatMap(({ elements }) => [...elements.values()]);
  }

  /** Somebody else does this, and it must work. */
  tamper(...transaction: TableTransaction): void {
    const outcome = this.#perform(transaction);
    if (outcome.state === 'refused') throw new Error(`${outcome.name}: ${JSON.stringify(outcome.operation)}`);
  }

  #perform(transaction: TableTransaction): TransactionOutcome {
    const draft = new Draft(this.table, this.family);
    let current: TableOperation | undefined;
    try {
      for (const operation of transaction) {
        current = operation;
        draft.perform(operation);
      }
      current = undefined;
      draft.validate();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      return { state: 'refused', name: error.message, operation: current };
    }
    this.table = draft.table;
    return DONE;
  }
}

class FakeKeys implements KeyList {
  readonly printed = new Set<string>();

  add({ key }: Element): void {
    this.printed.add(printKey(key));
  }
}

function compareChain(name: string, { hook, rules }: FakeChain, { chains }: Ruleset): 'same' | 'different' {
  const wanted = chains.find((each) => each.name === name);
  if (!wanted) return 'same';
  const texts = (list: FakeChain['rules']): readonly string[] => {
    const printed = list.map(({ statements }) => JSON.stringify(statements));
    return wanted.isUnordered ? printed.sort() : printed;
  };
  const isSame = deepEqual(hook, wanted.hook) && deepEqual(texts(rules), texts(wanted.rules));
  return isSame ? 'same' : 'different';
}

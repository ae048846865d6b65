/**
 * nftables in memory, as strict as the kernel: a transaction is taken whole, or refused by the name that the kernel has
 * for it. It remembers what it was sent, fails when told to, and can be changed by hand.
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
import { type Packet } from '../../../../src/plan/decide.ts';
import { walkNftables, walkTable, type WalkTable } from './ruleWalk.ts';
import { deepEqual } from '../../../../src/model/equal.ts';
import type { Family, Ip } from '../../../../src/model/ip.ts';
import { PROTOCOLS, type Protocol } from '../../../../src/model/objects.ts';
import { Draft, type FakeChain, type FakeTable, isSameSet, Refused } from './fakeTable.ts';

/** What goes wrong with a transaction, if anything does: a name that the kernel refuses it by. */
export type Fault = (transaction: TableTransaction) => string | undefined;

/** The process is gone: nothing after this took place. */
export class Killed extends Error {
  override name = 'Killed';
}

const DONE: TransactionOutcome = { state: 'done' };
const EMPTY: FakeTable = { sets: new Map(), chains: new Map() };

export class FakeNftKernel implements NftClient {
  readonly family: Family;
  table: FakeTable | undefined;
  fault: Fault = () => undefined;
  /** Called before each commit and each reading; may throw `Killed`. */
  before: (transaction?: TableTransaction) => void = () => {};
  /** How long it takes until an answer is here. */
  delay: () => Promise<void> = async () => {};
  /** Called after each commit that was taken; may throw `Killed`: the kernel has it, and nobody was told. */
  after: (transaction: TableTransaction) => void = () => {};
  /** Transactions that were taken. */
  readonly taken: TableTransaction[] = [];
  attempts = 0;
  inspections = 0;
  /** Sets whose elements were read. */
  readonly read: string[] = [];
  /** Elements that were looked up one by one. */
  readonly lookedUp: Element[] = [];
  /** Whether it says how many elements a set has. */
  hasSizes = true;
  /** How often remembered clients were asked for. */
  clientReads = 0;

  constructor(family: Family = 'IPv4') {
    this.family = family;
  }

  async inspect(wanted: Ruleset, only?: ReadonlySet<string>): Promise<TableState | undefined> {
    this.before();
    this.inspections++;
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
    this.read.push(...readable.map(({ name }) => name));
    return {
      isDormant,
      sets: isSame,
      chains: new Map([...chains].map(([name, chain]) => [name, compareChain(name, chain, wanted)])),
      elements: new Map(readable.map(({ name }) => [name, new Map(sets.get(name)?.elements)])),
    };
  }

  async isThere(): Promise<boolean> {
    this.before();
    return this.table !== undefined;
  }

  async commit(transaction: TableTransaction): Promise<TransactionOutcome> {
    this.before(transaction);
    this.attempts++;
    const fault = this.fault(transaction);
    if (fault !== undefined) return { state: 'refused', name: fault, operation: undefined };
    const outcome = this.#perform(transaction);
    if (outcome.state === 'done') {
      this.taken.push(transaction);
      this.after(transaction);
    }
    await this.delay();
    return outcome;
  }

  async differing(elements: readonly Element[], _sets?: SetsByName): Promise<readonly DifferingElement[]> {
    this.before();
    const differing = elements.flatMap((element): readonly DifferingElement[] => {
      const found = this.#find(element);
      if (!found) return [{ element, isMissing: true }];
      const { comment = found.comment } = element;
      return isSameElement(found, { ...element, ...(comment !== undefined && { comment }) })
        ? []
        : [{ element, isMissing: false }];
    });
    await this.delay();
    return differing;
  }

  async lookUp(elements: readonly Element[], _sets?: SetsByName): Promise<readonly ForeignElement[]> {
    this.before();
    this.lookedUp.push(...elements);
    return elements.map((element) => {
      const found = this.#find(element);
      return found ? { element: found, isThere: true } : { element, isThere: false };
    });
  }

  #find({ set, key }: Element): Element | undefined {
    return this.table?.sets.get(set)?.elements.get(printKey(key));
  }

  async sizes(): Promise<ReadonlyMap<string, number | undefined>> {
    this.before();
    const { sets } = this.table ?? EMPTY;
    const sizes = new Map(
      [...sets].map(([name, { elements }]) => [name, this.hasSizes ? elements.size : undefined]),
    );
    await this.delay();
    return sizes;
  }

  keyList(): KeyList {
    return new FakeKeys();
  }

  async others(set: TableSet, keys: KeyList): Promise<readonly Element[] | undefined> {
    this.before();
    this.read.push(set.name);
    const elements = [...(this.table?.sets.get(set.name)?.elements.values() ?? [])];
    await this.delay();
    return elements.filter(({ key }) => !(keys instanceof FakeKeys && keys.printed.has(printKey(key))));
  }

  async affinityEntries(
    protocol: Protocol,
    frontends?: readonly FrontendPlace[],
  ): Promise<readonly AffinityEntry[]> {
    this.before();
    this.clientReads++;
    const places = frontends && new Set(frontends.map(({ address, port }) => `${address} ${port}`));
    return this.clients(affinityMap(protocol)).filter(
      ({ destination, port }) =>
        !places || places.has(`${destination} ${port}`) || places.has(`undefined ${port}`),
    );
  }

  /** Who is in a map of affinity. */
  clients(map: string): readonly AffinityEntry[] {
    const elements = this.table?.sets.get(map)?.elements.values() ?? [];
    return [...elements].flatMap(({ key: { address, secondAddress, port }, endpoint }) =>
      address && secondAddress && port !== undefined && endpoint
        ? [{ client: address, destination: secondAddress, port, endpoint }]
        : [],
    );
  }

  get allClients(): readonly AffinityEntry[] {
    return PROTOCOLS.flatMap((protocol) => this.clients(affinityMap(protocol)));
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

  get walkable(): WalkTable {
    return walkTable(this.ruleset, this.elements);
  }

  /** A client dials, and what the table learns of it is kept. Returns where it went. */
  connect(packet: Packet, addresses: readonly Ip[] = []): string {
    const { outcomes } = walkNftables(
      this.walkable,
      packet,
      { addresses },
      { affinity: (map) => this.clients(map) },
    );
    const [outcome] = outcomes;
    if (outcome?.kind !== 'forward') return outcome?.kind ?? 'nothing';
    for (const { map, client, destination, port, endpoint } of outcome.learned) {
      const set = this.table?.sets.get(map)?.set;
      if (!set) throw new Error(`no map ${map}`);
      const element: Element = {
        set: map,
        key: { address: client, secondAddress: destination, port },
        endpoint,
      };
      const known = this.table?.sets.get(map)?.elements.get(printKey(element.key));
      if (known) this.tamper({ kind: 'deleteElements', set, elements: [known] });
      this.tamper({ kind: 'addElements', set, elements: [element] });
    }
    return outcome.to;
  }

  /** Forgets what was sent so far. */
  forget(): void {
    this.taken.length = 0;
    this.attempts = 0;
    this.inspections = 0;
    this.read.length = 0;
    this.lookedUp.length = 0;
    this.clientReads = 0;
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

/**
 * nftables in memory, as strict as the kernel: a transaction is taken whole, or refused by the name that the kernel has
 * for it. Tables are owned by sockets. It can be changed by hand.
 */
import { affinityMap, BACKSTOP_TABLE } from '../../../../src/modes/nftables/rules/names.ts';
import type {
  AffinityEntry,
  Element,
  FoundTable,
  NftClient,
  NftTables,
  Ruleset,
  TableOperation,
  TableTransaction,
  TransactionOutcome,
} from '../../../../src/modes/nftables/rules/table.ts';
import type { Family } from '../../../../src/model/ip.ts';
import type { Protocol } from '../../../../src/model/objects.ts';
import { Draft, type FakeTable, Refused } from './fakeTable.ts';

const DONE: TransactionOutcome = { state: 'done' };
const EMPTY: FakeTable = { sets: new Map(), chains: new Map() };
const OTHERS = 0;

export class FakeNftKernel implements NftTables {
  readonly family: Family;
  readonly tables = new Map<string, FakeTable>();
  /** Of the process that runs now. */
  #socket = 1;

  constructor(family: Family = 'IPv4') {
    this.family = family;
  }

  /** Its socket is closed, and the next one's is another. */
  endProcess(): void {
    for (const [name, table] of this.tables) {
      if (table.owner !== this.#socket) continue;
      if (table.isPersistent) this.tables.set(name, { ...table, owner: undefined });
      else this.tables.delete(name);
    }
    this.#socket++;
  }

  /** Another process begins while this one goes on. */
  nextProcess(): void {
    this.#socket++;
  }

  async list(): Promise<readonly FoundTable[]> {
    return Array.from(this.tables, ([name, { chains, owner }]) => ({
      name,
      baseChains: [...chains].flatMap(([chain, { hook }]) => (hook ? chain : [])),
      owner: () => (owner === undefined ? undefined : `socket ${owner}`),
    }));
  }

  table(name: string): NftClient {
    return {
      commit: async (transaction) => this.#perform([{ table: name, transaction }], this.#socket),
      affinityEntries: async (protocol) => this.#affinityEntries(name, protocol),
    };
  }

  async commit(parts: Parameters<NftTables['commit']>[0]): Promise<TransactionOutcome> {
    return this.#perform(parts, this.#socket);
  }

  #affinityEntries(table: string, protocol: Protocol): readonly AffinityEntry[] {
    const elements = this.tables.get(table)?.sets.get(affinityMap(protocol))?.elements.values() ?? [];
    return [...elements].flatMap(({ key: { address, secondAddress, port }, endpoint, lifetime }) =>
      address && secondAddress && port !== undefined && endpoint && lifetime
        ? [{ client: address, destination: secondAddress, port, endpoint, lifetime }]
        : [],
    );
  }

  /** The one that packets come by. */
  get inForce(): readonly [name: string, table: FakeTable] | undefined {
    return [...this.tables].find(
      ([name, { chains }]) => name !== BACKSTOP_TABLE && [...chains.values()].some(({ hook }) => hook),
    );
  }

  get ruleset(): Ruleset {
    const [, { sets, chains }] = this.inForce ?? ['', EMPTY];
    return {
      sets: [...sets.values()].map(({ set }) => set),
      chains: [...chains].map(([name, { hook, rules }]) => ({ name, rules, ...(hook && { hook }) })),
    };
  }

  get elements(): readonly Element[] {
    const [, { sets }] = this.inForce ?? ['', EMPTY];
    return [...sets.values()].flatMap(({ elements }) => [...elements.values()]);
  }

  /** `nft flush ruleset`: an owned table is left out. False: nothing was deleted. */
  flush(): boolean {
    const before = this.tables.size;
    for (const [name, { owner }] of this.tables) if (owner === undefined) this.tables.delete(name);
    return this.tables.size < before;
  }

  /** Another program does this to the table in force. False: the kernel refuses it. */
  tamper(...transaction: TableTransaction): boolean {
    const [table = ''] = this.inForce ?? [];
    const outcome = this.#perform([{ table, transaction }], OTHERS);
    if (outcome.state === 'refused' && outcome.name !== 'EPERM')
      throw new Error(`${outcome.name}: ${JSON.stringify(outcome.operation)}`);
    return outcome.state === 'done';
  }

  #perform(parts: Parameters<NftTables['commit']>[0], socket: number): TransactionOutcome {
    const drafts = new Map<string, Draft>();
    let current: TableOperation | undefined;
    try {
      for (const { table, transaction } of parts) {
        const draft = drafts.get(table) ?? new Draft(this.tables.get(table), this.family, socket);
        drafts.set(table, draft);
        for (const operation of transaction) {
          current = operation;
          draft.perform(operation);
        }
      }
      current = undefined;
      for (const draft of drafts.values()) draft.validate();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      return { state: 'refused', name: error.message, operation: current };
    }
    for (const [name, { table }] of drafts)
      if (table) this.tables.set(name, table);
      else this.tables.delete(name);
    return DONE;
  }
}

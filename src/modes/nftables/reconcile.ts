/**
 * Keeps the table equal to the plan.
 *
 * An ordinary sync compiles the service ports that changed, before and after, and commits the difference, mostly as one
 * transaction. The kernel is read only at the start, after a failure, and when somebody asks to verify; where somebody
 * else has been at the table, as far as it is not known what they did.
 */
import { isJunctionError } from '../../errors.ts';
import { deepEqual } from '../../model/equal.ts';
import { PROTOCOLS, type Protocol } from '../../model/objects.ts';
import type { ServicePortId } from '../../model/serviceTracker.ts';
import type { Plan, ServicePortPlan } from '../../plan/types.ts';
import type { SyncAttempt } from '../iptables/reconcile.ts';
import { type Eviction, evictStale, protocolsToEvict } from './rules/affinity.ts';
import { forEachSliced, runSliced, type TimeSlice } from '../../time/timeSlice.ts';
import { Committer, slices } from './rules/committer.ts';
import { compileElements, compileShared, NO_ELEMENTS, type NftFragment } from './rules/compile.ts';
import {
  concernedBy,
  diffElements,
  type ElementEdit,
  editOperations,
  type ForeignElement,
  type InOrder,
  isEmptyEdit,
  repairs,
  removal,
  restructure,
  type Restructuring,
  editSize,
  withoutGaps,
} from './rules/diff.ts';
import { resync, type DesiredTable, type ResyncReport } from './rules/resync.ts';
import { type Element, type Ruleset, setsByName, type TableSet } from './rules/rule.ts';
import { divide, inTransactions, isDivisible } from './rules/portions.ts';
import { printKey } from './rules/print.ts';
import { fixedElements, type NftSettings, rulesetOf, type TableOptions } from './rules/ruleset.ts';
import { ReferenceCounts } from './rules/referenceCounts.ts';
import { chainsIn, type NftClient, noting, type TableTransaction } from './rules/transaction.ts';

export interface NftReport {
  readonly kind: 'full' | 'incremental' | 'nothing';
  readonly transactions: number;
  readonly elements: number;
  readonly refused: ReadonlyMap<ServicePortId, Error>;
  /** Whether all went that had to go: otherwise it is worth to look again, at chains and sets alone. */
  readonly isClean: boolean;
  /** Chains that were written or removed. */
  readonly chains: number;
  /** Something is in no use any more: a sync after so many milliseconds removes it. */
  readonly retireInMs: number | undefined;
}

/** What one part of a sync did. */
type Part = Pick<NftReport, 'transactions' | 'elements' | 'isClean'>;
const NOTHING: Part = { transactions: 0, elements: 0, isClean: true };

export interface NftBackendOptions {
  readonly client: NftClient;
  readonly now: () => number;
  readonly timeSlice?: TimeSlice;
  /** How many elements a transaction has, as long as nothing is known of the kernel's speed. */
  readonly firstChunk?: number;
}

const TRIES = 5;
/**
 * A pool size or a time-out that nobody uses stays for so long. A rollout comes back to most sizes within a moment; and no
 * packet is on its way any more that was led there.
 */
const IDLE_MS = 5000;
/** What one transaction removes, so that it does not hold the kernel's lock for long. */
const REMOVALS = 1000;

export class NftBackend {
  readonly #client: NftClient;
  readonly #committer: Committer;
  readonly #timeSlice: TimeSlice | undefined;
  readonly #applied = new Map<ServicePortId, ServicePortPlan>();
  #tally = new ReferenceCounts();
  #options: TableOptions | undefined;
  #ruleset: Ruleset = { sets: [], chains: [] };
  /** Of the tally, when the ruleset was made. */
  #version = 0;
  #needsFull = true;
  /** Apart from `#needsFull`, so that a request during a sync is not forgotten at its end. */
  #fullRequested = false;
  #attempt: SyncAttempt = 'full';
  #refused: ReadonlyMap<ServicePortId, Error> = new Map();
  #foreign: ForeignElement[] = [];
  /** Sets that somebody else made anew; `undefined` where nobody was at anything but elements. */
  #foreignSets: Set<string> | undefined;
  /** Protocols of which some client may be remembered who should not be; at the start nobody knows. */
  readonly #toForget = new Set<Protocol>(PROTOCOLS);

  readonly #now: () => number;
  /** Names of the chains that the sync under way has written. */
  readonly #written = new Set<string>();

  constructor({ client, now, timeSlice, firstChunk }: NftBackendOptions) {
    this.#client = noting(client, (transaction) => {
      for (const name of chainsIn(transaction)) this.#written.add(name);
    });
    this.#committer = new Committer(this.#client, now, firstChunk);
    this.#now = now;
    this.#timeSlice = timeSlice;
  }

  /** Of the last sync, also if it failed. */
  get attempt(): SyncAttempt {
    return this.#attempt;
  }

  /** The next sync reads the kernel and mends what differs. */
  requestFull(): void {
    this.#fullRequested = true;
  }

  /** The next sync mends these, without reading anything. */
  noteForeign(elements: readonly ForeignElement[]): void {
    this.#foreign.push(...elements);
  }

  /** The next sync looks at chains, rules and sets; of these sets, at what is in them too. */
  noteStructure(sets: Iterable<string>): void {
    this.#foreignSets = new Set([...(this.#foreignSets ?? []), ...sets]);
  }

  /** The table as it was last written. */
  get ruleset(): Ruleset {
    return this.#ruleset;
  }

  async sync(plan: Plan, dirty: Iterable<ServicePortId>, settings: NftSettings): Promise<NftReport> {
    const options: TableOptions = { ...settings, family: plan.family, view: plan.view };
    this.#written.clear();
    const parts = await this.#syncKnown(plan, [...dirty], options);
    if (!parts) {
      this.#attempt = 'full';
      return this.#syncFull(plan, options);
    }
    const transactions = parts.reduce((sum, part) => sum + part.transactions, 0);
    return {
      kind: transactions > 0 ? 'incremental' : 'nothing',
      transactions,
      elements: parts.reduce((sum, part) => sum + part.elements, 0),
      refused: this.#refused,
      isClean: parts.every(({ isClean }) => isClean),
      ...this.#ending(),
    };
  }

  #ending(): Pick<NftReport, 'chains' | 'retireInMs'> {
    const { idleSince } = this.#tally;
    const retireInMs = idleSince === undefined ? undefined : Math.max(0, idleSince + IDLE_MS - this.#now());
    return { chains: this.#written.size, retireInMs };
  }

  /** From what is known of the kernel. `undefined`: it has to be read. */
  async #syncKnown(
    plan: Plan,
    ids: readonly ServicePortId[],
    options: TableOptions,
  ): Promise<readonly Part[] | undefined> {
    const mustLook = this.#needsFull || this.#fullRequested || !deepEqual(options, this.#options);
    this.#attempt = mustLook || this.#refused.size > 0 ? 'full' : 'partial';
    if (this.#attempt === 'full') return undefined;
    const repaired = await this.#repair(options);
    if (this.#needsFull) return undefined;
    const mended = await this.#mend(options);
    const changed = mended && (await this.#syncChanges(plan, ids, options));
    const retired = changed && (await this.#retire(options));
    return retired && [repaired, mended, changed, retired];
  }

  /** Chains, rules and sets, without reading what is known. Against what was written last, like the repairs of elements. */
  async #repair(options: TableOptions): Promise<Part> {
    const only = this.#foreignSets;
    if (!only) return NOTHING;
    this.#foreignSets = undefined;
    this.#foreign = this.#foreign.filter(({ element }) => !only.has(element.set));
    this.#needsFull = true;
    const report = await this.#adopt(this.#wanted(this.#applied, options), only);
    this.#needsFull = report.refused.size > 0;
    return report;
  }

  /** Against what was written last: what has changed since comes after. `undefined`: it has to be looked at. */
  async #mend(options: TableOptions): Promise<Part | undefined> {
    const foreign = this.#foreign;
    this.#foreign = [];
    if (foreign.length === 0) return NOTHING;
    const wanted = new Map<string, Element>();
    const shared = [...this.#tally.elements(), ...fixedElements(options)];
    for (const element of shared) wanted.set(`${element.set} ${printKey(element.key)}`, element);
    const concerned = concernedBy(foreign);
    await this.#forEachSliced(this.#applied.values(), (port) => {
      if (!concerned(port)) return;
      for (const element of compileElements(port, options).elements)
        wanted.set(`${element.set} ${printKey(element.key)}`, element);
    });
    const transaction = repairs(foreign, setsByName(this.#ruleset), (set, { key }) =>
      wanted.get(`${set} ${printKey(key)}`),
    );
    if (transaction.length === 0) return NOTHING;
    this.#needsFull = true; // nobody will tell of these elements again
    const outcome = await this.#client.commit(transaction);
    if (outcome.state === 'refused') return undefined;
    this.#needsFull = false;
    return { transactions: 1, elements: foreign.length, isClean: true };
  }

  /** `undefined` where the kernel will not have it: then it has to be looked at. */
  async #syncChanges(
    plan: Plan,
    ids: readonly ServicePortId[],
    options: TableOptions,
  ): Promise<Part | undefined> {
    this.#needsFull = true; // until all of it is in the kernel
    const edits: ElementEdit[] = [];
    const left: ServicePortPlan[] = [];
    this.#timeSlice?.begin();
    for (const id of ids) {
      const before = this.#applied.get(id);
      const after = plan.servicePorts.get(id);
      const [old, now] = [compile(before, options), compile(after, options)];
      this.#tally.add(now); // first: what both use is not idle in between
      this.#tally.remove(old, this.#now());
      edits.push({ owner: id, ...(await this.#runSliced(diffElements(old.elements, now.elements))) });
      if (before?.affinitySeconds !== undefined) left.push(before);
    }
    const { added, removed } = this.#tally.takeChanges();
    edits.push({ owner: undefined, removes: removed, adds: added });
    const before = this.#ruleset;
    // The settings are those of the last full sync, so that the shape alone can have changed.
    const ruleset = this.#tally.version === this.#version ? before : this.#rulesetFor(options);
    const { first, last } = restructure(before, ruleset);
    const changes = edits.filter((edit) => !isEmptyEdit(edit));
    const sets = setsByName(ruleset);
    const order = await this.#runSliced(withoutGaps(changes));
    for (const protocol of protocolsToEvict(left, plan)) this.#toForget.add(protocol);
    for (const id of ids) this.#remember(plan, id);
    this.#ruleset = ruleset; // before the kernel tells of anything in it
    let transactions = 0;
    for await (const transaction of this.#transactions(order, { first, last }, sets)) {
      if (transaction.length === 0) continue;
      const outcome = await this.#committer.attempt(transaction);
      if (outcome.state === 'refused') return undefined;
      transactions++;
    }
    const { isDone: isClean, transactions: forgets } = await this.#forget(plan, options);
    this.#needsFull = false;
    return {
      transactions: transactions + forgets,
      elements: changes.reduce((sum, edit) => sum + editSize(edit), 0),
      isClean,
    };
  }

  async *#transactions(
    order: InOrder,
    { first, last }: Restructuring,
    sets: ReadonlyMap<string, TableSet>,
  ): AsyncGenerator<TableTransaction> {
    const { chunk } = this.#committer;
    if (!isDivisible(order, chunk)) {
      // A packet that is on its way sees no rule of a chain that comes with what leads there.
      const isEarlier = first.some(({ kind }) => kind === 'addChain');
      if (isEarlier) yield first;
      yield [...(isEarlier ? [] : first), ...editOperations(order.first, sets), ...last];
      yield editOperations(order.last, sets);
      return;
    }
    const { early, main, late } = await this.#runSliced(divide(order, sets, chunk));
    yield first;
    yield* inTransactions(early, sets, chunk);
    yield last;
    for (const edits of main) yield editOperations(edits, sets);
    yield* inTransactions(late, sets, chunk);
  }

  /** Sizes and time-outs that nobody has used for a while go, with their maps, chains and rules. */
  async #retire(options: TableOptions): Promise<Part | undefined> {
    this.#tally.retire(this.#now() - IDLE_MS);
    if (this.#tally.version === this.#version) return NOTHING;
    const before = this.#ruleset;
    this.#ruleset = this.#rulesetFor(options);
    this.#needsFull = true;
    const transactions = [...slices(removal(before, this.#ruleset), REMOVALS)];
    for (const transaction of transactions) {
      const outcome = await this.#client.commit(transaction);
      if (outcome.state === 'refused') return undefined;
    }
    this.#needsFull = false;
    return { ...NOTHING, transactions: transactions.length };
  }

  async #syncFull(plan: Plan, options: TableOptions): Promise<NftReport> {
    const isUnsettled = this.#needsFull || this.#refused.size > 0;
    this.#needsFull = true;
    this.#fullRequested = false;
    this.#foreign = [];
    this.#foreignSets = undefined;
    this.#options = options;
    // What a service port had that is refused now must still be looked up.
    this.#tally = new ReferenceCounts(isUnsettled ? { counts: this.#tally, now: this.#now() } : undefined);
    for (const protocol of protocolsToEvict(this.#applied.values(), plan)) this.#toForget.add(protocol);
    this.#applied.clear();
    await this.#forEachSliced(plan.servicePorts, ([id, port]) => {
      this.#applied.set(id, port);
      this.#tally.add(compileShared(port, options));
    });
    this.#tally.takeChanges();
    this.#ruleset = this.#rulesetFor(options);
    const report = await this.#adopt(this.#wanted(plan.servicePorts, options));
    const forgets = await this.#forget(plan, options);
    this.#needsFull = false;
    this.#refused = report.refused;
    return {
      kind: 'full',
      ...report,
      transactions: report.transactions + forgets.transactions,
      isClean: report.isClean && forgets.isDone,
      ...this.#ending(),
    };
  }

  /** Again from the beginning, where somebody else was at the table meanwhile. */
  async #adopt(table: DesiredTable, only?: ReadonlySet<string>): Promise<ResyncReport> {
    const [client, committer, timeSlice] = [this.#client, this.#committer, this.#timeSlice];
    for (let tries = 1; ; tries++) {
      try {
        return await resync({
          client,
          committer,
          table,
          timeSlice,
          ...(tries === 1 && only && { only }),
        });
      } catch (error) {
        if (!isJunctionError(error, 'NFTABLES_CHANGED') || tries === TRIES) throw error;
      }
    }
  }

  /** What fails is left for the next sync. */
  async #forget(plan: Plan, { nodeIps = [] }: TableOptions): Promise<Eviction> {
    if (this.#toForget.size === 0) return { isDone: true, transactions: 0 };
    const sets = setsByName(this.#ruleset);
    const { chunk } = this.#committer;
    const [client, timeSlice] = [this.#client, this.#timeSlice];
    const forgetting = await evictStale(this.#toForget, {
      client,
      plan,
      nodeIps,
      sets,
      chunk,
      timeSlice,
    });
    if (forgetting.isDone) this.#toForget.clear();
    return forgetting;
  }

  #wanted(servicePorts: Plan['servicePorts'], options: TableOptions): DesiredTable {
    return {
      ruleset: this.#ruleset,
      shared: [...this.#tally.elements(), ...fixedElements(options)],
      servicePorts,
      compile: (port) => compileElements(port, options).elements,
    };
  }

  #rulesetFor(options: TableOptions): Ruleset {
    this.#version = this.#tally.version;
    const ruleset = rulesetOf(this.#tally.shape(options.serviceCidrs.length > 0), options, this.#ruleset);
    return deepEqual(ruleset, this.#ruleset) ? this.#ruleset : ruleset;
  }

  #remember(plan: Plan, id: ServicePortId): void {
    const port = plan.servicePorts.get(id);
    if (port) this.#applied.set(id, port);
    else this.#applied.delete(id);
  }

  #runSliced<T>(steps: Generator<unknown, T>): Promise<T> {
    return runSliced(steps, this.#timeSlice);
  }

  #forEachSliced<T>(items: Iterable<T>, work: (item: T) => void | Promise<void>): Promise<void> {
    return forEachSliced(items, work, this.#timeSlice);
  }
}

function compile(port: ServicePortPlan | undefined, options: TableOptions): NftFragment {
  return port ? compileElements(port, options) : NO_ELEMENTS;
}

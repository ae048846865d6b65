/**
 * Keeps the table equal to the plan.
 *
 * An ordinary sync compiles the service ports that changed, before and after, and commits the difference as one
 * transaction. The kernel is read only at the start, after a failure, when somebody else has been at the table, and
 * when somebody asks to verify.
 */
import { deepEqual } from '../../model/equal.ts';
import type { Cidr, Ip } from '../../model/ip.ts';
import { PROTOCOLS, type Protocol } from '../../model/objects.ts';
import type { ServicePortId } from '../../model/servicePort.ts';
import type { Plan, ServicePortPlan } from '../../plan/types.ts';
import type { Breath } from '../iptables/backend.ts';
import { forgetStale, losers } from './affinity.ts';
import { Committer } from './committer.ts';
import { compileServicePort, compileShared, NO_FRAGMENT, type NftFragment } from './compile.ts';
import { diffElements, type Edit, editOperations, isEmpty, restructure } from './edit.ts';
import { adopt, type AdoptedTable } from './adopt.ts';
import type { Element, Ruleset, TableSet } from './rule.ts';
import { concernedBy, type ForeignElement, mending } from './mend.ts';
import { printKey } from './print.ts';
import { withoutCovered } from './ranges.ts';
import { rulesetOf, type RulesetOptions } from './ruleset.ts';
import { SETS } from './names.ts';
import { Tally } from './tally.ts';
import type { NftDoor, Transaction } from './transaction.ts';

export interface NftSettings {
  readonly masqueradeMark: number;
  readonly counters: boolean;
  /** Where node ports answer, in a fixed order. */
  readonly nodePortIps: readonly Ip[];
  /** Where cluster IPs come from, where that is known. */
  readonly serviceCidrs: readonly Cidr[];
  /** All addresses of this node: what a remembered client is depends on them. */
  readonly nodeIps?: readonly Ip[];
}

export interface NftReport {
  readonly kind: 'full' | 'incremental' | 'nothing';
  readonly transactions: number;
  readonly elements: number;
  readonly refused: ReadonlyMap<ServicePortId, Error>;
}

export interface NftBackendOptions {
  readonly door: NftDoor;
  readonly now: () => number;
  readonly breath?: Breath;
}

interface Options extends NftSettings, RulesetOptions {}

export class NftBackend {
  readonly #door: NftDoor;
  readonly #committer: Committer;
  readonly #breath: Breath | undefined;
  readonly #applied = new Map<ServicePortId, ServicePortPlan>();
  #tally = new Tally();
  #options: Options | undefined;
  #ruleset: Ruleset = { sets: [], chains: [] };
  /** Of the tally, when the ruleset was made. */
  #extent = 0;
  #needsFull = true;
  /** Apart from `#needsFull`, so that a request during a sync is not forgotten at its end. */
  #fullRequested = false;
  #refused: ReadonlyMap<ServicePortId, Error> = new Map();
  #foreign: ForeignElement[] = [];
  /** Protocols of which some client may be remembered who should not be; at the start nobody knows. */
  readonly #toForget = new Set<Protocol>(PROTOCOLS);

  constructor({ door, now, breath }: NftBackendOptions) {
    this.#door = door;
    this.#committer = new Committer(door, now);
    this.#breath = breath;
  }

  /** The next sync reads the kernel and mends what differs. */
  requestFull(): void {
    this.#fullRequested = true;
  }

  /** The next sync mends these, without reading anything. */
  noteForeign(elements: readonly ForeignElement[]): void {
    this.#foreign.push(...elements);
  }

  /** The table as it was last written. */
  get ruleset(): Ruleset {
    return this.#ruleset;
  }

  async sync(plan: Plan, dirty: Iterable<ServicePortId>, settings: NftSettings): Promise<NftReport> {
    const options: Options = { ...settings, family: plan.family, view: plan.view };
    const ids = [...dirty];
    const mustLook = this.#needsFull || this.#fullRequested || !deepEqual(options, this.#options);
    if (mustLook || this.#refused.size > 0) return this.#syncFull(plan, options);
    const mended = await this.#mend(options);
    const report = mended && (await this.#syncChanges(plan, ids, options));
    if (!report) return this.#syncFull(plan, options);
    if (mended.transactions === 0) return report;
    const [transactions, elements] = [
      mended.transactions + report.transactions,
      mended.elements + report.elements,
    ];
    return { ...report, kind: 'incremental', transactions, elements };
  }

  /** Against what was written last: what has changed since comes after. `undefined`: it has to be looked at. */
  async #mend(options: Options): Promise<Pick<NftReport, 'transactions' | 'elements'> | undefined> {
    const foreign = this.#foreign;
    this.#foreign = [];
    if (foreign.length === 0) return { transactions: 0, elements: 0 };
    const wanted = new Map<string, Element>();
    const shared = [...this.#tally.elements(), ...fixedElements(options)];
    for (const element of shared) wanted.set(`${element.set} ${printKey(element.key)}`, element);
    const concerned = concernedBy(foreign);
    await this.#eachCalmly(this.#applied.values(), (port) => {
      if (!concerned(port)) return;
      for (const element of compileServicePort(port, options).elements)
        wanted.set(`${element.set} ${printKey(element.key)}`, element);
    });
    const transaction = mending(foreign, setsOf(this.#ruleset), (set, { key }) =>
      wanted.get(`${set} ${printKey(key)}`),
    );
    if (transaction.length === 0) return { transactions: 0, elements: 0 };
    this.#needsFull = true; // nobody will tell of these elements again
    const outcome = await this.#door.commit(transaction);
    if (outcome.state === 'refused') return undefined;
    this.#needsFull = false;
    return { transactions: 1, elements: foreign.length };
  }

  /** `undefined` where the kernel will not have it: then it has to be looked at. */
  async #syncChanges(
    plan: Plan,
    ids: readonly ServicePortId[],
    options: Options,
  ): Promise<NftReport | undefined> {
    this.#needsFull = true; // until all of it is in the kernel
    const edits: Edit[] = [];
    const left: ServicePortPlan[] = [];
    await this.#eachCalmly(ids, (id) => {
      const before = this.#applied.get(id);
      const after = plan.servicePorts.get(id);
      const [old, now] = [compile(before, options), compile(after, options)];
      this.#tally.remove(old);
      if (after) this.#tally.add(now, after);
      edits.push({ owner: id, ...diffElements(old.elements, now.elements) });
      if (before?.affinitySeconds !== undefined) left.push(before);
    });
    const { added, removed } = this.#tally.takeChanges();
    edits.push({ owner: undefined, removes: removed, adds: added });
    const before = this.#ruleset;
    // The settings are those of the last full sync, so that the shape alone can have changed.
    const ruleset = this.#tally.extent === this.#extent ? before : this.#rulesetFor(options);
    const { first, last } = restructure(before, ruleset);
    const changes = edits.filter((edit) => !isEmpty(edit));
    const transaction: Transaction = [...first, ...editOperations(changes, setsOf(ruleset)), ...last];
    for (const protocol of losers(left, plan)) this.#toForget.add(protocol);
    for (const id of ids) this.#remember(plan, id);
    if (transaction.length > 0) {
      const outcome = await this.#door.commit(transaction);
      if (outcome.state === 'refused') return undefined;
    }
    this.#ruleset = ruleset;
    const transactions = (transaction.length > 0 ? 1 : 0) + (await this.#forget(plan, options));
    this.#needsFull = false;
    return {
      kind: transactions > 0 ? 'incremental' : 'nothing',
      transactions,
      elements: changes.reduce((sum, { adds, removes }) => sum + adds.length + removes.length, 0),
      refused: this.#refused,
    };
  }

  async #syncFull(plan: Plan, options: Options): Promise<NftReport> {
    const isUnsettled = this.#needsFull || this.#refused.size > 0;
    this.#needsFull = true;
    this.#fullRequested = false;
    this.#foreign = [];
    this.#options = options;
    // What a service port had that is refused now must still be looked up.
    this.#tally = new Tally(isUnsettled ? this.#tally : undefined);
    for (const protocol of losers(this.#applied.values(), plan)) this.#toForget.add(protocol);
    this.#applied.clear();
    await this.#eachCalmly(plan.servicePorts, ([id, port]) => {
      this.#applied.set(id, port);
      this.#tally.add(compileShared(port, options), port);
    });
    this.#tally.takeChanges();
    this.#ruleset = this.#rulesetFor(options);
    const report = await adopt({
      door: this.#door,
      committer: this.#committer,
      table: this.#wanted(plan, options),
      eachCalmly: (items, work) => this.#eachCalmly(items, work),
    });
    const forgets = await this.#forget(plan, options);
    this.#needsFull = false;
    this.#refused = report.refused;
    return { kind: 'full', ...report, transactions: report.transactions + forgets };
  }

  /** Answers with how many transactions. What fails is left for the next sync. */
  async #forget(plan: Plan, { nodeIps = [] }: Options): Promise<number> {
    if (this.#toForget.size === 0) return 0;
    const sets = setsOf(this.#ruleset);
    const { chunk } = this.#committer;
    const { isDone, transactions } = await forgetStale(this.#toForget, {
      door: this.#door,
      plan,
      nodeIps,
      sets,
      chunk,
    });
    if (isDone) this.#toForget.clear();
    return transactions;
  }

  #wanted(plan: Plan, options: Options): AdoptedTable {
    return {
      ruleset: this.#ruleset,
      shared: [...this.#tally.elements(), ...fixedElements(options)],
      servicePorts: plan.servicePorts,
      compile: (port) => compileServicePort(port, options).elements,
    };
  }

  #rulesetFor(options: Options): Ruleset {
    this.#extent = this.#tally.extent;
    const ruleset = rulesetOf(this.#tally.shape(options.serviceCidrs.length > 0), options);
    return deepEqual(ruleset, this.#ruleset) ? this.#ruleset : ruleset;
  }

  #remember(plan: Plan, id: ServicePortId): void {
    const port = plan.servicePorts.get(id);
    if (port) this.#applied.set(id, port);
    else this.#applied.delete(id);
  }

  async #eachCalmly<T>(items: Iterable<T>, work: (item: T) => void | Promise<void>): Promise<void> {
    const breath = this.#breath;
    breath?.begin();
    for (const item of items) {
      const waiting = work(item);
      if (waiting) {
        await waiting;
        breath?.begin();
      }
      const pause = breath?.take();
      if (pause) await pause;
    }
  }
}

function compile(port: ServicePortPlan | undefined, options: Options): NftFragment {
  return port ? compileServicePort(port, options) : NO_FRAGMENT;
}

/** What comes from the node and its settings, and not from services. */
export function fixedElements({ view, nodePortIps, serviceCidrs }: Options) {
  return [
    ...(view.nodePorts.ranges === 'all'
      ? []
      : nodePortIps.map((address) => ({ set: SETS.nodePortIPs, key: { address } }))),
    ...withoutCovered(serviceCidrs).map((range) => ({ set: SETS.serviceCidrs, key: { range } })),
  ];
}

export function setsOf({ sets }: Ruleset): ReadonlyMap<string, TableSet> {
  return new Map(sets.map((set) => [set.name, set]));
}

/** A cluster in text, a writer, and a kernel in memory behind it. */
import { NftRules } from '../../../../src/modes/nftables/reconcile.ts';
import { CLEANUP_FAILURES } from '../../../../src/modes/nftables/rules/resync.ts';
import type { LookResult, SyncReport } from '../../../../src/proxy/report.ts';
import type { ApplyRecord } from '../../../../src/proxy/reconciler.ts';
import type { NftSettings } from '../../../../src/modes/nftables/rules/ruleset.ts';
import { Backstop, type BackstopFailure } from '../../../../src/modes/nftables/rules/backstop.ts';
import type { ForeignElement } from '../../../../src/modes/nftables/rules/table.ts';
import type { NftClient } from '../../../../src/modes/nftables/rules/table.ts';
import type { Family } from '../../../../src/model/ip.ts';
import type { ServicePortId } from '../../../../src/model/serviceTracker.ts';
import type { NodeView, Plan } from '../../../../src/plan/types.ts';

import { systemClock } from '../../../../src/time/systemClock.ts';
import { TimeSlice } from '../../../../src/time/timeSlice.ts';
import { Cluster } from '../../../plan/cluster.ts';
import { ip, VIEW } from '../../../plan/given.ts';
import { FakeNftKernel } from './fakeKernel.ts';
import { meaningOf, printPlain } from './cluster.ts';

export const NODE_IPS = [ip('192.0.2.10'), ip('192.0.2.11')];
export const SETTINGS: NftSettings = {
  masqueradeMark: 0x4000,
  counters: true,
  nodePortIps: NODE_IPS,
  nodeIps: NODE_IPS,
  serviceCidrs: [],
};

export interface HarnessOptions {
  readonly kernel?: FakeNftKernel;
  /** In place of the kernel in memory. */
  readonly client?: NftClient;
  readonly cluster?: Cluster;
  readonly view?: NodeView;
  readonly family?: Family;
  readonly settings?: Partial<NftSettings>;
  /** Elements in a transaction, as long as nothing is known of the kernel's speed. */
  readonly firstChunk?: number;
  /** Of what is written. */
  readonly record?: ApplyRecord;
  /** How long a sync waits for what may take long; unset: until it is done. */
  readonly wait?: () => Promise<void>;
  /** A second table, in a kernel of its own. */
  readonly backstop?: FakeNftKernel;
}

export class Harness {
  readonly kernel: FakeNftKernel;
  readonly cluster: Cluster;
  settings: NftSettings;
  /** Milliseconds that each look at the clock takes. */
  tick = 0;
  readonly #given: HarnessOptions;
  readonly #writer: NftRules;
  readonly #backstop: Backstop | undefined;
  readonly #unwritten = new Set<ServicePortId>();
  #now = 0;
  #isUnclean = false;
  /** What went wrong with the backstop at the last sync. */
  failure: BackstopFailure | undefined;

  constructor(given: HarnessOptions = {}) {
    const { family = 'IPv4' } = given;
    this.#given = given;
    this.kernel = given.kernel ?? new FakeNftKernel(family);
    this.cluster = given.cluster ?? new Cluster(given.view ?? VIEW, family);
    this.settings = { ...SETTINGS, ...given.settings };
    const now = (): number => (this.#now += this.tick);
    this.#writer = new NftRules({
      client: given.client ?? this.kernel,
      now,
      ...(given.wait && { wait: given.wait }),
      ...(given.firstChunk !== undefined && { firstChunk: given.firstChunk }),
      record: given.record,
    });
    this.#backstop = given.backstop && new Backstop({ client: given.backstop, now });
  }

  /** Tells the cluster these lines, and syncs. What a failed sync left undone is tried again by the next. */
  async sync(...lines: readonly string[]): Promise<SyncReport> {
    this.cluster.tell(...lines);
    for (const id of this.cluster.takeDirty()) this.#unwritten.add(id);
    this.kernel.forget();
    const { planner } = this.cluster;
    // What could not be removed is looked at once more.
    if (this.#isUnclean) this.noteStructure([]);
    this.#isUnclean = false;
    const report = await this.#write(planner);
    const changed = report.kind === 'full' ? undefined : [...this.#unwritten];
    this.failure = await this.#backstop?.sync(planner, { changed, refused: report.refused }, this.settings);
    if (report.counts[CLEANUP_FAILURES]) this.#isUnclean = true;
    this.#unwritten.clear();
    return report;
  }

  async #write(plan: Plan): Promise<SyncReport> {
    try {
      return await this.#writer.sync(plan, this.#unwritten, this.settings);
    } catch (error) {
      await this.#backstop?.release(plan, this.#unwritten);
      throw error;
    }
  }

  /** The backstop's socket may have gone. */
  doubt(): void {
    this.#backstop?.requestFull();
  }

  /** Time goes by. */
  wait(milliseconds: number): void {
    this.#now += milliseconds;
  }

  requestFull(): void {
    this.#writer.requestFull();
  }

  /** Somebody was seen at these elements. */
  noteForeign(elements: readonly ForeignElement[]): void {
    this.#writer.noteForeign(elements);
  }

  /** Somebody was seen at chains or rules, or made these sets anew. */
  noteStructure(sets: Iterable<string>): void {
    this.#writer.noteStructure(sets);
  }

  /** Compares the table beside syncs. */
  verify(timeSlice: TimeSlice = new TimeSlice(systemClock)): Promise<LookResult> {
    return this.#writer.verify(timeSlice);
  }

  async syncFull(...lines: readonly string[]): Promise<SyncReport> {
    this.requestFull();
    return this.sync(...lines);
  }

  /** Junction stops and starts again: same cluster, same kernel, no memory. */
  restarted(): Harness {
    const { kernel, cluster, settings } = this;
    kernel.before = () => {};
    kernel.after = () => {};
    return new Harness({ ...this.#given, kernel, cluster, settings });
  }

  /** What a kernel has that never had anything else. */
  async fromScratch(): Promise<readonly string[]> {
    const { cluster, settings } = this;
    const { client: _, backstop: __, ...given } = this.#given;
    const kernel = new FakeNftKernel(this.kernel.family);
    const fresh = new Harness({ ...given, kernel, cluster, settings });
    await fresh.sync();
    return fresh.world;
  }

  get world(): readonly string[] {
    return meaningOf(this.kernel);
  }

  /** Elements that the last sync added and deleted, as `+ any-1 { … }` and `- …`, by transaction. */
  get sent(): readonly (readonly string[])[] {
    return this.kernel.taken.map((transaction) => transaction.flatMap(printOperation));
  }
}

function printOperation(operation: FakeNftKernel['taken'][number][number]): readonly string[] {
  switch (operation.kind) {
    case 'addElements':
    case 'deleteElements': {
      const sign = operation.kind === 'addElements' ? '+' : '-';
      return operation.elements.map((element) => `${sign} ${printPlain(element)}`);
    }
    case 'addSet':
      return [`set ${operation.set.name}`];
    case 'addRule':
      return [`rule ${operation.chain}`];
    case 'deleteRule':
      return [operation.kind];
    case 'deleteSet':
      return [`${operation.kind} ${operation.set}`];
    default:
      return ['chain' in operation ? `${operation.kind} ${operation.chain}` : operation.kind];
  }
}

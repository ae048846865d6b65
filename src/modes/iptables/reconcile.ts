/**
 * Keeps the kernel's iptables equal to the plan.
 *
 * An ordinary sync compiles the service ports that changed, before and after, and sends the difference. The kernel
 * is read only at the start, after a failure, and when somebody asks to verify.
 */
import { deepEqual } from '../../model/equal.ts';
import type { ServicePortId } from '../../model/serviceTracker.ts';
import type { Plan, ServicePortPlan } from '../../plan/types.ts';
import {
  addBase,
  addFragment,
  type Applied,
  appliedFragments,
  type ChainRef,
  compileAll,
  type CompileOptions,
  counted,
  EMPTY_FRAGMENT,
  type Fragment,
  type Layout,
  noRules,
  recordApplied,
  type RuleCounts,
} from './rules/fragment.ts';
import { nameChains, type SharedChainText } from './rules/edit.ts';
import { fullSteps } from './rules/resync.ts';
import { hasServiceChains } from './rules/cleanup.ts';
import { Difference, SharedChains, TABLES } from './rules/diff.ts';
import {
  digestChain,
  mentionsServices,
  type ParsedChain,
  parseSave,
  SaveReader,
  type Tables,
  type WantedChains,
} from './rules/parse.ts';
import type { Table } from './rules/rule.ts';
import { isRefusal, Sender, type Sent, type TableClient, type TakeText } from './rules/sender.ts';
import { dormantTable, type Touched, TouchedChains, type TouchedTable } from './rules/touched.ts';

export interface SyncReport extends Sent {
  readonly kind: 'full' | 'incremental' | 'nothing';
  /** Rules in the kernel that are ours, by table. */
  readonly owned: RuleCounts;
  /** Service ports whose rules the kernel would not take; what they had before stays in force. */
  readonly refused: ReadonlyMap<ServicePortId, Error>;
  /** What was not as we had left it, though nothing of ours changed it; for people, and not all of it. */
  readonly repaired?: readonly string[];
  /** Written besides rules: virtual servers, endpoints, entries of sets, addresses. */
  readonly objects?: number;
  /** Something that nobody needs any more could not be removed yet. */
  readonly isUnclean?: boolean;
  /** The kernel refused what had changed, and a full sync followed. */
  readonly hasPartialFailed?: boolean;
}

/** What a sync set out to do: read the kernel and write what differs, or write only what changed. */
export type SyncAttempt = 'full' | 'partial';

/** Above this many endpoints, comments on each of them cost more than they tell. */
const LARGE_CLUSTER = 1000;

export type StaticOptions = Omit<CompileOptions, 'endpointComments' | 'view' | 'family'>;

const KUBELET_CANARY = 'KUBE-KUBELET-CANARY';
const EMPTY_CHAIN: ParsedChain = { rules: [] };

interface Look {
  /** What was last written is what we came to write: other differences are another program's. */
  readonly isComplete: boolean;
  readonly beforeSwitch: (() => Promise<void>) | undefined;
  readonly sender: Sender;
}

export class IptablesBackend {
  readonly #layout: Layout;
  readonly #client: TableClient;
  readonly #applied = new Map<ServicePortId, Applied>();
  #appliedOptions: CompileOptions | undefined;
  #needsFull = true;
  /** Apart from `#needsFull`, so that a request during a sync is not forgotten at its end. */
  #fullRequested = false;
  /** What another program changed since the last look, as far as it concerns us. */
  #touched: TouchedChains | undefined;
  #refused: ReadonlyMap<ServicePortId, Error> = new Map();
  #owned = noRules();
  #attempt: SyncAttempt = 'full';

  constructor(layout: Layout, client: TableClient) {
    this.#layout = layout;
    this.#client = client;
  }

  /** Of the last sync, also if it failed. */
  get attempt(): SyncAttempt {
    return this.#attempt;
  }

  /** The next sync reads the kernel and mends what differs. */
  requestFull(): void {
    this.#fullRequested = true;
  }

  /** What another program changed; the next sync repairs it. Returns what of it concerns us, for people. */
  noteForeign(touched: Touched): readonly string[] {
    const options = this.#appliedOptions;
    // Nothing is written yet, or a look at everything is due: it will find this too.
    if (!options || !this.#client.list) {
      this.#fullRequested = true;
      return [...touched].flatMap(([table]) => `table ${table}`);
    }
    this.#touched ??= this.#nothingTouched(options);
    return this.#touched.add(touched);
  }

  /** The next sync looks at the jumps that lead from the kernel's own chains to ours, and at nothing else. */
  requestJumps(): void {
    const jumps = this.#layout.jumps.map(({ table, from }) => ({ table, from }));
    const tables = TABLES.map((table): [Table, TouchedTable] => {
      const chains = jumps.filter((jump) => jump.table === table);
      return [table, { isGone: false, chains: new Map(chains.map(({ from }) => [from, 'deleted'])) }];
    });
    this.noteForeign(new Map(tables));
  }

  /**
   * Brings the kernel to the plan. `dirty`: service ports that may differ from what was last written. `beforeSwitch`:
   * awaited before the rules of another mode are replaced, while they still forward.
   */
  async sync(
    plan: Plan,
    dirty: Iterable<ServicePortId>,
    settings: StaticOptions,
    beforeSwitch?: () => Promise<void>,
  ): Promise<SyncReport> {
    const options: CompileOptions = {
      ...settings,
      family: plan.family,
      view: plan.view,
      endpointComments: plan.endpointCount <= LARGE_CLUSTER,
    };
    const ids = [...dirty];
    // Otherwise what differs may be what we did not come to write.
    const isComplete = !this.#needsFull && !this.#mustRewriteAll(options) && this.#refused.size === 0;
    const sender = new Sender(this.#client);
    const look = { isComplete, beforeSwitch, sender };
    const mustLook = this.#needsFull || this.#fullRequested || this.#mustRewriteAll(options);
    const isFull = !isComplete && (mustLook || ids.some((id) => this.#refused.has(id)));
    this.#attempt = isFull ? 'full' : 'partial';
    if (isFull) return this.#syncFull(plan, options, look);
    let report: SyncReport;
    try {
      report = await this.#syncIncremental(plan, ids, options, sender);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      // Another program has changed our chains, or the kernel refuses a rule: look, repair, find out whose.
      return { ...(await this.#syncFull(plan, options, look)), hasPartialFailed: true };
    }
    if (!mustLook) return report;
    this.#attempt = 'full';
    // Our own changes are written, so whatever differs now is another program's, but for what waits for its turn.
    const full = await this.#syncFull(plan, options, look);
    const repaired = new Set([...(report.repaired ?? []), ...(full.repaired ?? [])]);
    return { ...full, ...(repaired.size > 0 && { repaired: [...repaired] }) };
  }

  /** Service ports that were last written as something else than they are in the plan. */
  #unlike({ servicePorts }: Plan): ReadonlySet<ServicePortId> {
    const ids = new Set<ServicePortId>();
    for (const [id, port] of servicePorts) if (this.#applied.get(id)?.plan !== port) ids.add(id);
    for (const id of this.#applied.keys()) if (!servicePorts.has(id)) ids.add(id);
    return ids;
  }

  #mustRewriteAll(options: CompileOptions): boolean {
    if (this.#client.list === undefined && this.#nodePortIpsDiffer(options)) return true;
    const { endpointComments: _, nodePortIps: _ips, ...now } = options;
    const { endpointComments: __, nodePortIps: __ips, ...before } = this.#appliedOptions ?? options;
    return !deepEqual(now, before);
  }

  /** Nothing but the rules at the end of one chain depends on these. */
  #nodePortIpsDiffer({ nodePortIps }: CompileOptions): boolean {
    return this.#appliedOptions !== undefined && !deepEqual(nodePortIps, this.#appliedOptions.nodePortIps);
  }

  async #syncIncremental(
    plan: Plan,
    ids: readonly ServicePortId[],
    options: CompileOptions,
    sender: Sender,
  ): Promise<SyncReport> {
    const repaired = await this.#repair(options, sender);
    const difference = new Difference(this.#layout);
    const owned = { ...this.#owned };
    this.#client.timeSlice?.begin();
    for (const id of ids) {
      // One service port may have 5,000 endpoints: each of these takes some tens of milliseconds then.
      const before = this.#compileApplied(id, options);
      await this.#pauseIfDue();
      const after = this.#compile(plan.servicePorts.get(id), options);
      await this.#pauseIfDue();
      difference.add({ owner: id, before, after });
      addFragment(owned, before, -1);
      addFragment(owned, after, 1);
      await this.#pauseIfDue();
    }
    const whole = await this.#whole(difference.thinned(), plan, ids, options);
    const steps = difference.steps(this.#client.chainsPerRestore, whole);
    this.#needsFull = true; // until all of it is in the kernel
    for (const step of steps) await sender.sendWhole(step);
    this.#needsFull = false;
    this.#owned = owned;
    for (const id of ids) recordApplied(this.#applied, plan, id, options);
    return this.#report(sender.sent.restores > 0 ? 'incremental' : 'nothing', sender, repaired);
  }

  /** These shared chains with the rules of everybody, as they are to be once these service ports are written. */
  async #whole(
    chains: readonly ChainRef[],
    plan: Plan,
    ids: readonly ServicePortId[],
    options: CompileOptions,
  ): Promise<readonly SharedChainText[]> {
    if (chains.length === 0) return [];
    const applied = new Map(this.#applied);
    for (const id of ids) recordApplied(applied, plan, id, options);
    const fragments = appliedFragments(this.#layout, applied, options);
    const shared = new SharedChains(chains);
    await this.#runSliced(shared.read(fragments));
    return shared.texts(this.#layout.base(options).tail);
  }

  #report(kind: SyncReport['kind'], sender: Sender, repaired: ReadonlySet<string>): SyncReport {
    return {
      kind,
      ...sender.sent,
      owned: { ...this.#owned },
      refused: this.#refused,
      ...(repaired.size > 0 && { repaired: [...repaired] }),
    };
  }

  /** Makes what another program touched what it was when we last wrote. Returns what was not. */
  async #repair(options: CompileOptions, sender: Sender): Promise<ReadonlySet<string>> {
    let scope = this.#touched;
    this.#touched = undefined;
    const repaired = new Set<string>();
    const { tailChain } = this.#layout;
    const isTailOld = this.#nodePortIpsDiffer(options);
    if (isTailOld) {
      scope ??= this.#nothingTouched(options);
      scope.addChain(tailChain);
    }
    if (!scope || scope.isEmpty) return repaired;
    this.#needsFull = true; // until all of it is in the kernel
    const base = this.#layout.base(options);
    const fragments = appliedFragments(this.#layout, this.#applied, options);
    const desired = { layout: this.#layout, options, base, fragments, scope };
    const state = await this.#readTouched(scope);
    this.#client.timeSlice?.begin();
    for (const step of fullSteps(state, desired, this.#client.chainsPerRestore)) {
      if (step === undefined) {
        const pause = this.#client.timeSlice?.pause();
        if (pause) await pause;
        continue;
      }
      nameChains(repaired, step);
      await sender.sendWhole(step);
    }
    if (scope.isDormant) await this.#wake(repaired);
    this.#needsFull = false;
    this.#appliedOptions = options;
    if (isTailOld) repaired.delete(`chain ${tailChain.table} ${tailChain.chain}`);
    return repaired;
  }

  async #wake(repaired: Set<string>): Promise<void> {
    for (const table of (await this.#client.wake?.()) ?? []) repaired.add(dormantTable(table));
  }

  #nothingTouched(options: CompileOptions): TouchedChains {
    return new TouchedChains(this.#layout, this.#layout.base(options));
  }

  async #readTouched(scope: TouchedChains): Promise<Tables> {
    // With kubelet's chain in it, so that rules which may be kubelet's stay: who wrote them was settled at the start.
    const tables = new Map<string, Map<string, ParsedChain>>([
      ['mangle', new Map([[KUBELET_CANARY, EMPTY_CHAIN]])],
    ]);
    for (const { table, chain } of scope.toRead()) {
      const text = await this.#client.list?.(table, chain);
      const read = text === undefined ? undefined : parseSave(text).get(table)?.get(chain);
      if (!read) continue;
      const chains = tables.get(table);
      if (chains) chains.set(chain, read);
      else tables.set(table, new Map([[chain, read]]));
    }
    return tables;
  }

  #compileApplied(id: ServicePortId, options: CompileOptions): Fragment {
    const applied = this.#applied.get(id);
    return this.#compile(applied?.plan, {
      ...options,
      endpointComments: applied?.endpointComments ?? options.endpointComments,
    });
  }

  async #pauseIfDue(): Promise<void> {
    const pause = this.#client.timeSlice?.pause();
    if (pause) await pause;
  }

  #compile(port: ServicePortPlan | undefined, options: CompileOptions): Fragment {
    return port ? this.#layout.servicePort(port, options) : EMPTY_FRAGMENT;
  }

  async #syncFull(
    plan: Plan,
    options: CompileOptions,
    { isComplete, beforeSwitch, sender }: Look,
  ): Promise<SyncReport> {
    const repaired = new Set<string>();
    const expected = isComplete ? this.#unlike(plan) : undefined;
    this.#needsFull = true;
    this.#fullRequested = false;
    this.#touched = undefined;
    const owned = noRules();
    const base = this.#layout.base(options);
    addBase(owned, base);
    const fragments = counted(compileAll(this.#layout, plan, options), owned);
    const desired = { layout: this.#layout, options, base, fragments };
    const state = await this.#read(plan, options);
    if (beforeSwitch && hasServiceChains(state)) await beforeSwitch();
    const steps = fullSteps(state, desired, this.#client.chainsPerRestore);
    this.#client.timeSlice?.begin();
    for (const step of steps) {
      if (step === undefined) {
        const pause = this.#client.timeSlice?.pause();
        if (pause) await pause;
        continue;
      }
      if (expected) nameChains(repaired, step, expected);
      if (step.phase !== 'garbage') await sender.send(step);
      // A refused service keeps what it had, so chains that look unused may still be its own.
      else if (sender.refused.size === 0) await sender.trySend(step);
    }
    await this.#wake(repaired);

    this.#needsFull = false;
    this.#refused = sender.refused;
    this.#owned = owned;
    this.#appliedOptions = options;
    this.#applied.clear();
    for (const id of plan.servicePorts.keys()) recordApplied(this.#applied, plan, id, options);
    return this.#report('full', sender, repaired);
  }

  async #read(plan: Plan, options: CompileOptions): Promise<Tables> {
    let wanted: WantedChains | undefined;
    const tables = new Map<string, ReadonlyMap<string, ParsedChain>>();
    for (const table of TABLES) {
      const reader = new SaveReader();
      const take: TakeText = async (text) => {
        if (!wanted && mentionsServices(text)) wanted = await this.#wantedChains(plan, options);
        if (wanted) reader.wanted = wanted;
        await this.#runSliced(reader.take(text));
      };
      if (this.#client.readSave) await this.#client.readSave(table, { counters: true }, take);
      else await take(await this.#client.save(table, { counters: true }));
      const chains = reader.end().get(table);
      if (chains) tables.set(table, chains);
    }
    return tables;
  }

  async #wantedChains(plan: Plan, options: CompileOptions): Promise<WantedChains> {
    const wanted = new Set<number>();
    const layout = this.#layout;
    function* steps(): Generator<void> {
      for (const [, { chains }] of compileAll(layout, plan, options)) {
        for (const { name, rules } of chains) wanted.add(digestChain(name, rules));
        yield;
      }
    }
    await this.#runSliced(steps());
    return wanted;
  }

  /** Takes all steps; others have their turn in between. */
  async #runSliced(steps: Iterable<unknown>): Promise<void> {
    const { timeSlice } = this.#client;
    timeSlice?.begin();
    for (const _ of steps) {
      const pause = timeSlice?.pause();
      if (pause) await pause;
    }
  }
}

/** Sets, virtual servers and the device's addresses, kept equal to the plan. */
import { type Cidr, cidrContains } from '../../model/ip.ts';
import type { ServicePortId } from '../../model/serviceTracker.ts';
import type { Plan, ServicePortPlan } from '../../plan/types.ts';
import { type Changes, Reconciler, type Resync, type ServicePortPlans } from '../../proxy/reconciler.ts';
import type { SyncReport } from '../../proxy/report.ts';
import { forEachSliced, runSliced, type TimeSlice } from '../../time/timeSlice.ts';
import type { IptablesRules } from '../iptables/sync.ts';
import { resyncDevice, resyncServers, resyncSets, ourServers } from './rules/resync.ts';
import {
  type VirtualServerOptions,
  compileVirtualServers,
  type IpvsFragment,
  NO_SERVERS,
  type ServerKey,
  serverKey,
  type VirtualServer,
} from './rules/compile.ts';
import { DrainingList, Changeset } from './rules/changeset.ts';
import type { IpvsEdit, IpvsClient } from './rules/client.ts';
import { DesiredState, type DesiredChanges } from './rules/desiredState.ts';
import { changedByOthers, Refusals } from './rules/refusals.ts';
import type { IpvsRuleOptions } from './rules/rules.ts';
import { SetCapacities } from './rules/sets.ts';

interface IpvsServersOptions {
  readonly client: IpvsClient;
  /** Those that match the sets. */
  readonly rules: Pick<IptablesRules, 'sync' | 'requestFull'>;
  readonly ruleOptions: IpvsRuleOptions;
  /** Virtual servers in these ranges are not ours to delete. */
  readonly excludeCIDRs: readonly Cidr[];
  readonly drainLimitMs: number;
  readonly now: () => number;
  readonly timeSlice?: TimeSlice;
}

/** Most steps take microseconds; on some machines so does a look at the clock. */
const STEPS_PER_LOOK = 4;

type Settings = Omit<VirtualServerOptions, 'family'>;

export class IpvsServers extends Reconciler<VirtualServerOptions> {
  readonly #options: IpvsServersOptions;
  readonly #draining: DrainingList;
  #desired = new DesiredState();
  #capacities = new SetCapacities();
  /** Virtual servers of this process that may still be there although nothing wants them. */
  readonly #leftBehind = new Set<string>();
  /** Our own, as far as they may not be in the kernel. */
  #unwritten: DesiredChanges[] = [];
  /** What the last changes found to be not as it was left. */
  #drifted: readonly string[] = [];
  /** What another program changed while the kernel was read and written, so that it has to be read again. */
  #changedMeanwhile: readonly string[] = [];

  constructor(options: IpvsServersOptions) {
    super();
    this.#options = options;
    this.#draining = new DrainingList(options.drainLimitMs);
  }

  get isDraining(): boolean {
    return !this.#draining.isEmpty;
  }

  /** Those that should be in the kernel. */
  get servers(): Iterable<readonly [key: string, server: VirtualServer]> {
    return this.#desired.servers();
  }

  /** Whether it is on the device because we put it there. */
  isBound(ip: string): boolean {
    return this.#desired.isBound(ip);
  }

  sync(plan: Plan, dirty: Iterable<ServicePortId>, settings: Settings): Promise<SyncReport> {
    return this.reconcile(plan, dirty, { ...settings, family: plan.family });
  }

  /** Deletes drained endpoints whose connections have ended. */
  async drain(servers: readonly ServerKey[] = this.#draining.servers): Promise<void> {
    if (servers.length === 0) return;
    const { client, now } = this.#options;
    const states = await client.readDestinations(servers);
    const edits = servers.flatMap((server, index) =>
      this.#draining.ended(server, states[index] ?? [], now()),
    );
    if (edits.length === 0) return;
    const outcomes = await client.apply(edits);
    for (const [index, { server, destination }] of edits.entries())
      if (outcomes[index]?.state !== 'refused') this.#draining.remove(server, destination);
    const refusals = new Refusals();
    refusals.add(edits, outcomes);
    refusals.throwIfOurs();
  }

  protected async apply(changes: Changes<VirtualServerOptions>): Promise<boolean> {
    const work = new Changeset(changes.plan.family, this.#draining);
    this.#unwritten = [];
    work.addChanges(await this.#change(changes));
    const refusals = new Refusals();
    await this.#write(changes, work, refusals);
    this.#drifted = refusals.drifted;
    if (this.#drifted.length > 0) return false;
    await this.#settle(refusals, changes);
    changes.report.objects += work.edits.length;
    return true;
  }

  protected async resync(resync: Resync<VirtualServerOptions>): Promise<void> {
    const { plan, ids, options, unwritten, report } = resync;
    if (!unwritten) await this.#compileAll(plan.servicePorts, options);
    else {
      // `apply` took in the others.
      const taken = new Set(ids);
      const waiting = [...unwritten].filter((id) => !taken.has(id));
      await this.#change({ ...resync, ids: waiting });
    }
    if (resync.isRequested) this.#options.rules.requestFull();
    const work = await this.#readAndCompare(options);
    const { edits } = work;
    const foreign = unwritten ? changedByOthers(edits, this.#unwritten, options.family) : [];
    const refusals = new Refusals();
    await this.#write({ ...resync, ids: [...(unwritten ?? ids)] }, work, refusals);
    const changed = [...this.#changedMeanwhile, ...this.#drifted, ...foreign];
    if (refusals.drifted.length > 0) this.#changedMeanwhile = [...new Set([...changed, ...refusals.drifted])];
    refusals.throwIfDrift();
    await this.#settle(refusals, resync);
    report.objects += edits.length;
    for (const name of changed) report.repaired.add(name);
    this.#changedMeanwhile = [];
    this.#drifted = [];
  }

  /** Of what should be in the kernel, the part that changed. */
  async #change({ plan, ids, options, applied }: Changes<VirtualServerOptions>): Promise<DesiredChanges> {
    await this.#forEachSliced(ids, (id) => this.#desired.remove(compile(applied.get(id), options)));
    await this.#forEachSliced(ids, (id) => this.#desired.add(compile(plan.servicePorts.get(id), options)));
    const changes = this.#desired.takeChanges();
    for (const { previous, current } of changes.servers)
      if (previous && !current) this.#leftBehind.add(serverKey(previous));
    this.#unwritten.push(changes);
    return changes;
  }

  async #compileAll(servicePorts: ServicePortPlans, options: VirtualServerOptions): Promise<void> {
    for (const [key] of this.#desired.servers()) this.#leftBehind.add(key);
    this.#desired = new DesiredState();
    this.#drifted = [];
    await this.#forEachSliced(servicePorts.values(), (port) =>
      this.#desired.add(compileVirtualServers(port, options)),
    );
    this.#desired.clearChanges();
  }

  async #readAndCompare(options: VirtualServerOptions): Promise<Changeset> {
    const { client, excludeCIDRs } = this.#options;
    const { family, nodeIps } = options;
    const work = new Changeset(family, this.#draining);
    const state = await client.read();
    resyncDevice(state.device, this.#desired, work);
    this.#capacities = new SetCapacities(
      await this.#runSliced(resyncSets(state, this.#desired, family, work)),
    );
    const isKnown = (key: string): boolean =>
      this.#desired.server(key) !== undefined || this.#leftBehind.has(key);
    const existing = ourServers(state, family, new Set(nodeIps), isKnown);
    const isExcluded = ({ ip }: ServerKey): boolean => excludeCIDRs.some((cidr) => cidrContains(cidr, ip));
    const destinations = await client.readDestinations(existing);
    await this.#runSliced(resyncServers(existing, destinations, this.#desired, work, isExcluded));
    return work;
  }

  async #write(
    { plan, ids, report }: Changes<VirtualServerOptions>,
    work: Changeset,
    refusals: Refusals,
  ): Promise<void> {
    const { client, rules, ruleOptions, now } = this.#options;
    const commit = async (edits: readonly IpvsEdit[]): Promise<readonly IpvsEdit[]> => {
      if (edits.length === 0) return [];
      report.commits++;
      return refusals.add(edits, await client.apply(edits));
    };
    await commit(
      await commit([...this.#capacities.makeFor(this.#desired, plan.family, work.leaving), ...work.prepare]),
    );
    for (const { server, destination } of work.revived) this.#draining.remove(server, destination);
    // Rules of the iptables mode translate before IPVS sees a packet, and go on doing so until ours replace them. Then
    // everything must be here: without its address a service would be silent until the last old chain is gone.
    const bindEarly = async (): Promise<void> => void (await commit(work.takeBinds()));
    const rulesReport = await rules.sync(plan, ids, ruleOptions, bindEarly).catch((error: unknown) => {
      refusals.throwIfOurs(); // rules cannot be written where a set is missing
      throw error;
    });
    report.include(rulesReport);
    await commit(work.last);
    // Without its entry a virtual server that is still there would be nobody's.
    if (!refusals.isOurs) await commit(work.entryDeletes);
    for (const { server, destination } of work.drained) this.#draining.add(server, destination, now());
    for (const server of work.deletedServers) this.#draining.removeServer(server);
    // Many have no connection at all. Those that drain already are looked at in their own time.
    await this.drain([...new Map(work.drained.map(({ server }) => [serverKey(server), server])).values()]);
  }

  /** Everything is in the kernel, but for what it refused. Whose that is, is looked for only then. */
  async #settle(refusals: Refusals, { plan, options, report }: Changes<VirtualServerOptions>): Promise<void> {
    if (!refusals.isEmpty) {
      await this.#forEachSliced(plan.servicePorts, ([id, port]) => {
        const error = refusals.concerning(compileVirtualServers(port, options), options.family);
        if (error) report.refused.set(id, error);
      });
      refusals.throwIfNobodys();
    }
    this.#leftBehind.clear();
    this.#unwritten = [];
  }

  #forEachSliced<T>(items: Iterable<T>, work: (item: T) => void): Promise<void> {
    return forEachSliced(items, work, this.#options.timeSlice, STEPS_PER_LOOK);
  }

  #runSliced<T>(steps: Generator<void, T>): Promise<T> {
    const { timeSlice } = this.#options;
    timeSlice?.begin();
    return runSliced(steps, timeSlice, STEPS_PER_LOOK);
  }
}

function compile(port: ServicePortPlan | undefined, options: VirtualServerOptions): IpvsFragment {
  return port ? compileVirtualServers(port, options) : NO_SERVERS;
}

/**
 * Keeps sets, virtual servers and the device's addresses equal to the plan.
 *
 * An ordinary sync compiles the service ports that changed, before and after, and sends the difference. The kernel is
 * read only at the start, after a failure, when something is not as it was left, and when somebody asks to verify.
 */
import { deepEqual } from '../../model/equal.ts';
import { type Cidr, cidrContains } from '../../model/ip.ts';
import type { ServicePortId } from '../../model/serviceTracker.ts';
import type { Plan, ServicePortPlan } from '../../plan/types.ts';
import type { SyncReport } from '../iptables/reconcile.ts';
import type { TimeSlice } from '../../time/timeSlice.ts';
import { resyncDevice, resyncServers, resyncSets, isNodePortServer, ourServers } from './rules/resync.ts';
import {
  type VirtualServerOptions,
  compileVirtualServers,
  type IpvsFragment,
  NO_SERVERS,
  type ServerKey,
  serverKey,
} from './rules/compile.ts';
import { DrainingList, Changeset } from './rules/changeset.ts';
import type { IpvsClient } from './rules/client.ts';
import { DesiredState, type DesiredChanges } from './rules/desiredState.ts';
import { changedByOthers, Refusals } from './rules/refusals.ts';
import { SET_IDS, type SetId, SetCapacities } from './rules/sets.ts';

/** The iptables part, whose rules match the sets. */
export interface Rules {
  /** `beforeSwitch`: awaited before rules of the iptables mode are replaced. */
  sync(
    plan: Plan,
    dirty: Iterable<ServicePortId>,
    filledSets: readonly SetId[],
    beforeSwitch: () => Promise<void>,
  ): Promise<SyncReport>;
  requestFull(): void;
}

export interface IpvsBackendOptions {
  readonly client: IpvsClient;
  readonly rules: Rules;
  /** Virtual servers in these ranges are not ours to delete. */
  readonly excludeCIDRs: readonly Cidr[];
  readonly drainLimitMs: number;
  readonly now: () => number;
  readonly timeSlice?: TimeSlice;
}

/** Most steps take microseconds; on some machines so does a look at the clock. */
const STEPS_PER_LOOK = 4;

type Settings = Omit<VirtualServerOptions, 'family'>;

export class IpvsBackend {
  readonly #options: IpvsBackendOptions;
  readonly #applied = new Map<ServicePortId, ServicePortPlan>();
  readonly #draining: DrainingList;
  #ledger = new DesiredState();
  #room = new SetCapacities();
  #compileOptions: VirtualServerOptions | undefined;
  /** Virtual servers of this process that may still be there although nothing wants them. */
  readonly #leftBehind = new Set<string>();
  #needsFull = true;
  /** Apart from `#needsFull`, so that a request during a sync is not forgotten at its end. */
  #fullRequested = false;
  #refused: ReadonlyMap<ServicePortId, Error> = new Map();

  constructor(options: IpvsBackendOptions) {
    this.#options = options;
    this.#draining = new DrainingList(options.drainLimitMs);
  }

  /** The next sync reads the kernel and mends what differs. */
  requestFull(): void {
    this.#fullRequested = true;
    this.#options.rules.requestFull();
  }

  get isDraining(): boolean {
    return !this.#draining.isEmpty;
  }

  /** What this backend has put on its device. */
  isBound(ip: string): boolean {
    return this.#ledger.addresses.has(ip as never);
  }

  async sync(plan: Plan, dirty: Iterable<ServicePortId>, settings: Settings): Promise<SyncReport> {
    const ids = [...dirty];
    const options: VirtualServerOptions = { ...settings, family: plan.family };
    const isKnown = !this.#needsFull && this.#refused.size === 0 && deepEqual(options, this.#compileOptions);
    this.#needsFull = true; // until all of it is in the kernel
    const changes = isKnown ? await this.#change(plan, ids, options) : await this.#compileAll(plan, options);
    if (!changes || this.#fullRequested) return this.#reconcile(plan, ids, options, changes);
    const { report, drifted } = await this.#writeChanges(plan, ids, options, changes);
    return report ?? this.#reconcile(plan, ids, options, changes, drifted);
  }

  /** Deletes drained endpoints whose connections have ended. */
  async drain(): Promise<void> {
    await this.#drain(this.#draining.servers);
  }

  async #drain(servers: readonly ServerKey[]): Promise<void> {
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

  /** Of what should be in the kernel, the part that changed. */
  async #change(
    plan: Plan,
    ids: readonly ServicePortId[],
    options: VirtualServerOptions,
  ): Promise<DesiredChanges> {
    await this.#forEachSliced(ids, (id) => this.#ledger.remove(compile(this.#applied.get(id), options)));
    await this.#forEachSliced(ids, (id) => this.#ledger.add(compile(plan.servicePorts.get(id), options)));
    for (const id of ids) this.#remember(plan, id);
    const changes = this.#ledger.takeChanges();
    for (const { previous, current } of changes.servers)
      if (previous && !current) this.#leftBehind.add(serverKey(previous));
    return changes;
  }

  async #compileAll(plan: Plan, options: VirtualServerOptions): Promise<undefined> {
    for (const [key] of this.#ledger.servers()) this.#leftBehind.add(key);
    this.#ledger = new DesiredState();
    this.#applied.clear();
    this.#compileOptions = options;
    await this.#forEachSliced(plan.servicePorts, ([id, port]) => {
      this.#applied.set(id, port);
      this.#ledger.add(compileVirtualServers(port, options));
    });
    this.#ledger.forgetChanges();
  }

  /** Without a report where the kernel was not as it was left. */
  async #writeChanges(
    plan: Plan,
    ids: readonly ServicePortId[],
    options: VirtualServerOptions,
    changes: DesiredChanges,
  ): Promise<{ readonly report?: SyncReport; readonly drifted: readonly string[] }> {
    const work = new Changeset(plan.family, this.#draining);
    work.addChanges(changes);
    const refusals = new Refusals();
    const report = await this.#write(plan, ids, work, refusals);
    const { drifted } = refusals;
    if (drifted.length > 0) return { drifted };
    await this.#settle(refusals, plan, options);
    const kind = work.isEmpty ? report.kind : kindOf(report);
    const objects = work.edits.length;
    return { report: { ...report, kind, objects, refused: this.#refusedBy(report) }, drifted };
  }

  /** Reads the kernel. `changes`: our own since the last sync, if that one left the kernel as it should be. */
  async #reconcile(
    plan: Plan,
    ids: readonly ServicePortId[],
    options: VirtualServerOptions,
    changes: DesiredChanges | undefined,
    drifted: readonly string[] = [],
  ): Promise<SyncReport> {
    this.#fullRequested = false;
    const work = await this.#adopt(options);
    const { edits } = work;
    const foreign = changes ? changedByOthers(edits, changes, plan.family) : [];
    const refusals = new Refusals();
    const report = await this.#write(plan, ids, work, refusals);
    refusals.throwIfDrift();
    await this.#settle(refusals, plan, options);
    return {
      ...report,
      kind: 'full',
      objects: edits.length,
      repaired: [...new Set([...(report.repaired ?? []), ...drifted, ...some(foreign)])],
      refused: this.#refusedBy(report),
    };
  }

  async #adopt(options: VirtualServerOptions): Promise<Changeset> {
    const { client, excludeCIDRs } = this.#options;
    const { family, nodeIps } = options;
    const work = new Changeset(family, this.#draining);
    const state = await client.read();
    resyncDevice(state.device, this.#ledger, work);
    this.#room = new SetCapacities(await this.#runSliced(resyncSets(state, this.#ledger, family, work)));
    const isKnown = (key: string): boolean =>
      this.#ledger.server(key) !== undefined || this.#leftBehind.has(key);
    const nodes = new Set<string>(nodeIps);
    const ours = ourServers(state, family, isKnown);
    const known = new Set(ours);
    const nodePorts = state.servers.filter(
      (server) => !known.has(server) && isNodePortServer(server, state, family, nodes),
    );
    const existing = [...ours, ...nodePorts];
    const isExcluded = ({ ip }: ServerKey): boolean => excludeCIDRs.some((cidr) => cidrContains(cidr, ip));
    const destinations = await client.readDestinations(existing);
    await this.#runSliced(resyncServers(existing, destinations, this.#ledger, work, isExcluded));
    return work;
  }

  async #write(
    plan: Plan,
    ids: readonly ServicePortId[],
    work: Changeset,
    refusals: Refusals,
  ): Promise<SyncReport> {
    const { client, rules, now } = this.#options;
    const prepare = [...this.#room.makeFor(this.#ledger, plan.family, work.leaving), ...work.prepare];
    const late = refusals.add(prepare, await client.apply(prepare));
    if (late.length > 0) refusals.add(late, await client.apply(late));
    for (const { server, destination } of work.revived) this.#draining.remove(server, destination);
    // Rules of the iptables mode translate before IPVS sees a packet, and go on doing so until ours replace them. Then
    // everything must be here: without its address a service would be silent until the last old chain is gone.
    const bindEarly = async (): Promise<void> => {
      const binds = work.takeBinds();
      refusals.add(binds, await client.apply(binds));
    };
    const report = await rules.sync(plan, ids, this.#filledSets(), bindEarly).catch((error: unknown) => {
      refusals.throwIfOurs(); // rules cannot be written where a set is missing
      throw error;
    });
    const { last, entryDeletes } = work;
    refusals.add(last, await client.apply(last));
    // Without its entry a virtual server that is still there would be nobody's.
    if (!refusals.isOurs) refusals.add(entryDeletes, await client.apply(entryDeletes));
    for (const { server, destination } of work.drained) this.#draining.add(server, destination, now());
    for (const server of work.deletedServers) this.#draining.removeServer(server);
    // Many have no connection at all. Those that drain already are looked at in their own time.
    await this.#drain([...new Map(work.drained.map(({ server }) => [serverKey(server), server])).values()]);
    return report;
  }

  /** Everything is in the kernel, but for what it refused. */
  async #settle(refusals: Refusals, plan: Plan, options: VirtualServerOptions): Promise<void> {
    this.#refused = await this.#ownersOf(refusals, plan, options);
    this.#leftBehind.clear();
    this.#needsFull = false;
  }

  #filledSets(): readonly SetId[] {
    return SET_IDS.filter((id) => this.#ledger.sizeOf(id) > 0);
  }

  #refusedBy(rules: SyncReport): ReadonlyMap<ServicePortId, Error> {
    return this.#refused.size === 0 ? rules.refused : new Map([...rules.refused, ...this.#refused]);
  }

  /** Looked for only when something was refused, which should never be. */
  async #ownersOf(
    refusals: Refusals,
    plan: Plan,
    options: VirtualServerOptions,
  ): Promise<ReadonlyMap<ServicePortId, Error>> {
    const owners = new Map<ServicePortId, Error>();
    if (refusals.isEmpty) return owners;
    await this.#forEachSliced(plan.servicePorts, ([id, port]) => {
      const error = refusals.concerning(compileVirtualServers(port, options), options.family);
      if (error) owners.set(id, error);
    });
    refusals.throwIfNobodys();
    return owners;
  }

  #remember(plan: Plan, id: ServicePortId): void {
    const port = plan.servicePorts.get(id);
    if (port) this.#applied.set(id, port);
    else this.#applied.delete(id);
  }

  #forEachSliced<T>(items: Iterable<T>, work: (item: T) => void): Promise<void> {
    return this.#runSliced(each(items, work));
  }

  async #runSliced<T>(steps: Generator<void, T>): Promise<T> {
    const { timeSlice } = this.#options;
    timeSlice?.begin();
    for (let count = 1; ; count++) {
      const step = steps.next();
      if (step.done) return step.value;
      const pause = count % STEPS_PER_LOOK === 0 ? timeSlice?.pause() : undefined;
      if (pause) await pause;
    }
  }
}

function* each<T>(items: Iterable<T>, work: (item: T) => void): Generator<void, void> {
  for (const item of items) {
    work(item);
    yield;
  }
}

function compile(port: ServicePortPlan | undefined, options: VirtualServerOptions): IpvsFragment {
  return port ? compileVirtualServers(port, options) : NO_SERVERS;
}

/** `ipvsadm --clear` takes ten thousand; nobody reads their names. */
const MOST_NAMED = 100;

function* some(names: Iterable<string>): Generator<string> {
  let count = 0;
  for (const name of names) {
    if (count++ === MOST_NAMED) return;
    yield name;
  }
}

function kindOf({ kind }: SyncReport): SyncReport['kind'] {
  return kind === 'full' ? 'full' : 'incremental';
}

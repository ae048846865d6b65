/**
 * Keeps one family's sets, virtual servers, device and rules equal to the plan.
 *
 * A change writes the difference to what was written before. The kernel is read and compared at a start, after an outcome that
 * nobody expected, and on request; then part by part, and a change that comes meanwhile is written before the next part.
 */
import { deepEqual } from '../../model/equal.ts';
import type { Cidr, Ip } from '../../model/ip.ts';
import type { ServicePortId } from '../../model/serviceTracker.ts';
import type { Plan, ServicePortPlan } from '../../plan/types.ts';
import type { KernelWriter } from '../../proxy/proxier.ts';
import { ReportBuilder, type SyncAttempt, type SyncReport } from '../../proxy/report.ts';
import type { ConnectionReading } from '../../telemetry/metrics/connections.ts';
import type { Clock } from '../../time/clock.ts';
import { systemClock } from '../../time/systemClock.ts';
import { forEachSliced, runSliced, TimeSlice } from '../../time/timeSlice.ts';
import type { IptablesClient } from '../iptables/client.ts';
import { IptablesSync } from '../iptables/sync.ts';
import type { IpvsClient, IpvsEdit } from './rules/client.ts';
import {
  compileVirtualServers,
  type ServerKey,
  type VirtualServerOptions,
  virtualServerOptions,
} from './rules/compile.ts';
import { Changeset, DesiredState } from './rules/desiredState.ts';
import { objectOf, Outcomes, ownersOf } from './rules/outcomes.ts';
import { compareKernel, type Comparison } from './rules/resync.ts';
import { ipvsLayout, ruleOptions } from './rules/rules.ts';
import { GracefulTermination } from './rules/termination.ts';

interface IpvsSyncOptions {
  /** For the rules that match the sets. */
  readonly iptables: IptablesClient;
  readonly client: IpvsClient;
  readonly masqueradeBit: number;
  readonly scheduler: string;
  /** Virtual servers in these ranges are never deleted. */
  readonly excludeCIDRs: readonly Cidr[];
  /** After which connections to an endpoint that is gone are cut; 0: never. */
  readonly drainLimitMs: number;
  /** The node's own addresses in this family, without loopback and without those of our device. */
  readonly nodeIps: () => readonly Ip[];
  /** Draining is tried again; nothing else waits for it. */
  readonly onDrainFailure: (error: unknown) => void;
  readonly clock?: Clock;
}

interface Round {
  readonly plan: Plan;
  readonly ids: readonly ServicePortId[];
  readonly settings: VirtualServerOptions;
  readonly report: ReportBuilder;
}

/** Each frontend is a virtual server, an address and entries of sets. */
const WRITES_PER_SYNC = 2000;
/** How often drained endpoints are looked at, while there are some. */
const DRAIN_INTERVAL_MS = 30_000;
/** A limit on draining is kept to that much. */
const MIN_DRAIN_INTERVAL_MS = 1000;
/** Timers may come a little early. */
const EARLY_MS = 10;
/** Most steps take microseconds; on some machines so does reading the clock. */
const STEPS_PER_PAUSE = 4;
/** Enough for a log line: `ipvsadm --clear` takes ten thousand. */
const MAX_NAMED = 100;

export class IpvsSync implements KernelWriter {
  readonly writesPerSync = WRITES_PER_SYNC;
  readonly #options: IpvsSyncOptions;
  readonly #clock: Clock;
  readonly #timeSlice = new TimeSlice(systemClock);
  readonly #rules: IptablesSync;
  readonly #desired = new DesiredState();
  /** What the desired state was compiled from. */
  readonly #compiled = new Map<ServicePortId, ServicePortPlan>();
  #settings: VirtualServerOptions | undefined;
  /** Addresses that the node has or had: virtual servers of a former one are ours, too. */
  readonly #nodeIps = new Set<Ip>();
  readonly #terminating: GracefulTermination;
  /** The kernel has what was desired, but for what it refused and what other programs changed. */
  #isSettled = false;
  #isRequested = false;
  /** Under way, or interrupted by a change. */
  #comparison: AsyncGenerator<Comparison, void> | undefined;
  readonly #refused = new Map<ServicePortId, Error>();
  /** Objects that other programs changed, until a sync that repaired them reports them. */
  readonly #foreign = new Set<string>();
  /** When drained endpoints are to be looked at, while there are some. */
  #drainAt: number | undefined;
  attempt: SyncAttempt = 'full';

  constructor(options: IpvsSyncOptions) {
    const { iptables, masqueradeBit, drainLimitMs, clock = systemClock } = options;
    this.#options = options;
    this.#clock = clock;
    const settings = ruleOptions(masqueradeBit, iptables.features.randomFully);
    this.#rules = new IptablesSync({
      layout: ipvsLayout,
      client: iptables,
      now: () => clock.now(),
      settings: () => settings,
    });
    this.#terminating = new GracefulTermination(drainLimitMs);
  }

  async sync(
    plan: Plan,
    dirty: Iterable<ServicePortId>,
    isChangeWaiting: () => boolean = () => false,
  ): Promise<SyncReport> {
    await this.#drainIfDue();
    const ids = [...dirty];
    const report = new ReportBuilder();
    const { scheduler, nodeIps } = this.#options;
    const settings = virtualServerOptions(plan, scheduler, nodeIps());
    for (const ip of settings.nodeIps) this.#nodeIps.add(ip);
    const round: Round = { plan, ids, settings, report };
    const { size } = this.#refused;
    const isRefusedAgain = size > 0 && (this.#isRequested || ids.some((id) => this.#refused.has(id)));
    let isSettled = this.#isSettled && !isRefusedAgain;
    this.#isSettled = false; // until all of it is in the kernel
    this.attempt = isSettled && !this.#isRequested && !this.#comparison ? 'partial' : 'full';
    await this.#compile(round, isSettled);
    if (isSettled) isSettled = await this.#writeChanges(round);
    if (!isSettled) await this.#startOver(round);
    else if (this.#isRequested || this.#comparison) await this.#verify(round, isChangeWaiting);
    this.#isSettled = true;
    for (const object of [...this.#foreign].slice(0, MAX_NAMED)) report.repaired.add(object);
    this.#foreign.clear();
    for (const [id, error] of this.#refused) report.refused.set(id, error);
    this.#planDrain(report);
    return report.end(this.attempt);
  }

  requestFull(): void {
    this.#isRequested = true;
  }

  get isDraining(): boolean {
    return !this.#terminating.isEmpty;
  }

  /** How many connections each endpoint got, as real servers have counted them. */
  async readConnections(): Promise<readonly ConnectionReading[]> {
    const { client, iptables } = this.#options;
    const readings: ConnectionReading[] = [];
    const servers = [...this.#desired.servers()]; // they change meanwhile
    for (const [key, server] of servers) {
      const { servicePort, protocol } = server;
      for (const { key: endpoint, connections } of (await client.readDestinations([server])).flat()) {
        if (connections === undefined) continue;
        const element = `${key} -> ${endpoint}`;
        const of = { family: iptables.family, servicePort, protocol, endpoint, element };
        readings.push({ ...of, connections, isCountedElsewhere: false });
      }
    }
    return readings;
  }

  /** Whether it is on the device because we put it there. */
  isBound(ip: Ip): boolean {
    return this.#desired.isBound(ip);
  }

  async #compile({ plan: { servicePorts }, ids, settings }: Round, isSettled: boolean): Promise<void> {
    const before = this.#settings;
    const isSame = before !== undefined && deepEqual(before, settings);
    const concerned = isSettled && isSame ? ids : [...this.#compiled.keys(), ...servicePorts.keys()];
    const changed = [...new Set(concerned)].filter(
      (id) => !isSame || this.#compiled.get(id) !== servicePorts.get(id),
    );
    await this.#forEachSliced(changed, (id) => {
      const port = this.#compiled.get(id);
      if (port && before) this.#desired.remove(compileVirtualServers(port, before));
    });
    await this.#forEachSliced(changed, (id) => {
      const port = servicePorts.get(id);
      if (!port) this.#compiled.delete(id);
      else {
        this.#compiled.set(id, port);
        this.#desired.add(compileVirtualServers(port, settings));
      }
    });
    this.#settings = settings;
  }

  /** False: the kernel was not as it was left. */
  async #writeChanges(round: Round): Promise<boolean> {
    const changes = new Changeset(round.plan.family);
    this.#desired.takeChanges(changes, (server) => this.#terminating.of(server));
    const { unexpected } = await this.#write(round, changes);
    if (unexpected.size === 0) return true;
    for (const object of unexpected) this.#foreign.add(object);
    round.report.count('partial.failures');
    return false;
  }

  /** Reads all parts, and then writes what differs in one go. */
  async #startOver(round: Round): Promise<void> {
    this.#isRequested = false;
    this.#comparison = undefined;
    this.#refused.clear();
    this.#desired.forgetChanges();
    this.attempt = 'full';
    const changes = new Changeset(round.plan.family);
    for await (const compare of this.#compareKernel(round)) await this.#runSliced(compare(changes));
    this.#rules.requestFull();
    if (this.#foreign.size > 0) for (const edit of changes.edits) this.#foreign.add(objectOf(edit));
    (await this.#write(round, changes)).throwIfUnexpected();
  }

  /** Reads one part after another, and repairs each at once. Stops between two of them where a change is waiting. */
  async #verify(round: Round, isChangeWaiting: () => boolean): Promise<void> {
    if (!this.#comparison) this.#isRequested = false;
    this.#comparison ??= this.#compareKernel(round);
    for (;;) {
      const part = await this.#comparison.next();
      if (part.done) break;
      const changes = new Changeset(round.plan.family);
      await this.#runSliced(part.value(changes));
      for (const edit of changes.edits) this.#foreign.add(objectOf(edit));
      for (const one of changes.drained) this.#terminating.add(one, this.#clock.now());
      if (changes.edits.length > 0) (await this.#write({ ...round, ids: [] }, changes)).throwIfUnexpected();
      if (!isChangeWaiting()) continue;
      round.report.isUnfinished = true;
      this.attempt = 'partial';
      return;
    }
    this.#comparison = undefined;
    // As kube-proxy: neither variant of iptables can say cheaply whether they are there. Counts what was missing, and no more.
    this.#rules.requestFull();
    const rules = await this.#rules.write(round.plan, []);
    if (rules.repaired.length > 0 || rules.refused.size > 0) round.report.include(rules);
  }

  #compareKernel({ settings: { family } }: Round): AsyncGenerator<Comparison, void> {
    const { client, excludeCIDRs } = this.#options;
    return compareKernel({ client, family, desired: this.#desired, nodeIps: this.#nodeIps, excludeCIDRs });
  }

  async #write(round: Round, changes: Changeset): Promise<Outcomes> {
    const { plan, ids, report } = round;
    const outcomes = new Outcomes();
    const commit = async (edits: readonly IpvsEdit[]): Promise<void> => {
      if (edits.length === 0) return;
      report.commits++;
      await commit(outcomes.add(edits, await this.#options.client.apply(edits)));
    };
    const objects = changes.edits.length;
    await commit([...changes.made, ...changes.beforeRules]);
    for (const one of changes.revived) this.#terminating.remove(one);
    // Rules of the iptables mode translate before IPVS sees a packet, and go on doing so until ours replace them. Then
    // everything must be here: without its address a service would be silent until the last old chain is gone.
    const bindEarly = (): Promise<void> => commit(changes.takeBinds());
    report.include(
      await this.#rules.write(plan, ids, bindEarly).catch((error: unknown) => {
        outcomes.throwErrors(); // rules cannot be written where a set is missing
        throw error;
      }),
    );
    await commit(changes.afterRules);
    // Without its entry a virtual server that is still there would be nobody's.
    if (!outcomes.hasErrors) await commit(changes.entryDeletes);
    report.objects += objects;
    for (const edit of changes.afterRules)
      if (edit.kind === 'deleteServer') this.#terminating.removeServer(edit.server);
    for (const one of changes.drained) this.#terminating.add(one, this.#clock.now());
    // Many have no connection at all. Those that drain already are looked at in their own time.
    await this.#drain([...new Set(changes.drained.map(({ server }) => server))]);
    if (outcomes.unexpected.size === 0) await this.#noteRefused(outcomes, round);
    return outcomes;
  }

  async #noteRefused(outcomes: Outcomes, { plan, settings }: Round): Promise<void> {
    outcomes.throwErrors();
    if (outcomes.refused.size === 0) return;
    const owners = await this.#runSliced(
      ownersOf(new Set(outcomes.refused.keys()), plan.servicePorts, settings),
    );
    for (const [name, error] of outcomes.refused) {
      const ids = owners.get(name);
      // What no service port asks for must not be refused either.
      if (!ids) throw error;
      for (const id of ids) if (!this.#refused.has(id)) this.#refused.set(id, error);
    }
  }

  async #drainIfDue(): Promise<void> {
    if (this.#drainAt === undefined || this.#clock.now() < this.#drainAt - EARLY_MS) return;
    this.#drainAt = undefined;
    await this.#drain(this.#terminating.servers).catch(this.#options.onDrainFailure);
  }

  #planDrain(report: ReportBuilder): void {
    const { drainLimitMs } = this.#options;
    const intervalMs =
      drainLimitMs === 0
        ? DRAIN_INTERVAL_MS
        : Math.min(Math.max(drainLimitMs, MIN_DRAIN_INTERVAL_MS), DRAIN_INTERVAL_MS);
    if (!this.isDraining) this.#drainAt = undefined;
    else this.#drainAt ??= this.#clock.now() + intervalMs;
    if (this.#drainAt !== undefined) report.retryAfter(Math.max(0, this.#drainAt - this.#clock.now()));
  }

  /** Deletes drained endpoints whose connections have ended. */
  async #drain(servers: readonly ServerKey[]): Promise<void> {
    if (servers.length === 0) return;
    const { client } = this.#options;
    const states = await client.readDestinations(servers);
    const edits = servers.flatMap((server, index) =>
      this.#terminating.ended(server, states[index] ?? [], this.#clock.now()),
    );
    if (edits.length === 0) return;
    const results = await client.apply(edits);
    for (const [index, edit] of edits.entries())
      if (results[index]?.state !== 'refused') this.#terminating.remove(edit);
    const outcomes = new Outcomes();
    outcomes.add(edits, results);
    outcomes.throwErrors();
  }

  #forEachSliced<T>(items: Iterable<T>, work: (item: T) => void): Promise<void> {
    return forEachSliced(items, work, this.#timeSlice, STEPS_PER_PAUSE);
  }

  #runSliced<T>(steps: Generator<void, T>): Promise<T> {
    this.#timeSlice.begin();
    return runSliced(steps, this.#timeSlice, STEPS_PER_PAUSE);
  }
}

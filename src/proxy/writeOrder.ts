/**
 * Which services a sync takes: small ones, or one large one. So nobody waits for more than one large service, and a
 * large one waits for the small ones of one moment, however many come after them.
 *
 * Of thousands of small ones that come at once a sync takes some, and apart from them those that are served already: who
 * creates or deletes 2,000 Services waits for them himself, and nobody else's endpoints do.
 *
 * A run takes what waits when it begins, large ones each as a sync of its own with the small ones of the meantime
 * before and after it. One that changes all the time waits for the next run like everybody.
 */
import type { ObjectKey } from '../model/objects.ts';
import type { ServicePortId } from '../model/serviceTracker.ts';
import type { PlanChange, ServicePortPlan } from '../plan/types.ts';

/** From this cost on a service is written by itself. */
const LARGE = 2000;
/** Small ones of this cost together are enough for a sync: some two thousand Services as they mostly are. */
const BATCH = 20_000;

interface TurnInputs {
  readonly costOf: (service: ObjectKey) => number;
  /** Whether something of it is in the kernel, and stays there. */
  readonly isServed: (service: ObjectKey) => boolean;
}

export class Turns {
  readonly #inputs: TurnInputs;
  /** Large ones that this run still has to take, in the order in which they came. */
  #owed: ReadonlySet<ObjectKey> = new Set();
  /** Small ones that waited when it began. */
  #owedSmall = new Set<ObjectKey>();
  #last: 'small' | 'large' = 'small';

  constructor(inputs: TurnInputs) {
    this.#inputs = inputs;
  }

  /** Of the services that wait, whose turn it is. `begins`: this is the first sync of a run. */
  next(waiting: Iterable<ObjectKey>, begins: boolean): readonly ObjectKey[] {
    const { small, large } = this.#sorted(waiting);
    if (begins) {
      this.#owed = large;
      this.#owedSmall = new Set(small.keys());
      this.#last = 'large';
    }
    const owed = [...this.#owed].filter((service) => large.has(service));
    const [first] = owed;
    if (first === undefined || (small.size > 0 && this.#last === 'large')) {
      this.#last = 'small';
      return this.#batch(small);
    }
    this.#last = 'large';
    this.#owed = new Set(owed.slice(1));
    return [first];
  }

  /** Whether this run should go on at once. */
  isUnfinished(waiting: Iterable<ObjectKey>): boolean {
    const { small, large } = this.#sorted(waiting);
    return (
      [...this.#owed].some((service) => large.has(service)) ||
      [...this.#owedSmall].some((service) => small.has(service)) ||
      (this.#last === 'large' && small.size > 0)
    );
  }

  /** As many as one sync should have of each kind, so that neither keeps the other waiting. */
  #batch(small: ReadonlyMap<ObjectKey, number>): readonly ObjectKey[] {
    const { isServed } = this.#inputs;
    const cost = { served: 0, others: 0 };
    const taken: ObjectKey[] = [];
    for (const [service, own] of small) {
      const kind = isServed(service) ? 'served' : 'others';
      if (cost[kind] >= BATCH) continue;
      cost[kind] += own;
      taken.push(service);
      this.#owedSmall.delete(service);
    }
    return taken;
  }

  #sorted(waiting: Iterable<ObjectKey>) {
    /** With the cost of each. */
    const small = new Map<ObjectKey, number>();
    const large = new Set<ObjectKey>();
    for (const service of waiting) {
      const cost = this.#inputs.costOf(service);
      if (cost < LARGE) small.set(service, cost);
      else large.add(service);
    }
    return { small, large };
  }
}

/*
 * Service ports that are planned and not known to be in the kernel yet, and which of them a sync writes.
 *
 * Where a backend takes time for every rule, a sync writes some of them and leaves the rest to the next one, so that
 * another program's change comes in between: 1,000 ports of one Service are a second's work for iptables-nft-restore.
 */

export class Unwritten {
  /** From what the kernel has to what it should have; in the order in which they are to be written. */
  readonly #changes = new Map<ServicePortId, PlanChange>();

  /** The last sync left out all but the first. */
  #isRestDue = false;

  get size(): number {
    return this.#changes.size;
  }

  /** Takes note of what was planned. Of what is planned twice, for its own sake and for an address that another left, once. */
  add(changes: readonly PlanChange[]): void {
    const since = new Map<ServicePortId, PlanChange>();
    for (const change of changes) {
      const { previous } = since.get(change.id) ?? this.#changes.get(change.id) ?? change;
      since.set(change.id, previous === change.previous ? change : { ...change, previous });
    }
    for (const id of since.keys()) this.#changes.delete(id);
    const { served, added, lost } = byKind(since.values());
    for (const kind of [served, added, lost]) for (const change of kind) this.#changes.set(change.id, change);
  }

  /**
   * What to write now: everything, unless that is more than the limit, in endpoints and frontends. Then endpoints of
   * services that are in the kernel go first and by themselves, and every other time with some of the rest: services that
   * nobody can have dialled yet, those that go, and one that has very many endpoints. Who loses an address comes after who
   * gets it: in between, either of them answers.
   */
  next(limit = Number.POSITIVE_INFINITY): readonly ServicePortId[] {
    if (limit === Number.POSITIVE_INFINITY) {
      this.#isRestDue = false;
      return [...this.#changes.keys()];
    }
    const all = upTo(limit, [...this.#changes.values()]);
    if (all.length === this.#changes.size) {
      this.#isRestDue = false;
      return all;
    }
    const { served, added, lost } = byKind(this.#changes.values());
    const sizes = new Map<ObjectKey, number>();
    for (const change of served)
      sizes.set(serviceOf(change), (sizes.get(serviceOf(change)) ?? 0) + sizeOf(change));
    const isSmall = (change: PlanChange): boolean => (sizes.get(serviceOf(change)) ?? 0) <= limit / 4;
    const first = upTo(limit, served.filter(isSmall));
    const rest = [...served.filter((change) => !isSmall(change)), ...added, ...lost];
    this.#isRestDue = rest.length > 0 && first.length > 0 && !this.#isRestDue;
    return this.#isRestDue ? first : [...first, ...upTo(limit, rest)];
  }

  /** The kernel has these now. Returns what changed with them. */
  written(ids: readonly ServicePortId[]): readonly PlanChange[] {
    const written: PlanChange[] = [];
    for (const id of ids) {
      const change = this.#changes.get(id);
      if (!change) continue;
      this.#changes.delete(id);
      written.push(change);
    }
    return written;
  }
}

interface ByKind {
  readonly served: PlanChange[];
  readonly added: PlanChange[];
  readonly lost: PlanChange[];
}

function byKind(changes: Iterable<PlanChange>): ByKind {
  const kinds: ByKind = { served: [], added: [], lost: [] };
  for (const change of changes) {
    const { previous, current } = change;
    if (!previous) kinds.added.push(change);
    else if ((current?.frontends.length ?? 0) < previous.frontends.length) kinds.lost.push(change);
    else kinds.served.push(change);
  }
  return kinds;
}

function upTo(limit: number, changes: readonly PlanChange[]): readonly ServicePortId[] {
  let size = 0;
  const ids: ServicePortId[] = [];
  for (const change of changes) {
    if (size >= limit) break;
    size += sizeOf(change);
    ids.push(change.id);
  }
  return ids;
}

function serviceOf({ previous, current }: PlanChange): ObjectKey {
  return (current ?? previous)?.service ?? '';
}

/** A chain that is deleted takes about a quarter of what it took to write. */
const OF_DELETION = 0.25;

function sizeOf({ previous, current }: PlanChange): number {
  return current ? Math.max(sizeOfPlan(previous), sizeOfPlan(current)) : sizeOfPlan(previous) * OF_DELETION;
}

function sizeOfPlan(plan: ServicePortPlan | undefined): number {
  if (!plan) return 0;
  const { cluster = [], local = [] } = plan.pools;
  return plan.frontends.length + Math.max(cluster.length, local.length);
}

/**
 * Service ports that are planned and not known to be in the kernel yet, and which of them a sync writes.
 *
 * Where a backend takes time for every rule, a sync writes some of them and leaves the rest to the next one, so that
 * somebody else's change comes in between: 1,000 ports of one Service are a second's work for iptables-nft-restore.
 */
import type { ServicePortId } from '../model/servicePort.ts';
import type { PlanChange, ServicePortPlan } from '../plan/types.ts';

export class Unwritten {
  /** From what the kernel has to what it should have; in the order in which they are to be written. */
  readonly #changes = new Map<ServicePortId, PlanChange>();

  get size(): number {
    return this.#changes.size;
  }

  /** Takes note of what was planned. Of what is planned twice, for its own sake and for an address that another left, once. */
  add(changes: readonly PlanChange[]): void {
    const since = new Map<ServicePortId, PlanChange>();
    for (const change of changes) {
      const { previous } = since.get(change.id) ?? this.#changes.get(change.id) ?? change;
      since.set(change.id, { ...change, previous });
    }
    for (const id of since.keys()) this.#changes.delete(id);
    const { served, added, lost } = byUrgency(since.values());
    for (const change of [...served, ...added, ...lost]) this.#changes.set(change.id, change);
  }

  /**
   * What to write now: so much of it, in endpoints and frontends. Endpoints of services that are in the kernel go before
   * services that nobody can have dialled yet; of those a sync takes some all the same. Who loses an address comes after
   * who gets it: in between, either of them answers.
   */
  next(limit = Number.POSITIVE_INFINITY): readonly ServicePortId[] {
    const { served, added, lost } = byUrgency(this.#changes.values());
    const first = upTo(limit, served);
    return [...first, ...upTo(first.length > 0 ? limit / 4 : limit, [...added, ...lost])];
  }

  /** The kernel has these now. Returns what changed with them. */
  written(ids: readonly ServicePortId[]): readonly PlanChange[] {
    return ids.flatMap((id) => {
      const change = this.#changes.get(id);
      this.#changes.delete(id);
      return change ?? [];
    });
  }
}

interface ByUrgency {
  readonly served: PlanChange[];
  readonly added: PlanChange[];
  readonly lost: PlanChange[];
}

function byUrgency(changes: Iterable<PlanChange>): ByUrgency {
  const order: ByUrgency = { served: [], added: [], lost: [] };
  for (const change of changes) {
    const { previous, current } = change;
    if (!previous) order.added.push(change);
    else if ((current?.frontends.length ?? 0) < previous.frontends.length) order.lost.push(change);
    else order.served.push(change);
  }
  return order;
}

function upTo(limit: number, changes: readonly PlanChange[]): readonly ServicePortId[] {
  let size = 0;
  const ids: ServicePortId[] = [];
  for (const { id, previous, current } of changes) {
    if (size >= limit) break;
    size += current ? Math.max(sizeOf(previous), sizeOf(current)) : sizeOf(previous) * OF_DELETION;
    ids.push(id);
  }
  return ids;
}

/** A chain that is deleted takes about a quarter of what it took to write. */
const OF_DELETION = 0.25;

function sizeOf(plan: ServicePortPlan | undefined): number {
  if (!plan) return 0;
  const { cluster = [], local = [] } = plan.pools;
  return plan.frontends.length + Math.max(cluster.length, local.length);
}

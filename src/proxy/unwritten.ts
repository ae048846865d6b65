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

  /**
   * Takes note of what was planned. Returns what to write now, in this order: of these, and of those that have waited for
   * longer, each up to a limit of endpoints and frontends.
   */
  add(changes: readonly PlanChange[], limit = Number.POSITIVE_INFINITY): readonly ServicePortId[] {
    const since = new Map<ServicePortId, PlanChange>();
    for (const change of changes) {
      // One that is planned twice, for its own sake and for an address that another one left, is written once.
      const { previous } = since.get(change.id) ?? this.#changes.get(change.id) ?? change;
      since.set(change.id, { ...change, previous });
    }
    for (const id of since.keys()) this.#changes.delete(id);
    const waiting = [...this.#changes.values()];
    const added = inOrder([...since.values()]);
    for (const change of added) this.#changes.set(change.id, change);
    return [...first(added, limit), ...first(waiting, limit)];
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

/**
 * Endpoints of a service that is in the kernel go before services that nobody can have dialled yet. Who loses an
 * address comes after who gets it: in between, either of them answers.
 */
function inOrder(changes: readonly PlanChange[]): readonly PlanChange[] {
  const order: Record<'served' | 'new' | 'loses', PlanChange[]> = { served: [], new: [], loses: [] };
  for (const change of changes) {
    const { previous, current } = change;
    if (!previous) order.new.push(change);
    else if ((current?.frontends.length ?? 0) < previous.frontends.length) order.loses.push(change);
    else order.served.push(change);
  }
  return [...order.served, ...order.new, ...order.loses];
}

function first(changes: readonly PlanChange[], limit: number): readonly ServicePortId[] {
  let size = 0;
  const ids: ServicePortId[] = [];
  for (const { id, previous, current } of changes) {
    if (size >= limit) break;
    size += Math.max(sizeOf(previous), sizeOf(current));
    ids.push(id);
  }
  return ids;
}

function sizeOf(plan: ServicePortPlan | undefined): number {
  if (!plan) return 0;
  const { cluster = [], local = [] } = plan.pools;
  return plan.frontends.length + Math.max(cluster.length, local.length);
}

/** Which packets are walked: of each frontend and source class one, of what was just written first, of all others in turn. */
import { samplesOf } from '../../explain/service.ts';
import type { FamilySubject } from '../../explain/subject.ts';
import type { ObjectKey } from '../../model/objects.ts';
import type { ServicePortId } from '../../model/serviceTracker.ts';
import type { Packet } from '../../plan/decide.ts';
import type { PlanChange } from '../../plan/types.ts';

export interface ProofSample {
  readonly id: ServicePortId;
  readonly service: ObjectKey;
  readonly packet: Packet;
}

/** Service ports of a sync that wait for their turn; of more, the latest. */
const MOST_DUE = 64;
/** After a sync; and of others, each time. */
const MOST_PACKETS = 12;
const OTHERS_AT_ONCE = 4;
/** Each is a lookup of its own, and a line of the comparison. */
const MOST_ENDPOINTS = 200;

export class ProofSamples {
  readonly #due = new Set<ServicePortId>();
  #others: Iterator<ServicePortId> | undefined;
  /** Which packet of a service port it is this time. */
  #turn = 0;

  /** Something was written that has not been looked at. */
  get areDue(): boolean {
    return this.#due.size > 0;
  }

  written(changes: readonly PlanChange[]): void {
    for (const { id, current } of changes.slice(-MOST_DUE)) {
      this.#due.delete(id);
      if (current) this.#due.add(id);
    }
    for (const id of this.#due) {
      if (this.#due.size <= MOST_DUE) break;
      this.#due.delete(id);
    }
  }

  again({ id }: ProofSample): void {
    this.#due.add(id);
  }

  /** What is not taken waits for the next time. */
  *next(family: FamilySubject): Iterable<ProofSample> {
    let left = MOST_PACKETS;
    for (const id of this.#due) {
      if (left <= 0) return;
      this.#due.delete(id);
      for (const sample of packetsFor(id, family).slice(0, left)) {
        left--;
        yield sample;
      }
    }
    for (let count = 0; count < OTHERS_AT_ONCE; count++) {
      const all = packetsFor(this.#nextOther(family), family);
      const sample = all[this.#turn++ % Math.max(1, all.length)];
      if (sample) yield sample;
    }
  }

  /** Round and round. A map's iterator goes on with what is added and without what is deleted. */
  #nextOther({ plan }: FamilySubject): ServicePortId | undefined {
    for (let round = 0; round < 2; round++) {
      this.#others ??= plan.servicePorts.keys();
      const next = this.#others.next();
      if (!next.done) return next.value;
      this.#others = undefined;
    }
    return undefined;
  }
}

function packetsFor(id: ServicePortId | undefined, family: FamilySubject): readonly ProofSample[] {
  const planned = id === undefined ? undefined : family.plan.servicePorts.get(id);
  // What the kernel refused has its old rules.
  if (!planned || family.refused.has(planned.id)) return [];
  const { cluster = [], local = [] } = planned.pools;
  if (Math.max(cluster.length, local.length) > MOST_ENDPOINTS) return [];
  return planned.frontends
    .slice(0, MOST_PACKETS)
    .flatMap((frontend) => samplesOf(family, planned, frontend))
    .map((packet) => ({ id: planned.id, service: planned.service, packet }));
}

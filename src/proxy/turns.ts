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

/** From this cost on a service is written by itself. */
const LARGE = 2000;
/** Small ones of this cost together are enough for a sync: some two thousand Services as they mostly are. */
const BATCH = 20_000;

export interface TurnInputs {
  readonly costOf: (service: ObjectKey) => number;
  /** Whether something of it is in the kernel, and stays there. */
  readonly isServed: (service: ObjectKey) => boolean;
}

interface Waiting {
  readonly small: ReadonlyMap<ObjectKey, number>;
  readonly large: ReadonlySet<ObjectKey>;
}

export class Turns {
  readonly #inputs: TurnInputs;
  /** Large ones that this run still has to take, in the order in which they came. */
  #owed: ReadonlySet<ObjectKey> = new Set();
  /** Small ones that waited when it began. */
  readonly #owedSmall = new Set<ObjectKey>();
  #last: 'small' | 'large' = 'small';

  constructor(inputs: TurnInputs) {
    this.#inputs = inputs;
  }

  /** Of the services that wait, whose turn it is. `begins`: this is the first sync of a run. */
  next(waiting: Iterable<ObjectKey>, begins: boolean): readonly ObjectKey[] {
    const { small, large } = this.#sorted(waiting);
    if (begins) {
      this.#owed = large;
      this.#owedSmall.clear();
      for (const service of small.keys()) this.#owedSmall.add(service);
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
  #batch(small: Waiting['small']): readonly ObjectKey[] {
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

  #sorted(waiting: Iterable<ObjectKey>): Waiting {
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

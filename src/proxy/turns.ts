/**
 * Which services a sync takes: all small ones, or one large one. So nobody waits for more than one large service, and a
 * large one waits for the small ones of one moment, however many come after them.
 *
 * A run takes the large ones that wait when it begins, each as a sync of its own with the small ones of the meantime
 * before and after it. One that changes all the time waits for the next run like everybody.
 */
import type { ObjectKey } from '../model/objects.ts';

/** From this cost on a service is written by itself. */
const LARGE = 2000;

export class Turns {
  readonly #costOf: (service: ObjectKey) => number;
  /** Large ones that this run still has to take, in the order in which they came. */
  #owed: ReadonlySet<ObjectKey> = new Set();
  #last: 'small' | 'large' = 'small';

  constructor(costOf: (service: ObjectKey) => number) {
    this.#costOf = costOf;
  }

  /** Of the services that wait, whose turn it is. `begins`: this is the first sync of a run. */
  next(waiting: Iterable<ObjectKey>, begins: boolean): readonly ObjectKey[] {
    const { small, large } = this.#sorted(waiting);
    if (begins) {
      this.#owed = large;
      this.#last = 'large';
    }
    const owed = [...this.#owed].filter((service) => large.has(service));
    const [first] = owed;
    if (first === undefined || (small.length > 0 && this.#last === 'large')) {
      this.#last = 'small';
      return small;
    }
    this.#last = 'large';
    this.#owed = new Set(owed.slice(1));
    return [first];
  }

  /** Whether this run should go on at once. */
  isUnfinished(waiting: Iterable<ObjectKey>): boolean {
    const { small, large } = this.#sorted(waiting);
    return (
      [...this.#owed].some((service) => large.has(service)) || (this.#last === 'large' && small.length > 0)
    );
  }

  #sorted(waiting: Iterable<ObjectKey>): {
    readonly small: readonly ObjectKey[];
    readonly large: ReadonlySet<ObjectKey>;
  } {
    const small: ObjectKey[] = [];
    const large = new Set<ObjectKey>();
    for (const service of waiting) {
      if (this.#costOf(service) < LARGE) small.push(service);
      else large.add(service);
    }
    return { small, large };
  }
}

/**
 * Says in the log which service ports do not get an address that they name. Two thousand Services can name the same fifty
 * addresses: so this is done in slices of time, and not all of many are named.
 */
import type { Log } from '../log/log.ts';
import type { ServicePortId } from '../model/serviceTracker.ts';
import { TimeSlice } from '../time/timeSlice.ts';
import type { Clock } from '../time/clock.ts';
import type { FrontendKey } from '../plan/claims.ts';

interface DenialLogOptions {
  /** What a service port is denied now. */
  readonly denied: (id: ServicePortId) => readonly Denial[];
  readonly log: Log;
  readonly clock: Clock;
}

/** Lines for what one moment changed. */
const MOST_LINES = 20;

export class DenialLog {
  readonly #options: DenialLogOptions;
  readonly #named = new NamedDenials();
  readonly #waiting = new Set<ServicePortId>();
  #isTelling = false;

  constructor(options: DenialLogOptions) {
    this.#options = options;
  }

  /** Of these service ports something changed. Resolves when all has been said, or at once where that goes on already. */
  async note(ids: Iterable<ServicePortId>): Promise<void> {
    for (const id of ids) this.#waiting.add(id);
    if (this.#isTelling) return;
    this.#isTelling = true;
    const timeSlice = new TimeSlice(this.#options.clock);
    let lines = 0;
    for (const id of this.#waiting) {
      this.#waiting.delete(id);
      if (this.#logOne(id, lines < MOST_LINES)) lines++;
      const pause = timeSlice.pause();
      if (pause) await pause;
    }
    this.#isTelling = false;
    if (lines > MOST_LINES)
      this.#options.log.warn('More service ports want addresses that other Services have', {
        servicePorts: lines - MOST_LINES,
      });
  }

  /** One line for each service port, however many addresses it names. Returns whether there was anything to say. */
  #logOne(id: ServicePortId, isNamed: boolean): boolean {
    const [first, ...others] = this.#named.added(id, this.#options.denied(id));
    if (!first) return false;
    if (isNamed)
      this.#options.log.warn('Another Service has this address already', {
        servicePort: id,
        address: first.key,
        servedBy: first.owner,
        ...(others.length > 0 && { moreAddresses: others.length }),
      });
    return true;
  }
}

/* Two services name one address: who did not get it should know, and once is enough until it is resolved. */

export interface Denial {
  readonly key: FrontendKey;
  readonly owner: ServicePortId;
}

export class NamedDenials {
  readonly #named = new Map<ServicePortId, ReadonlySet<string>>();

  /** Of all that a service port is denied now, what was not named before. */
  added(id: ServicePortId, denied: readonly Denial[]): readonly Denial[] {
    const before = this.#named.get(id);
    if (denied.length > 0) this.#named.set(id, new Set(denied.map(textOf)));
    else this.#named.delete(id);
    return denied.filter((denial) => before?.has(textOf(denial)) !== true);
  }
}

function textOf({ key, owner }: Denial): string {
  return `${key} ${owner}`;
}

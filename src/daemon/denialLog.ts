/**
 * Says in the log which service ports do not get an address that they name. Two thousand Services can name the same fifty
 * addresses: so this is done in slices of time, and not all of many are named.
 */
import type { Log } from '../log/log.ts';
import type { ServicePortId } from '../model/serviceTracker.ts';
import { TimeSlice } from '../time/timeSlice.ts';
import type { Clock } from '../time/clock.ts';
import { type Denial, ToldDenials } from './toldDenials.ts';

export interface DenialLogOptions {
  /** What a service port is denied now. */
  readonly denied: (id: ServicePortId) => readonly Denial[];
  readonly log: Log;
  readonly clock: Clock;
}

/** Lines for what one moment changed. */
const MOST_LINES = 20;

export class DenialLog {
  readonly #options: DenialLogOptions;
  readonly #told = new ToldDenials();
  readonly #waiting = new Set<ServicePortId>();
  #isTelling = false;

  constructor(options: DenialLogOptions) {
    this.#options = options;
  }

  /** Of these service ports something changed. Answers when all has been said, or at once where that goes on already. */
  async tell(ids: Iterable<ServicePortId>): Promise<void> {
    for (const id of ids) this.#waiting.add(id);
    if (this.#isTelling) return;
    this.#isTelling = true;
    const timeSlice = new TimeSlice(this.#options.clock);
    let lines = 0;
    for (const id of this.#waiting) {
      this.#waiting.delete(id);
      if (this.#tell(id, lines < MOST_LINES)) lines++;
      const pause = timeSlice.pause();
      if (pause) await pause;
    }
    this.#isTelling = false;
    if (lines > MOST_LINES)
      this.#options.log.warn('More service ports name addresses at which others answer already', {
        servicePorts: lines - MOST_LINES,
      });
  }

  /** One line for each service port, however many addresses it names. Answers whether there was anything to say. */
  #tell(id: ServicePortId, isNamed: boolean): boolean {
    const [first, ...others] = this.#told.news(id, this.#options.denied(id));
    if (!first) return false;
    if (isNamed)
      this.#options.log.warn('Another service answers at this address already', {
        servicePort: id,
        address: first.key,
        servedBy: first.owner,
        ...(others.length > 0 && { moreAddresses: others.length }),
      });
    return true;
  }
}

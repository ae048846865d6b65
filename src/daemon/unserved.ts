/** Reports what of Services is not served: in the log, and to their owners as events. */
import type { Log } from '../log/log.ts';
import type { Family } from '../model/ip.ts';
import type { ServicePortId } from '../model/serviceTracker.ts';
import { printCut } from '../plan/capacity.ts';
import type { FrontendKey } from '../plan/claims.ts';
import type { Planner } from '../plan/planner.ts';
import type { PlanChange } from '../plan/types.ts';
import { addressNotServed, serviceTooLarge } from '../telemetry/events/event.ts';
import type { EventRecorder } from '../telemetry/events/recorder.ts';
import type { Clock } from '../time/clock.ts';
import { systemClock } from '../time/systemClock.ts';
import { forEachSliced, TimeSlice } from '../time/timeSlice.ts';

interface UnservedOptions {
  readonly family: Family;
  readonly nodeName: string;
  readonly plan: Planner;
  readonly recorder: EventRecorder;
  readonly log: Log;
}

export class UnservedReports {
  readonly #options: UnservedOptions;
  readonly #denials: DenialLog;

  constructor(options: UnservedOptions) {
    const { plan, log } = options;
    this.#options = options;
    this.#denials = new DenialLog({ denied: (id) => plan.denied(id), log, clock: systemClock });
  }

  report(changes: readonly PlanChange[]): void {
    void this.#denials.report(changes.map(({ id }) => id));
    this.#reportCuts();
    this.#reportRefusals(changes);
  }

  /** Something of a Service is beyond what one Service may have, or no longer. */
  #reportCuts(): void {
    const { family: ipFamily, nodeName, plan, recorder, log } = this.#options;
    for (const service of plan.takeNewCuts()) {
      const messages = plan.cutsOf(service).map(printCut);
      for (const reason of messages)
        log.warn('A Service is too large; not all of it is served', { ipFamily, service, reason });
      if (messages.length === 0) log.info('All of a Service is served again', { ipFamily, service });
      else recorder.record(serviceTooLarge(nodeName, service, messages));
    }
  }

  /** Once for each service, when it begins. */
  #reportRefusals(changes: readonly PlanChange[]): void {
    const { nodeName, recorder, log } = this.#options;
    const reported = new Set<string>();
    for (const { previous, current } of changes) {
      for (const ip of current?.refusedIPs ?? []) {
        const service = current?.service ?? '';
        if (previous?.refusedIPs?.includes(ip) || reported.has(`${service} ${ip}`)) continue;
        reported.add(`${service} ${ip}`);
        const reason = `${ip} is the address of the API server, and in the IPVS mode this node would answer there itself`;
        log.warn('An address of a Service is not served', { service, address: ip, reason });
        recorder.record(addressNotServed(nodeName, service, reason));
      }
    }
  }
}

/** An address that a service port names and another one has. */
export interface Denial {
  readonly key: FrontendKey;
  readonly owner: ServicePortId;
}

interface DenialLogOptions {
  /** What a service port is denied now. */
  readonly denied: (id: ServicePortId) => readonly Denial[];
  readonly log: Log;
  readonly clock: Clock;
}

/** Lines for what changed at one time. */
const MOST_LINES = 20;

/** Two thousand Services can name the same fifty addresses: so this is done in time slices, and not all of many are named. */
export class DenialLog {
  readonly #options: DenialLogOptions;
  readonly #named = new NamedDenials();
  readonly #waiting = new Set<ServicePortId>();
  #isReporting = false;

  constructor(options: DenialLogOptions) {
    this.#options = options;
  }

  /** Of these service ports something changed. Resolves when all is logged, or at once where that goes on already. */
  async report(ids: Iterable<ServicePortId>): Promise<void> {
    const { log, clock } = this.#options;
    for (const id of ids) this.#waiting.add(id);
    if (this.#isReporting) return;
    this.#isReporting = true;
    let lines = 0;
    const reportOne = (id: ServicePortId): void => {
      this.#waiting.delete(id);
      if (this.#report(id, lines < MOST_LINES)) lines++;
    };
    const timeSlice = new TimeSlice(clock);
    await timeSlice.turn();
    await forEachSliced(this.#waiting, reportOne, timeSlice);
    this.#isReporting = false;
    if (lines > MOST_LINES)
      log.warn('More service ports want addresses that other Services have', {
        servicePorts: lines - MOST_LINES,
      });
  }

  /** One line for each service port, however many addresses it names. Returns whether there was anything to report. */
  #report(id: ServicePortId, isNamed: boolean): boolean {
    const [first, ...others] = this.#named.added(id, this.#options.denied(id));
    if (first && isNamed)
      this.#options.log.warn('Another Service has this address already', {
        servicePort: id,
        address: first.key,
        servedBy: first.owner,
        ...(others.length > 0 && { moreAddresses: others.length }),
      });
    return first !== undefined;
  }
}

/** Whoever did not get an address should know, and once is enough until it is resolved. */
export class NamedDenials {
  readonly #named = new Map<ServicePortId, ReadonlySet<string>>();

  /** Of all that a service port is denied now, what was not named before. */
  added(id: ServicePortId, denied: readonly Denial[]): readonly Denial[] {
    const textOf = ({ key, owner }: Denial): string => `${key} ${owner}`;
    const before = this.#named.get(id);
    if (denied.length > 0) this.#named.set(id, new Set(denied.map(textOf)));
    else this.#named.delete(id);
    return denied.filter((denial) => before?.has(textOf(denial)) !== true);
  }
}

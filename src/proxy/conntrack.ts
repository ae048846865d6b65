/**
 * Deletes flows that are stale, after the rules for what is right are written: of datagrams, and those that began while rules were
 * missing.
 *
 * Nothing here may stop a sync: a flow that stays is a lesser evil than rules that are not written.
 */
import { messageOf } from '../errors.ts';
import type { Log } from '../log/log.ts';
import type { Family, Ip } from '../model/ip.ts';
import {
  type FlowQuestion,
  type FlowReview,
  reviewAll,
  reviewChanges,
  reviewUntranslated,
} from '../plan/flows.ts';
import type { Plan, PlanChange } from '../plan/types.ts';
import { TimeSlice, runSliced } from '../time/timeSlice.ts';
import { systemClock } from '../time/systemClock.ts';
import type { ConntrackTable, DumpFilter, FlowTest, KernelFlow } from '../netlink/conntrack.ts';

/** The kernel's table of flows, or what stands for it in a test. */
export type FlowTable = Pick<ConntrackTable, 'scan' | 'remove'>;

interface FlowCleanerOptions {
  readonly family: Family;
  /** The node's addresses, read at every cleaning: they change. */
  readonly localIps: () => readonly Ip[];
  readonly log: Log;
  readonly table: FlowTable;
}

interface Counts {
  deleted: number;
  /** Flows that were looked at one by one. */
  examined: number;
}

/** The kernel walks the whole table for every question, so from some number on it is better asked for everything. */
const MAX_NARROW_QUESTIONS = 4;
const ATTEMPTS = 5;
/** At the clock, which takes as long as a change. */
const CHANGES_PER_LOOK = 20;

export class FlowCleaner {
  readonly #options: FlowCleanerOptions;
  readonly #logged = new Set<string>();
  /** A cleaning failed, so the next one looks at everything. */
  #owesAll = false;

  constructor(options: FlowCleanerOptions) {
    this.#options = options;
  }

  /**
   * To be called after these changes are in the kernel; `first`: whatever flows there are, this process has not seen
   * them; `hadNoRules`: some may have begun while rules were missing. Returns `undefined` where no flow can have become wrong, and never fails.
   */
  async clean(
    changes: readonly PlanChange[],
    plan: Plan,
    first: boolean,
    hadNoRules = false,
  ): Promise<(Counts & { readonly seconds: number }) | undefined> {
    const { localIps, log, family } = this.#options;
    const started = performance.now();
    let counts: Counts | undefined;
    try {
      const look = first || this.#owesAll ? reviewAll : reviewChanges;
      const timeSlice = new TimeSlice(systemClock);
      if (first) await timeSlice.turn();
      const review = await runSliced(look(changes, plan, localIps()), timeSlice, CHANGES_PER_LOOK);
      const reviews = [review];
      if (hadNoRules) reviews.unshift(await runSliced(reviewUntranslated(plan, localIps()), timeSlice));
      if (reviews.every(({ questions }) => questions.length === 0)) return undefined;
      counts = { deleted: 0, examined: 0 };
      this.#owesAll = false;
      for (const each of reviews) {
        const isAsked = portsOf(each.questions);
        for (const dump of filtersFor(each.questions)) await this.#ask(dump, isAsked, each, counts);
      }
    } catch (error) {
      this.#owesAll = true;
      this.#warn(messageOf(error));
    }
    if (!counts) return undefined;
    const seconds = (performance.now() - started) / 1000;
    const milliseconds = Math.round(seconds * 10_000) / 10;
    if (counts.deleted > 0)
      log.verbose(1, 'Deleted stale conntrack flows', { ipFamily: family, ...counts, milliseconds });
    return { ...counts, seconds };
  }

  /** A dump that was interrupted may have left some out, so it is repeated; what is deleted stays deleted. */
  async #ask(dump: DumpFilter, isAsked: FlowTest, review: FlowReview, counts: Counts): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const removals: Promise<number>[] = [];
      const end = await this.#options.table.scan(dump, isAsked, (flows) => {
        counts.examined += flows.length;
        const stale = flows.filter((flow) => review.isStale(flow));
        // At once: what is stale now may be right when the dump has ended.
        if (stale.length > 0) removals.push(this.#remove(stale));
      });
      for (const removal of removals) counts.deleted += await removal;
      if (end.kind === 'answered' && !end.interrupted) return;
      if (end.kind === 'refused' && end.name !== 'EINTR') throw new Error(refusal(end.name));
      if (attempt === ATTEMPTS) throw new Error(`the list of flows was interrupted ${ATTEMPTS} times`);
    }
  }

  async #remove(stale: readonly KernelFlow[]): Promise<number> {
    try {
      const outcomes = await this.#options.table.remove(stale);
      for (const outcome of outcomes)
        if (outcome.state === 'refused') this.#warn(`the kernel keeps a flow: ${outcome.name}`);
      return outcomes.filter(({ state }) => state === 'done').length;
    } catch (error) {
      this.#owesAll = true;
      this.#warn(messageOf(error));
      return 0;
    }
  }

  /** Each message once: it would come again with every change. */
  #warn(message: string): void {
    if (this.#logged.has(message)) return;
    this.#logged.add(message);
    this.#options.log.warn('Cannot clean up UDP and SCTP flows; some may go to endpoints that are gone', {
      ipFamily: this.#options.family,
      why: message,
    });
  }
}

function portsOf(questions: readonly FlowQuestion[]): FlowTest {
  const ports = { TCP: new Set<number>(), UDP: new Set<number>(), SCTP: new Set<number>() };
  for (const { protocol, port } of questions) ports[protocol].add(port);
  return (protocol, port) => ports[protocol].has(port);
}

function filtersFor(questions: readonly FlowQuestion[]): readonly DumpFilter[] {
  if (questions.length <= MAX_NARROW_QUESTIONS) return questions;
  return [...new Set(questions.map(({ protocol }) => protocol))].map((protocol) => ({ protocol }));
}

function refusal(name: string): string {
  switch (name) {
    case 'EPERM':
      return 'the kernel refuses to list its flows: Junction needs CAP_NET_ADMIN';
    case 'EINVAL': // no such subsystem
    case 'EOPNOTSUPP':
      return `the kernel cannot list its flows (${name}): modprobe nf_conntrack_netlink`;
    default:
      return `the kernel refuses to list its flows: ${name}`;
  }
}

/**
 * Deletes datagram flows that are stale, after the rules for what is right are written.
 *
 * Nothing here may stop a sync: a flow that stays is a lesser evil than rules that are not written.
 */
import { messageOf } from '../errors.ts';
import type { Log } from '../log/log.ts';
import type { Family, Ip } from '../model/ip.ts';
import {
  type DatagramProtocol,
  type FlowQuestion,
  type FlowReview,
  reviewAll,
  reviewChanges,
} from '../plan/flows.ts';
import type { Plan, PlanChange } from '../plan/types.ts';
import { TimeSlice, runSliced } from '../time/timeSlice.ts';
import { systemClock } from '../time/systemClock.ts';
import { ConntrackTable, type DumpFilter, type KernelFlow, type WantsFlow } from '../netlink/conntrack.ts';

/** The kernel's table of flows, or what stands for it in a test. */
export type FlowTable = Pick<ConntrackTable, 'flows' | 'remove' | 'close'>;

interface FlowCleanerOptions {
  readonly family: Family;
  /** The node's addresses, read at every cleaning: they change. */
  readonly localIps: () => readonly Ip[];
  readonly log: Log;
  readonly open?: () => FlowTable;
}

interface Counts {
  deleted: number;
  /** Flows that were looked at one by one. */
  examined: number;
}

/** The kernel walks the whole table for every question, so from some number on it is better asked for everything. */
const MAX_NARROW_QUESTIONS = 4;
const ATTEMPTS = 5;

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
   * them. Returns `undefined` where no flow can have become wrong, and never fails.
   */
  async clean(
    changes: readonly PlanChange[],
    plan: Plan,
    first: boolean,
  ): Promise<(Counts & { readonly seconds: number }) | undefined> {
    const { localIps, log, family } = this.#options;
    const started = performance.now();
    let counts: Counts | undefined;
    try {
      const look = first || this.#owesAll ? reviewAll : reviewChanges;
      const review = look(changes, plan, localIps());
      if (review.questions.length === 0) return undefined;
      counts = { deleted: 0, examined: 0 };
      this.#owesAll = false;
      await runSliced(this.#cleaning(review, counts), new TimeSlice(systemClock));
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

  *#cleaning(review: FlowReview, counts: Counts): Generator<void, void> {
    const { family, open = () => new ConntrackTable(family) } = this.#options;
    const table = open();
    try {
      const wants = wanted(review.questions);
      for (const filter of filtersFor(review.questions))
        yield* this.#ask(table, filter, wants, review, counts);
    } finally {
      table.close();
    }
  }

  /** A dump that was interrupted may have left some out, so it is repeated; what is deleted stays deleted. */
  *#ask(
    table: FlowTable,
    filter: DumpFilter,
    wants: WantsFlow,
    review: FlowReview,
    counts: Counts,
  ): Generator<void, void> {
    for (let attempt = 1; ; attempt++) {
      const batches = table.flows(filter, wants);
      let step = batches.next();
      for (; !step.done; step = batches.next()) {
        counts.examined += step.value.length;
        const stale = step.value.filter((flow) => review.isStale(flow));
        if (stale.length > 0) counts.deleted += this.#remove(table, stale);
        yield;
      }
      if (step.value.kind === 'answered' && !step.value.interrupted) return;
      if (step.value.kind === 'refused' && step.value.name !== 'EINTR')
        throw new Error(refusal(step.value.name));
      if (attempt === ATTEMPTS) throw new Error(`the list of flows was interrupted ${ATTEMPTS} times`);
    }
  }

  #remove(table: FlowTable, stale: readonly KernelFlow[]): number {
    const outcomes = table.remove(stale);
    for (const outcome of outcomes)
      if (outcome.state === 'refused') this.#warn(`the kernel keeps a flow: ${outcome.name}`);
    return outcomes.filter(({ state }) => state === 'done').length;
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

function filtersFor(questions: readonly FlowQuestion[]): readonly DumpFilter[] {
  if (questions.length <= MAX_NARROW_QUESTIONS) return questions;
  return [...new Set(questions.map(({ protocol }) => protocol))].map((protocol) => ({ protocol }));
}

function wanted(questions: readonly FlowQuestion[]): WantsFlow {
  const ports: Readonly<Record<DatagramProtocol, Set<number>>> = { UDP: new Set(), SCTP: new Set() };
  for (const { protocol, port } of questions) ports[protocol].add(port);
  return (protocol, port) => ports[protocol].has(port);
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

/** A writer that writes down what it is given, and a log that keeps its lines. */
import type { SyncAttempt, SyncReport } from '../../src/proxy/report.ts';
import { createLog, type Log } from '../../src/log/log.ts';
import { lineWithoutPlace } from '../support/logLine.ts';
import type { ServicePortId } from '../../src/model/serviceTracker.ts';
import type { Plan } from '../../src/plan/types.ts';
import type { KernelWriter } from '../../src/proxy/proxier.ts';

export const REPORT: SyncReport = {
  kind: 'incremental',
  commits: 1,
  objects: 1,
  refused: new Map(),
  repaired: [],
  retryAfterMs: undefined,
  counts: { chains: 1, 'owned.filter': 1, 'owned.nat': 1, 'written.filter': 0, 'written.nat': 1 },
};

export class FakeWriter implements KernelWriter {
  /** The service ports that each sync was told of, sorted. */
  readonly syncs: (readonly ServicePortId[])[] = [];
  fulls = 0;
  writesPerSync: number | undefined;
  attempt: SyncAttempt | undefined;
  report: () => SyncReport | Promise<SyncReport> = () => REPORT;
  plan: Plan | undefined;

  async sync(plan: Plan, dirty: Iterable<ServicePortId>): Promise<SyncReport> {
    this.plan = plan;
    this.syncs.push([...dirty].sort());
    return await this.report();
  }

  requestFull(): void {
    this.fulls++;
  }
}

export class FakeLog {
  readonly lines: string[] = [];
  readonly log: Log = createLog({
    verbosity: 2,
    format: 'json',
    write: (line) => this.lines.push(lineWithoutPlace(line)),
  });
}

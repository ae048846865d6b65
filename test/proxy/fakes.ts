/** A backend that writes down what it is given, and a log that keeps its lines. */
import type { SyncReport } from '../../src/modes/iptables/reconcile.ts';
import { createLog, type Log } from '../../src/log/log.ts';
import { lineWithoutPlace } from '../support/logLine.ts';
import type { ServicePortId } from '../../src/model/serviceTracker.ts';
import type { Plan } from '../../src/plan/types.ts';
import type { Backend } from '../../src/proxy/proxier.ts';

export const REPORT: SyncReport = {
  kind: 'incremental',
  restores: 1,
  bytes: 1,
  chains: 1,
  rules: 1,
  refused: new Map(),
  refusals: 0,
  owned: { filter: 1, nat: 1, mangle: 0 },
  written: { filter: 0, nat: 1, mangle: 0 },
};

export class FakeBackend implements Backend {
  /** The service ports that each sync was told of, sorted. */
  readonly syncs: (readonly ServicePortId[])[] = [];
  fulls = 0;
  writesPerSync: number | undefined;
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

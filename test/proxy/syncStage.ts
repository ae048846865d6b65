/** A sync runner with a proxier whose writer, clock and log are fakes. */
import { Proxier, type SyncOutcome } from '../../src/proxy/proxier.ts';
import type { LookBeside } from '../../src/proxy/looks.ts';
import type { SyncReport } from '../../src/proxy/report.ts';
import { SyncRunner, type Generation } from '../../src/proxy/syncRunner.ts';
import { TimeSlice } from '../../src/time/timeSlice.ts';
import { SETTINGS } from '../plan/given.ts';
import { FakeClock } from '../time/fakeClock.ts';
import { FakeLog, FakeWriter, REPORT } from './fakes.ts';

export class Stage {
  readonly clock = new FakeClock();
  readonly writer = new FakeWriter();
  readonly log = new FakeLog();
  readonly outcomes: SyncOutcome[] = [];
  /** That changed something of ours. */
  readonly programs: string[] = [];
  readonly proxy: Proxier;
  readonly loop: SyncRunner;
  generation: Generation | undefined;
  jumpLooks = 0;

  constructor({ synced = true, verify }: { readonly synced?: boolean; readonly verify?: LookBeside } = {}) {
    if (verify) this.writer.verify = verify;
    this.proxy = new Proxier({
      family: 'IPv4',
      settings: SETTINGS,
      writer: this.writer,
      // On a busy machine real time would be over in the middle of it.
      timeSlice: new TimeSlice(this.clock),
    });
    this.loop = new SyncRunner({
      proxier: this.proxy,
      log: this.log.log,
      clock: this.clock,
      minSyncPeriodMs: 1000,
      syncPeriodMs: 30_000,
      generation: () => this.generation,
      requestJumps: () => this.jumpLooks++,
      onForeignChange: (program) => this.programs.push(program),
      onSynced: (outcome) => this.outcomes.push(outcome),
    });
    this.loop.start();
    if (synced) this.proxy.onSynced();
  }

  get syncs(): number {
    return this.writer.syncs.length;
  }

  /** The writer reports these, one after another; a number is how long that sync takes. */
  reports(...list: readonly (SyncReport | Error)[]): void {
    let next = 0;
    this.writer.report = async () => {
      const report = list[Math.min(next++, list.length - 1)] ?? REPORT;
      if (report instanceof Error) throw report;
      return report;
    };
  }
}

export const FULL: SyncReport = { ...REPORT, kind: 'full', commits: 0, objects: 0 };

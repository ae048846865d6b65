/** One family, from events to the calls of its writer: a proxier and its runner with a clock that the test owns. */
import type { Family } from '../../src/model/ip.ts';
import type { SideWork } from '../../src/proxy/openWork.ts';
import { Proxier, type SyncOutcome } from '../../src/proxy/proxier.ts';
import type { SyncReport } from '../../src/proxy/report.ts';
import { SyncRunner, type Verification } from '../../src/proxy/syncRunner.ts';
import type { FamilyTelemetry } from '../../src/proxy/telemetry.ts';
import { TimeSlice } from '../../src/time/timeSlice.ts';
import { SETTINGS } from '../plan/given.ts';
import { FakeClock } from '../time/fakeClock.ts';
import { FakeLog, FakeWriter, REPORT } from './fakes.ts';
import { tell } from './given.ts';

/** A sync that read the kernel and found everything in place. */
export const FULL: SyncReport = { ...REPORT, kind: 'full', commits: 0, objects: 0 };
export const NOTHING: SyncReport = { ...REPORT, kind: 'nothing', commits: 0, objects: 0 };

/** What a sync does: it takes so long, then it reports this or fails. */
export interface Run {
  readonly ms?: number;
  readonly report?: Partial<SyncReport> | Error;
}

interface StageOptions {
  readonly family?: Family;
  readonly clock?: FakeClock;
  readonly log?: FakeLog;
  readonly minSyncPeriodMs?: number;
  /** What the first syncs do; those after them are like the last of these. */
  readonly runs?: readonly Run[];
  /** What the next sync does, where that depends. */
  readonly next?: () => Run;
  readonly fullSyncEvery?: Verification['fullSyncEvery'];
  /** The first snapshot is not there yet. */
  readonly isListing?: boolean;
  readonly telemetry?: FamilyTelemetry;
}

export class Stage {
  readonly clock: FakeClock;
  readonly writer = new FakeWriter();
  readonly log: FakeLog;
  readonly outcomes: SyncOutcome[] = [];
  /** When syncs began, in seconds. */
  readonly began: number[] = [];
  /** Programs that changed something of ours. */
  readonly programs: string[] = [];
  readonly proxy: Proxier;
  readonly runner: SyncRunner;
  /** That each sync begins. */
  sideWork: readonly SideWork[] = [];
  runs: Run[];
  readonly #next: (() => Run) | undefined;

  constructor({ clock = new FakeClock(), log = new FakeLog(), runs = [], ...options }: StageOptions = {}) {
    const { isListing, minSyncPeriodMs = 1000, telemetry, family = 'IPv4' } = options;
    this.clock = clock;
    this.log = log;
    this.runs = [...runs];
    this.#next = options.next;
    this.writer.report = () => this.#run();
    this.proxy = new Proxier({
      family,
      settings: SETTINGS,
      writer: this.writer,
      startedAt: 0,
      timeSlice: new TimeSlice(clock),
      ...(telemetry && { telemetry }),
    });
    this.runner = new SyncRunner({
      proxier: this.proxy,
      log: log.log,
      clock,
      minSyncPeriodMs,
      syncPeriodMs: 30_000,
      fullSyncEvery: options.fullSyncEvery,
      onForeignChange: (program) => this.programs.push(program),
      onSynced: (outcome) => {
        this.outcomes.push(outcome);
        return this.sideWork;
      },
      ...(telemetry && { telemetry }),
    });
    this.runner.start();
    if (!isListing) this.proxy.onSynced();
  }

  get syncs(): number {
    return this.began.length;
  }

  /** What the runner wanted to be compared in full. */
  get fulls(): number {
    return this.writer.fulls;
  }

  /** Objects change, and a sync is asked for. */
  tell(...lines: readonly string[]): void {
    if (tell(this.proxy, ...lines)) this.runner.request();
  }

  /** Lets so many seconds go by. */
  pass(seconds: number): Promise<void> {
    return this.clock.advance(seconds * 1000);
  }

  /** What each line of the log that says so gives as the cause of a write. */
  get causes(): readonly string[] {
    return this.log.lines
      .map((line) => JSON.parse(line) as { readonly msg: string; readonly cause?: string })
      .flatMap(({ msg, cause }) => (msg === 'Synced rules' ? [cause ?? ''] : []));
  }

  /** The lines of the log with this in them. */
  lines(text: string): readonly string[] {
    return this.log.lines.filter((line) => line.includes(text));
  }

  async #run(): Promise<SyncReport> {
    this.began.push(this.clock.now() / 1000);
    const run = this.#next?.() ?? (this.runs.length > 1 ? this.runs.shift() : this.runs[0]);
    const { ms = 0, report = REPORT } = run ?? {};
    if (ms > 0) {
      await new Promise<void>((resolve) => {
        this.clock.schedule(ms, resolve);
      });
    }
    if (report instanceof Error) throw report;
    return { ...REPORT, ...report };
  }
}

/** One boot of the guest for all of its tests, whose results are here as soon as they are known. */
import type { GuestResult } from '../../lab/guest/machine.ts';
import { parseReport, type Report, type TestId, testKey, type TestResult } from './report.ts';

/** Runs the guest's program to its end. */
export type Boot = (onLine: (line: string) => void) => Promise<Pick<GuestResult, 'code' | 'stderr'>>;

export class GuestRun {
  readonly #results = new Map<string, TestResult>();
  readonly #waiting = new Map<string, () => void>();
  readonly #ended: Promise<void>;
  #running: TestId | undefined;
  /** Why there will be no more results. */
  #end: string | undefined;
  #isTold = false;

  constructor(boot: Boot) {
    this.#ended = this.#run(boot);
  }

  /** Fails with what the guest said last when that ended before the test did. */
  async result(id: TestId): Promise<TestResult> {
    const key = testKey(id);
    if (!this.#results.has(key) && this.#end === undefined)
      await new Promise<void>((resolve) => this.#waiting.set(key, resolve));
    const result = this.#results.get(key);
    if (result) return result;
    throw new Error(this.#explain(id));
  }

  ended(): Promise<void> {
    return this.#ended;
  }

  async #run(boot: Boot): Promise<void> {
    try {
      const { code, stderr } = await boot((line) => this.#hear(parseReport(line)));
      this.#end = `the program in the guest ended with ${code}\n${stderr}`.trimEnd();
    } catch (error) {
      this.#end = error instanceof Error ? error.message : String(error);
    }
    for (const resolve of this.#waiting.values()) resolve();
  }

  #hear(report: Report | undefined): void {
    if (report === undefined) return;
    if ('begun' in report) {
      this.#running = report.begun;
      return;
    }
    this.#running = undefined;
    const key = testKey(report.result);
    this.#results.set(key, report.result);
    this.#waiting.get(key)?.();
    this.#waiting.delete(key);
  }

  /** All that the guest said is for one test, that in which it ended or the first after; the others refer to it. */
  #explain(id: TestId): string {
    const running = this.#running && testKey(this.#running);
    if (running !== undefined && running !== testKey(id)) return `the guest ended before, during: ${running}`;
    if (running === undefined && this.#isTold)
      return 'the guest ended before: see the first test that says so';
    this.#isTold = true;
    const when = running === undefined ? 'before this test had its turn' : 'during this test';
    return `the guest ended ${when}: ${this.#end}`;
  }
}

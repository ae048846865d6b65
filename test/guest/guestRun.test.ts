import { describe, expect, test } from 'vitest';
import { type Boot, GuestRun } from './guestRun.ts';
import type { Report, TestId } from './report.ts';

const FIRST: TestId = { suite: 'suite', name: 'first' };
const SECOND: TestId = { suite: 'suite', name: 'second' };
const THIRD: TestId = { suite: 'suite', name: 'third' };
const ALL_WELL = { ok: true, message: '', milliseconds: 7 };

/** A guest that prints these and then ends as it is told to. */
function saying(reports: readonly (Report | string)[], end: () => ReturnType<Boot>): Boot {
  return async (onLine) => {
    for (const report of reports) onLine(typeof report === 'string' ? report : JSON.stringify(report));
    await Promise.resolve();
    return end();
  };
}

const done: () => ReturnType<Boot> = () => Promise.resolve({ code: 0, stderr: '' });

async function complaintsOf(run: GuestRun, ids: readonly TestId[]): Promise<readonly string[]> {
  return Promise.all(
    ids.map((id) =>
      run.result(id).then(
        () => 'no complaint',
        (error: unknown) => String(error),
      ),
    ),
  );
}

describe('the results of a guest', () => {
  test('are there before it ends', async () => {
    let end = (): void => {};
    const ended = new Promise<{ code: number; stderr: string }>((resolve) => {
      end = () => resolve({ code: 0, stderr: '' });
    });
    const run = new GuestRun(saying([{ begun: FIRST }, { result: { ...FIRST, ...ALL_WELL } }], () => ended));
    expect(await run.result(FIRST)).toEqual({ ...FIRST, ...ALL_WELL });
    end();
    await run.ended();
  });

  test('are the same however late somebody asks, whatever else was printed', async () => {
    const result = { ...FIRST, ok: false, message: 'seen  pass', milliseconds: 7 };
    const run = new GuestRun(saying(['noise', '{}', { begun: FIRST }, { result }, '17'], done));
    await run.ended();
    expect(await run.result(FIRST)).toEqual(result);
  });

  test('a machine that ends during a test: that one tells all, those after it refer to it', async () => {
    const run = new GuestRun(
      saying([{ begun: FIRST }, { result: { ...FIRST, ...ALL_WELL } }, { begun: SECOND }], () =>
        Promise.reject(new Error('the guest was still running\n--- console\nOops')),
      ),
    );
    expect(await complaintsOf(run, [FIRST, SECOND, THIRD])).toEqual([
      'no complaint',
      'Error: the guest ended during this test: the guest was still running\n--- console\nOops',
      'Error: the guest ended before, during: suite > second',
    ]);
  });

  test('a program that ends too early: the first test without a result tells all', async () => {
    const run = new GuestRun(
      saying([{ begun: FIRST }, { result: { ...FIRST, ...ALL_WELL } }], () =>
        Promise.resolve({ code: 1, stderr: 'TypeError: x is not a function\n' }),
      ),
    );
    expect(await complaintsOf(run, [FIRST, SECOND, THIRD])).toEqual([
      'no complaint',
      'Error: the guest ended before this test had its turn: the program in the guest ended with 1\nTypeError: x is not a function',
      'Error: the guest ended before: see the first test that says so',
    ]);
  });
});

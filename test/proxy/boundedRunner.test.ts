import { describe, expect, test } from 'vitest';
import { BoundedRunner, type BoundedRunnerOptions } from '../../src/proxy/boundedRunner.ts';
import { FakeClock, settle } from '../time/fakeClock.ts';

interface Setup extends Partial<Omit<BoundedRunnerOptions, 'clock' | 'run'>> {
  /** How long each run takes; the last one counts for all that follow. */
  readonly takes?: readonly number[];
  /** Which runs fail, counted from 1. */
  readonly fails?: readonly number[];
  /** After how many milliseconds each run wants another. */
  readonly wants?: readonly (number | undefined)[];
}

class Stage {
  readonly clock = new FakeClock();
  /** When runs began. */
  readonly began: number[] = [];
  readonly errors: unknown[] = [];
  readonly runner: BoundedRunner;

  constructor({ takes = [0], fails = [], wants = [], ...options }: Setup = {}) {
    this.runner = new BoundedRunner({
      minIntervalMs: 1000,
      retryIntervalMs: 30_000,
      maxIntervalMs: 3_600_000,
      onError: (error) => this.errors.push(error),
      ...options,
      clock: this.clock,
      run: async () => {
        this.began.push(this.clock.now());
        const number = this.began.length;
        const time = takes[number - 1] ?? takes.at(-1) ?? 0;
        if (time > 0) {
          await new Promise<void>((resolve) => {
            this.clock.schedule(time, resolve);
          });
        }
        if (fails.includes(number)) throw new Error(`run ${number}`);
        return wants[number - 1];
      },
    });
    this.runner.start();
  }

  /** Requests at these times, then waits until `until`. */
  async play(requests: readonly number[], until: number): Promise<readonly number[]> {
    for (const at of requests) {
      await this.clock.advance(at - this.clock.now());
      this.runner.request();
      await settle();
    }
    await this.clock.advance(until - this.clock.now());
    return this.began;
  }
}

describe('when it runs', () => {
  const table: readonly (readonly [string, Setup, readonly number[], number, readonly number[]])[] = [
    ['not without a request', {}, [], 60_000, []],
    ['again when a run wants it', { wants: [5000, 2000] }, [0], 60_000, [0, 5000, 7000]],
    ['as the last run wants it', { wants: [5000, undefined] }, [0, 2000], 60_000, [0, 2000]],
    ['not sooner than it may', { wants: [10] }, [0], 60_000, [0, 1000]],
    ['the first request at once', {}, [0], 10_000, [0]],
    ['the first request at once, however late', {}, [5000], 10_000, [5000]],
    ['a second request after the shortest interval', {}, [0, 100], 10_000, [0, 1000]],
    ['counted from the end of a run', { takes: [400] }, [0, 500], 10_000, [0, 1400]],
    ['requests while it rests fold into one', {}, [0, 100, 200, 300], 10_000, [0, 1000]],
    ['requests while it runs fold into one', { takes: [2000] }, [0, 100, 1900], 10_000, [0, 3000]],
    ['after a rest at once', {}, [0, 5000], 10_000, [0, 5000]],
    ['a steady stream', {}, [0, 500, 1500, 2500, 3500], 10_000, [0, 1000, 2000, 3000, 4000]],
    ['a failure is repeated', { fails: [1] }, [0], 40_000, [0, 30_000]],
    ['again and again', { fails: [1, 2] }, [0], 100_000, [0, 30_000, 60_000]],
    ['success cancels the repetition', { fails: [1] }, [0, 10_000], 60_000, [0, 10_000]],
    [
      'a repetition waits for the shortest interval',
      { fails: [1], retryIntervalMs: 10 },
      [0],
      10_000,
      [0, 1000],
    ],
    [
      'a repetition waits no longer than the longest interval',
      { fails: [1], maxIntervalMs: 5000 },
      [0],
      9000,
      [0, 5000],
    ],
    ['at the longest interval without a request', { maxIntervalMs: 20_000 }, [], 50_000, [20_000, 40_000]],
    ['any run puts that off', { maxIntervalMs: 20_000 }, [15_000], 50_000, [15_000, 35_000]],
    ['without a shortest interval', { minIntervalMs: 0 }, [0, 1, 2], 10_000, [0, 1, 2]],
    ['two in a row with a burst of two', { burst: 2 }, [0, 10, 20], 10_000, [0, 10, 1000]],
    [
      'a burst comes back with time',
      { burst: 2 },
      [0, 10, 5000, 5010, 5020],
      20_000,
      [0, 10, 5000, 5010, 6000],
    ],
  ];
  test.each(table)('%s', async (_, setup, requests, until, expected) => {
    expect(await new Stage(setup).play(requests, until)).toEqual(expected);
  });
});

test('it does not run twice at a time', async () => {
  let running = 0;
  let most = 0;
  const clock = new FakeClock();
  const runner = new BoundedRunner({
    minIntervalMs: 0,
    maxIntervalMs: 1000,
    retryIntervalMs: 1000,
    burst: 10,
    clock,
    run: async () => {
      most = Math.max(most, ++running);
      await new Promise<void>((resolve) => {
        clock.schedule(50, resolve);
      });
      running--;
    },
  });
  runner.start();
  for (let time = 0; time < 50; time++) {
    runner.request();
    await clock.advance(10);
  }
  expect(most).toBe(1);
});

test('a failure is told', async () => {
  const stage = new Stage({ fails: [1] });
  await stage.play([0], 10);
  expect(stage.errors).toEqual([new Error('run 1')]);
});

describe('start and stop', () => {
  test('a request before the start waits for it', async () => {
    const clock = new FakeClock();
    let runs = 0;
    const runner = new BoundedRunner({
      minIntervalMs: 1000,
      maxIntervalMs: 60_000,
      retryIntervalMs: 1000,
      clock,
      run: async () => {
        runs++;
      },
    });
    runner.request();
    await clock.advance(5000);
    expect(runs).toBe(0);
    runner.start();
    await settle();
    expect(runs).toBe(1);
  });

  test('stop waits for the run under way, and none follows', async () => {
    const stage = new Stage({ takes: [500] });
    stage.runner.request();
    await stage.clock.advance(100);
    stage.runner.request();
    let stopped = false;
    const done = stage.runner.stop().then(() => {
      stopped = true;
    });
    await settle();
    expect(stopped).toBe(false);
    await stage.clock.advance(400);
    await done;
    expect(stopped).toBe(true);
    await stage.clock.advance(10_000_000);
    expect(stage.began).toEqual([0]);
    expect(stage.clock.pending).toBe(0);
  });

  test('stop while it rests', async () => {
    const stage = new Stage();
    await stage.play([0, 100], 500);
    await stage.runner.stop();
    await stage.clock.advance(10_000_000);
    expect(stage.began).toEqual([0]);
  });
});

test('the longest interval is not shorter than the shortest', () => {
  const make = (): BoundedRunner =>
    new BoundedRunner({
      minIntervalMs: 10,
      maxIntervalMs: 9,
      retryIntervalMs: 1,
      clock: new FakeClock(),
      run: async () => {},
    });
  expect(make).toThrow('9 ms');
});

describe('what is urgent', () => {
  /** Urgent requests at these times. */
  async function urgently(stage: Stage, times: readonly number[], until: number): Promise<readonly number[]> {
    for (const at of times) {
      await stage.clock.advance(at - stage.clock.now());
      stage.runner.request(true);
      await settle();
    }
    await stage.clock.advance(until - stage.clock.now());
    return stage.began;
  }

  test('does not wait for the shortest interval', async () => {
    const stage = new Stage();
    await stage.play([0], 100);
    expect(await urgently(stage, [100, 300], 10_000)).toEqual([0, 100, 300]);
  });

  test('runs as soon as the run under way has ended', async () => {
    const stage = new Stage({ takes: [400] });
    await stage.play([0], 100);
    expect(await urgently(stage, [100], 10_000)).toEqual([0, 400]);
  });

  test('waits like everything else when there is no end to it', async () => {
    const stage = new Stage();
    await stage.play([0], 0);
    const times = Array.from({ length: 20 }, (_, index) => 10 + index);
    const began = await urgently(stage, times, 900);
    expect(began).toEqual([0, 10, 11, 12, 13, 14]);
  });

  test('waits for the bucket that has one sooner', async () => {
    const stage = new Stage();
    await stage.play([0], 0);
    const began = await urgently(stage, [10, 11, 12, 13, 14, 500, 1014], 1100);
    expect(began).toEqual([0, 10, 11, 12, 13, 14, 1010]);
  });

  test('what is not, still waits', async () => {
    const stage = new Stage();
    await stage.play([0], 0);
    await urgently(stage, [100], 100);
    expect(await stage.play([200], 10_000)).toEqual([0, 100, 1100]);
  });
});

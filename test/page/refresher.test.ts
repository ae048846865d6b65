import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Refresher } from '../../page/src/refresher.ts';
import { retryPause } from '../../page/src/retry.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Answers with the number of the question, unless the next failure is due. */
class Server {
  asked = 0;
  readonly answers: number[] = [];
  readonly failures: string[] = [];
  failWith: string | undefined;
  readonly refresher = new Refresher<number>({
    ask: async () => {
      const number = ++this.asked;
      if (this.failWith !== undefined) throw new Error(this.failWith);
      return number;
    },
    onAnswer: (value) => this.answers.push(value),
    onFailure: (error) => this.failures.push(String(error)),
    mayPass: (error) => String(error).includes('busy'),
  });
}

describe('an answer that is kept fresh', () => {
  test('many events are one question', async () => {
    const server = new Server();
    server.refresher.now();
    await vi.advanceTimersByTimeAsync(1);
    for (let event = 0; event < 50; event++) server.refresher.touch();
    await vi.advanceTimersByTimeAsync(300);
    expect(server.answers).toEqual([1]);
    await vi.advanceTimersByTimeAsync(5000);
    expect(server.answers).toEqual([1, 2]);
  });

  test('a failure that may pass is asked again; its timer ends with it', async () => {
    const server = new Server();
    server.failWith = 'busy';
    server.refresher.now();
    await vi.advanceTimersByTimeAsync(1600);
    expect(server.failures.length).toBeGreaterThan(1);
    server.failWith = undefined;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(server.answers).toHaveLength(1);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('a failure that stays is asked again when somebody says so', async () => {
    const server = new Server();
    server.failWith = 'no such service';
    server.refresher.now();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(server.asked).toBe(1);
    server.failWith = undefined;
    server.refresher.now();
    await vi.advanceTimersByTimeAsync(0);
    expect(server.answers).toEqual([2]);
  });

  test('nothing comes after the end', async () => {
    const server = new Server();
    server.refresher.now();
    server.refresher.stop();
    await vi.advanceTimersByTimeAsync(60_000);
    expect([server.answers, vi.getTimerCount()]).toEqual([[], 0]);
  });
});

test('pauses between tries grow to five seconds', () => {
  const pauses = Array.from({ length: 8 }, (_, failures) => retryPause(failures + 1));
  expect(pauses).toEqual(pauses.toSorted((a, b) => a - b));
  expect([pauses[0], pauses.at(-1)]).toEqual([250, 5000]);
});

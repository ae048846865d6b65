/** When a server that was away is known to be back, on a clock that the test owns. */
import { describe, expect, it } from 'vitest';
import { type ProbeResult, ServerMonitor } from '../../../src/sources/api/serverMonitor.ts';
import { FakeClock, settle } from '../../time/fakeClock.ts';

interface Setup {
  readonly clock: FakeClock;
  readonly monitor: ServerMonitor;
  /** When each probe was sent. */
  readonly sent: number[];
  /** When those who wait were told. */
  readonly returns: number[];
  readonly waiter: { onReturn(): void };
  /** What a probe finds from now on; `hang`: it is given up after a while. */
  answer: ProbeResult | 'hang';
}

function setup(answer: Setup['answer'], chance = 0.999): Setup {
  const clock = new FakeClock();
  const sent: number[] = [];
  const returns: number[] = [];
  const waiter = { onReturn: () => void returns.push(clock.now()) };
  const monitor = new ServerMonitor({
    clock,
    random: () => chance,
    probe: () => {
      sent.push(clock.now());
      if (all.answer !== 'hang') return Promise.resolve(all.answer);
      return new Promise((resolve) => {
        clock.schedule(4000, () => resolve('noAnswer'));
      });
    },
  });
  monitor.add(waiter);
  const all: Setup = { clock, monitor, sent, returns, waiter, answer };
  return all;
}

describe('a server that is away', () => {
  it.each([8, 20, 35, 600])('for %i s is noticed within two seconds of its return', async (seconds) => {
    const all = setup('noAnswer');
    all.monitor.suspect(all.waiter);
    await all.clock.advance(seconds * 1000);
    expect(all.monitor.isAway).toBe(true);
    all.answer = 'ready';
    await all.clock.advance(2000);
    expect(all.returns).toHaveLength(1);
    expect(all.sent.length).toBeLessThanOrEqual(seconds + 2);
  });

  it('is asked for every one to two seconds, differently on each node', async () => {
    const gaps = await Promise.all(
      [0, 0.5, 0.999].map(async (chance) => {
        const all = setup('noAnswer', chance);
        all.monitor.suspect(all.waiter);
        await all.clock.advance(10_000);
        return Math.round((all.sent[2] ?? 0) - (all.sent[1] ?? 0));
      }),
    );
    expect(gaps).toEqual([1000, 1500, 1999]);
  });

  it('and takes connections without answering is asked again before the first request is given up', async () => {
    const all = setup('hang');
    all.monitor.suspect(all.waiter);
    await all.clock.advance(30_000);
    expect(all.monitor.isAway).toBe(true);
    all.answer = 'ready';
    await all.clock.advance(2000);
    expect(all.returns).toHaveLength(1);
    // A request of before, given up now, says nothing about now.
    await all.clock.advance(10_000);
    expect(all.monitor.isAway).toBe(false);
  });

  it('is told of when it answers, and once more when it serves', async () => {
    const all = setup('noAnswer');
    all.monitor.suspect(all.waiter);
    await all.clock.advance(5000);
    all.answer = 'notReady';
    await all.clock.advance(5000);
    expect(all.returns).toHaveLength(1);
    all.answer = 'ready';
    await all.clock.advance(2000);
    expect(all.returns).toHaveLength(2);
    const { length } = all.sent;
    await all.clock.advance(60_000);
    expect(all.sent).toHaveLength(length);
  });

  it('may be a newer one: streaming lists are asked for again', async () => {
    const all = setup('noAnswer');
    all.monitor.streamsLists = false;
    all.monitor.suspect(all.waiter);
    await all.clock.advance(5000);
    all.answer = 'ready';
    await all.clock.advance(2000);
    expect(all.monitor.streamsLists).toBe(true);
  });

  it('is back as soon as any request is served', async () => {
    const all = setup('noAnswer');
    const other = { onReturn: () => undefined };
    all.monitor.suspect(all.waiter);
    all.monitor.suspect(other);
    await all.clock.advance(1000);
    all.monitor.served(other);
    expect(all.returns).toEqual([1000]);
  });
});

describe('a server that is there', () => {
  it('is asked once when a request failed; nobody is told of a return', async () => {
    const all = setup('ready');
    all.monitor.suspect(all.waiter);
    await all.clock.advance(60_000);
    expect(all.sent).toHaveLength(1);
    expect(all.returns).toEqual([]);
  });

  it('is not asked when all is well', async () => {
    const all = setup('noAnswer');
    all.monitor.suspect(all.waiter);
    await all.clock.advance(3000);
    all.monitor.served(all.waiter);
    const { length } = all.sent;
    await all.clock.advance(60_000);
    expect(all.sent).toHaveLength(length);
    expect(all.clock.pending).toBe(0);
  });

  it('and answers every other time is not a return every time', async () => {
    const all = setup('noAnswer');
    all.monitor.suspect(all.waiter);
    for (let second = 0; second < 120; second++) {
      all.answer = second % 4 < 2 ? 'noAnswer' : 'ready';
      all.monitor.suspect(all.waiter);
      await all.clock.advance(1000);
    }
    await settle();
    expect(all.returns.length).toBeGreaterThan(5);
    expect(all.returns.length).toBeLessThanOrEqual(12);
  });
});

/** The canary in a world where time passes one sleep at a time. With the real programs: real.test.ts. */
import { expect, test } from 'vitest';
import { JunctionError } from '../../../src/errors.ts';
import { CanaryMonitor } from '../../../src/modes/iptables/canary.ts';

const SHORT: Readonly<Record<string, string>> = {
  'Could not set up iptables canary': 'not set up',
  'Could not check for iptables canary (table mangle, chain KUBE-PROXY-CANARY)': 'not checked',
  'IPTables canary deleted (table mangle, chain KUBE-PROXY-CANARY)': 'deleted',
  'Inconsistent iptables state detected': 'inconsistent',
  'Reloading after iptables flush': 'reloading',
  'Reload after iptables flush failed': 'reload failed',
};
const HELD = new JunctionError('XTABLES_LOCK_HELD', 'pid 7 holds it');

class World {
  readonly #log: string[] = [];
  readonly #tables = new Set<string>();
  #isLocked = false;
  #failure: Error | undefined;
  #wake = (): void => {};
  #fallAsleep = (): void => {};

  readonly monitor = new CanaryMonitor({
    intervalMs: 30_000,
    client: {
      family: 'IPv4',
      ensureChain: async (table) => {
        if (this.#isLocked) throw HELD;
        const isThere = this.#tables.has(table);
        this.#tables.add(table);
        return isThere;
      },
      lookForChain: async (table) => {
        if (this.#isLocked) return { state: 'unknown', error: HELD };
        return this.#tables.has(table) ? { state: 'present' } : { state: 'absent', reason: 'no such chain' };
      },
    },
    onFlushed: () => {
      this.#log.push(`flushed, with canaries in ${[...this.#tables].sort().join(' ')}`);
      if (this.#failure) throw this.#failure;
    },
    log: {
      info: (message) => this.#log.push(SHORT[message] ?? message),
      warn: (message) => this.#log.push(SHORT[message] ?? message),
    },
    sleep: (milliseconds, signal) => {
      this.#log.push(`sleep ${milliseconds}`);
      this.#fallAsleep();
      return new Promise((resolve) => {
        this.#wake = resolve;
        signal.onabort = () => resolve();
      });
    },
  });

  /** Returns what the monitor does from here until it sleeps again. */
  async turn(deed: string): Promise<string> {
    this.#log.length = 0;
    const asleep = new Promise<void>((resolve) => (this.#fallAsleep = resolve));
    const [word, ...tables] = deed.split(' ');
    if (word === 'flush') for (const table of tables) this.#tables.delete(table);
    if (word === 'lock' || word === 'unlock') this.#isLocked = word === 'lock';
    if (word === 'break') this.#failure = new Error('sync failed');
    if (deed.endsWith('start')) void this.monitor.start();
    else this.#wake();
    await asleep;
    return this.#log.join(', ');
  }
}

const FLUSHED = 'reloading, flushed, with canaries in filter mangle nat';
const START = ['start', 'sleep 30000'] as const;
const POLL = ['', 'sleep 100'] as const;

type Case = readonly [name: string, ...turns: (readonly [deed: string, log: string])[]];

const CASES: readonly Case[] = [
  ['nothing happens while it lives', START, ['', 'sleep 30000']],
  [
    'a flush is told, with the canary alive again',
    START,
    ['flush mangle nat filter', `deleted, ${FLUSHED}, sleep 30000`],
    ['', 'sleep 30000'],
  ],
  [
    'the other tables are waited for',
    START,
    ['flush mangle', 'deleted, sleep 100'],
    ['flush nat', 'sleep 100'],
    ['flush filter', `${FLUSHED}, sleep 30000`],
  ],
  [
    'after five seconds of waiting, everything is written all the same',
    START,
    ['flush mangle', 'deleted, sleep 100'],
    ...Array.from({ length: 49 }, () => POLL),
    ['', `inconsistent, ${FLUSHED}, sleep 30000`],
  ],
  ['lock trouble is no flush', START, ['lock', 'not checked, sleep 30000'], ['unlock', 'sleep 30000']],
  [
    'it is tried each interval until it is set up',
    ['lock start', 'not set up, sleep 30000'],
    ['', 'not set up, sleep 30000'],
    ['unlock', 'sleep 30000'],
    ['flush mangle nat filter', `deleted, ${FLUSHED}, sleep 30000`],
  ],
  [
    'it goes on after a reload that failed',
    START,
    ['break', 'sleep 30000'],
    ['flush mangle nat filter', `deleted, ${FLUSHED}, reload failed, sleep 30000`],
    ['', 'sleep 30000'],
  ],
];

test.each(CASES.map(([name, ...turns]) => ({ name, turns })))('$name', async ({ turns }) => {
  const world = new World();
  for (const [deed, log] of turns) expect(await world.turn(deed)).toBe(log);
  await world.monitor.stop();
});

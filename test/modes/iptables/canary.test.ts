import { describe, expect, it } from 'vitest';
import { JunctionError } from '../../../src/errors.ts';
import { CanaryMonitor, type Sleep } from '../../../src/modes/iptables/canary.ts';
import type { ChainLook } from '../../../src/modes/iptables/client.ts';

const KINDS: readonly (readonly [RegExp, string])[] = [
  [/^Could not set up iptables canary$/, 'setupFailed'],
  [/^IPTables canary deleted \(table mangle, chain KUBE-PROXY-CANARY\)$/, 'deleted'],
  [/^Inconsistent iptables state detected$/, 'inconsistent'],
  [/^Reloading after iptables flush$/, 'reloading'],
  [/^Reload after iptables flush failed$/, 'reloadFailed'],
];

function kindOf(message: string, error?: unknown): string {
  return KINDS.find(([pattern]) => pattern.test(message))?.[1] ?? `${message}: ${String(error)}`;
}

/** A world in which time passes only when the script says so, one sleep at a time. */
class World {
  readonly log: string[] = [];
  readonly chains = new Map<string, 'present' | 'absent'>();
  locked = false;
  reload: () => void = () => undefined;
  #wake: (() => void) | undefined;
  #asleep: (() => void) | undefined;

  readonly monitor = new CanaryMonitor({
    intervalMs: 30_000,
    client: {
      family: 'IPv4',
      ensureChain: async (table) => {
        if (this.locked) throw new JunctionError('XTABLES_LOCK_HELD', 'held');
        const existed = this.chains.get(table) === 'present';
        this.chains.set(table, 'present');
        return existed;
      },
      lookForChain: async (table): Promise<ChainLook> => {
        if (this.locked)
          return { state: 'unknown', error: new JunctionError('XTABLES_LOCK_HELD', 'pid 7 holds it') };
        return this.chains.get(table) === 'present'
          ? { state: 'present' }
          : { state: 'absent', reason: 'no chain by that name' };
      },
    },
    onFlushed: () => {
      this.log.push(`flushed, with canaries in ${[...this.chains.keys()].join(' ')}`);
      this.reload();
    },
    log: {
      info: (message) => this.log.push(kindOf(message)),
      warn: (message, fields) => this.log.push(kindOf(message, fields?.['err'])),
    },
    sleep: this.#sleeper(),
  });

  #sleeper(): Sleep {
    return (milliseconds, signal) => {
      this.log.push(`sleep ${milliseconds}`);
      this.#asleep?.();
      return new Promise((resolve) => {
        this.#wake = resolve;
        signal.onabort = () => resolve();
      });
    };
  }

  /** Lets time pass, until the monitor sleeps again; answers what happened. */
  async tick(act: () => void = () => this.#wake?.()): Promise<readonly string[]> {
    this.log.length = 0;
    const asleep = new Promise<void>((resolve) => {
      this.#asleep = resolve;
    });
    act();
    await asleep;
    return [...this.log];
  }

  start(): Promise<readonly string[]> {
    return this.tick(() => void this.monitor.start());
  }

  flush(...tables: readonly string[]): void {
    for (const table of tables) this.chains.delete(table);
  }
}

describe('the canary', () => {
  it('is set up in three tables, and nothing happens while it lives', async () => {
    const world = new World();
    expect(await world.start()).toEqual(['sleep 30000']);
    expect([...world.chains.keys()]).toEqual(['mangle', 'nat', 'filter']);
    expect(await world.tick()).toEqual(['sleep 30000']);
    await world.monitor.stop();
  });

  it('tells of a flush, and lives again before the rules are written', async () => {
    const world = new World();
    await world.start();
    world.flush('mangle', 'nat', 'filter');
    expect(await world.tick()).toEqual([
      'deleted',
      'reloading',
      'flushed, with canaries in mangle nat filter',
      'sleep 30000',
    ]);
    await world.monitor.stop();
  });

  it('waits until the other tables are flushed too', async () => {
    const world = new World();
    await world.start();
    world.flush('mangle');
    expect(await world.tick()).toEqual(['deleted', 'sleep 100']);
    world.flush('nat');
    expect(await world.tick()).toEqual(['sleep 100']);
    world.flush('filter');
    expect(await world.tick()).toContain('reloading');
    await world.monitor.stop();
  });

  it('gives up waiting after five seconds, and reloads all the same', async () => {
    const world = new World();
    await world.start();
    world.flush('mangle');
    await world.tick();
    let polls = 1;
    let last = await world.tick();
    for (; last.includes('sleep 100'); polls++) last = await world.tick();
    expect(polls).toBe(50);
    expect(last).toEqual(['inconsistent', 'reloading', expect.stringMatching(/^flushed/), 'sleep 30000']);
    await world.monitor.stop();
  });

  it('does not take lock trouble for a flush', async () => {
    const world = new World();
    await world.start();
    world.locked = true;
    expect(await world.tick()).toEqual([
      'Could not check for iptables canary (table mangle, chain KUBE-PROXY-CANARY): JunctionError: pid 7 holds it',
      'sleep 30000',
    ]);
    world.locked = false;
    expect(await world.tick()).toEqual(['sleep 30000']);
    await world.monitor.stop();
  });

  it('is tried again each interval until it can be set up', async () => {
    const world = new World();
    world.locked = true;
    expect(await world.start()).toEqual(['setupFailed', 'sleep 30000']);
    expect(await world.tick()).toEqual(['setupFailed', 'sleep 30000']);
    world.locked = false;
    expect(await world.tick()).toEqual(['sleep 30000']);
    expect(world.chains.size).toBe(3);
    await world.monitor.stop();
  });

  it('goes on after a reload that failed', async () => {
    const world = new World();
    world.reload = () => {
      throw new Error('sync failed');
    };
    await world.start();
    world.flush('mangle', 'nat', 'filter');
    expect(await world.tick()).toContain('reloadFailed');
    expect(await world.tick()).toEqual(['sleep 30000']);
    await world.monitor.stop();
  });

  it('stops in the middle of a sleep, and tells nobody', async () => {
    const world = new World();
    await world.start();
    world.flush('mangle', 'nat', 'filter');
    world.log.length = 0;
    await world.monitor.stop();
    expect(world.log).toEqual([]);
  });
});

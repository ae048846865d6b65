/**
 * The canary: an empty chain that is deleted with all others when iptables is flushed, so that we notice and write everything again.
 *
 * Mangle is the table that is looked at, because it is small. A check that could not be made, because of the lock,
 * say, proves nothing and changes nothing.
 */
import { isJunctionError } from '../../errors.ts';
import type { Log } from '../../log/log.ts';
import { systemClock } from '../../time/systemClock.ts';
import { wait } from '../../time/wait.ts';
import type { ChainLook, IptablesClient } from './client.ts';
import { CHAINS } from './rules/names.ts';
import type { Table } from './rules/rule.ts';

const WATCHED: Table = 'mangle';
const OTHERS: readonly Table[] = ['nat', 'filter'];
const POLL_MS = 100;
const POLLS = 50;

interface CanaryOptions {
  readonly client: Pick<IptablesClient, 'family' | 'ensureChain' | 'lookForChain'>;
  readonly intervalMs: number;
  /** Writes everything again. */
  readonly onFlushed: () => void | Promise<void>;
  readonly log: Pick<Log, 'info' | 'warn'>;
}

export class CanaryMonitor {
  readonly #options: CanaryOptions;
  #stopper: AbortController | undefined;
  #created: Promise<boolean> = Promise.resolve(false);
  #ended: Promise<void> = Promise.resolve();

  constructor(options: CanaryOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    if (!this.#stopper) {
      this.#stopper = new AbortController();
      this.#created = this.#create();
      this.#ended = this.#watch(this.#stopper.signal);
    }
    await this.#created;
  }

  /** The chains stay: whoever cleans up removes them with the rest. */
  async stop(): Promise<void> {
    this.#stopper?.abort();
    this.#stopper = undefined;
    await this.#ended;
  }

  async #watch(signal: AbortSignal): Promise<void> {
    let armed = await this.#created;
    while (!signal.aborted) {
      await wait(systemClock, this.#options.intervalMs, signal);
      if (signal.aborted) return;
      if (!armed) {
        armed = await this.#create();
        continue;
      }
      if ((await this.#look(WATCHED)) !== 'absent') continue;
      this.#emit(`IPTables canary deleted (table ${WATCHED}, chain ${CHAINS.canary})`);
      await this.#waitForTheOthers(signal);
      if (signal.aborted) return;
      // Before the reload, so that a flush in the middle of it is noticed too.
      armed = await this.#create();
      await this.#reload();
    }
  }

  async #create(): Promise<boolean> {
    try {
      for (const table of [WATCHED, ...OTHERS]) await this.#options.client.ensureChain(table, CHAINS.canary);
      return true;
    } catch (error) {
      this.#emit('Could not set up iptables canary', error);
      return false;
    }
  }

  async #look(table: Table): Promise<ChainLook['state']> {
    const look = await this.#options.client
      .lookForChain(table, CHAINS.canary)
      .catch((error: unknown) => ({ state: 'unknown', error }) as const);
    if (look.state === 'unknown') {
      const message = `Could not check for iptables canary (table ${table}, chain ${CHAINS.canary})`;
      this.#emit(message, look.error);
    }
    return look.state;
  }

  /** A flush goes table by table; writing rules while it lasts would lose some of them. */
  async #waitForTheOthers(signal: AbortSignal): Promise<void> {
    for (let poll = 0; poll <= POLLS; poll++) {
      const states = await Promise.all(OTHERS.map((table) => this.#look(table)));
      if (signal.aborted || states.every((state) => state === 'absent')) return;
      if (poll < POLLS) await wait(systemClock, POLL_MS, signal);
    }
    this.#emit('Inconsistent iptables state detected');
  }

  async #reload(): Promise<void> {
    this.#emit('Reloading after iptables flush');
    try {
      await this.#options.onFlushed();
    } catch (error) {
      this.#emit('Reload after iptables flush failed', error);
    }
  }

  #emit(message: string, error?: unknown): void {
    const { client, log } = this.#options;
    const hint = isJunctionError(error) && { whatToDo: error.hint };
    if (error === undefined) log.info(message, { ipFamily: client.family });
    else log.warn(message, { ipFamily: client.family, err: error, ...hint });
  }
}

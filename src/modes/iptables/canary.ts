/**
 * The canary: an empty chain that is deleted with all others when iptables is flushed, so that we notice and write everything again.
 *
 * Mangle is the table that is looked at, because it is small. A check that could not be made, because of the lock,
 * say, proves nothing and changes nothing.
 */
import { setTimeout as sleepFor } from 'node:timers/promises';
import { isJunctionError } from '../../errors.ts';
import type { Log } from '../../log/log.ts';
import type { ChainLook, IptablesClient } from './client.ts';
import type { Table } from './rules/rule.ts';

const CANARY_CHAIN = 'KUBE-PROXY-CANARY';
const WATCHED: Table = 'mangle';
const OTHERS: readonly Table[] = ['nat', 'filter'];
const POLL_MS = 100;
const POLLS = 50;

type CanaryEvent =
  | { readonly kind: 'setupFailed'; readonly message: string; readonly error: unknown }
  | { readonly kind: 'checkFailed'; readonly message: string; readonly error: unknown }
  | { readonly kind: 'deleted'; readonly message: string }
  | { readonly kind: 'inconsistent'; readonly message: string }
  | { readonly kind: 'reloading'; readonly message: string }
  | { readonly kind: 'reloadFailed'; readonly message: string; readonly error: unknown };

/** Waits; ends early, without an error, when the signal is aborted. */
export type Sleep = (milliseconds: number, signal: AbortSignal) => Promise<void>;

interface CanaryOptions {
  readonly client: Pick<IptablesClient, 'ensureChain' | 'lookForChain'>;
  readonly intervalMs: number;
  /** Writes everything again. */
  readonly onFlushed: () => void | Promise<void>;
  readonly onEvent?: ((event: CanaryEvent) => void) | undefined;
  readonly sleep?: Sleep | undefined;
}

/** With its events in the log. */
export function canaryMonitor(
  client: IptablesClient,
  intervalMs: number,
  onFlushed: () => void,
  log: Log,
): CanaryMonitor {
  const ipFamily = client.family;
  return new CanaryMonitor({
    client,
    intervalMs,
    onFlushed,
    onEvent: (event) => {
      if (!('error' in event)) log.info(event.message, { ipFamily });
      else
        log.warn(event.message, {
          ipFamily,
          err: event.error,
          ...(isJunctionError(event.error) && { whatToDo: event.error.hint }),
        });
    },
  });
}

export class CanaryMonitor {
  readonly #options: CanaryOptions;
  readonly #sleep: Sleep;
  #stopper: AbortController | undefined;
  #ended: Promise<void> = Promise.resolve();

  constructor(options: CanaryOptions) {
    this.#options = options;
    this.#sleep = options.sleep ?? timerSleep;
  }

  start(): void {
    if (this.#stopper) return;
    this.#stopper = new AbortController();
    this.#ended = this.#watch(this.#stopper.signal);
  }

  /** The chains stay: whoever cleans up removes them with the rest. */
  async stop(): Promise<void> {
    this.#stopper?.abort();
    this.#stopper = undefined;
    await this.#ended;
  }

  async #watch(signal: AbortSignal): Promise<void> {
    let armed = await this.#create();
    while (!signal.aborted) {
      await this.#sleep(this.#options.intervalMs, signal);
      if (signal.aborted) return;
      if (!armed) {
        armed = await this.#create();
        continue;
      }
      if ((await this.#look(WATCHED)) !== 'absent') continue;
      this.#emit({
        kind: 'deleted',
        message: `IPTables canary deleted (table ${WATCHED}, chain ${CANARY_CHAIN})`,
      });
      await this.#waitForTheOthers(signal);
      if (signal.aborted) return;
      // Before the reload, so that a flush in the middle of it is noticed too.
      armed = await this.#create();
      await this.#reload();
    }
  }

  async #create(): Promise<boolean> {
    try {
      for (const table of [WATCHED, ...OTHERS]) await this.#options.client.ensureChain(table, CANARY_CHAIN);
      return true;
    } catch (error) {
      this.#emit({ kind: 'setupFailed', message: 'Could not set up iptables canary', error });
      return false;
    }
  }

  async #look(table: Table): Promise<ChainLook['state']> {
    try {
      const look = await this.#options.client.lookForChain(table, CANARY_CHAIN);
      if (look.state === 'unknown') this.#emitCheckFailed(table, look.error);
      return look.state;
    } catch (error) {
      this.#emitCheckFailed(table, error);
      return 'unknown';
    }
  }

  #emitCheckFailed(table: Table, error: unknown): void {
    const message = `Could not check for iptables canary (table ${table}, chain ${CANARY_CHAIN})`;
    this.#emit({ kind: 'checkFailed', message, error });
  }

  /** A flush goes table by table; writing rules while it lasts would lose some of them. */
  async #waitForTheOthers(signal: AbortSignal): Promise<void> {
    for (let poll = 0; poll <= POLLS; poll++) {
      const states = await Promise.all(OTHERS.map((table) => this.#look(table)));
      if (signal.aborted || states.every((state) => state === 'absent')) return;
      if (poll < POLLS) await this.#sleep(POLL_MS, signal);
    }
    this.#emit({ kind: 'inconsistent', message: 'Inconsistent iptables state detected' });
  }

  async #reload(): Promise<void> {
    this.#emit({ kind: 'reloading', message: 'Reloading after iptables flush' });
    try {
      await this.#options.onFlushed();
    } catch (error) {
      this.#emit({ kind: 'reloadFailed', message: 'Reload after iptables flush failed', error });
    }
  }

  #emit(event: CanaryEvent): void {
    this.#options.onEvent?.(event);
  }
}

const timerSleep: Sleep = async (milliseconds, signal) => {
  try {
    await sleepFor(milliseconds, undefined, { signal });
  } catch {
    // Aborted: the caller looks at the signal.
  }
};

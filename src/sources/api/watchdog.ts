/**
 * Notices a connection on which nothing comes any more.
 *
 * A node that lost its network, or a firewall that forgot the connection, sends no end: without this a watch would
 * wait for ever.
 */
import type { Clock } from '../../time/clock.ts';

export class Watchdog {
  readonly #clock: Clock;
  readonly #onSilence: () => void;
  #limitMs: number;
  #lastSign: number;
  #cancel: () => void;

  constructor(clock: Clock, limitMs: number, onSilence: () => void) {
    this.#clock = clock;
    this.#onSilence = onSilence;
    this.#limitMs = limitMs;
    this.#lastSign = clock.now();
    this.#cancel = clock.schedule(limitMs, () => this.#look());
  }

  /** Something came. Cheap: no timer is touched. */
  sign(): void {
    this.#lastSign = this.#clock.now();
  }

  /** From now on another silence is allowed. */
  allow(limitMs: number): void {
    this.#limitMs = limitMs;
    this.sign();
    this.#cancel();
    this.#cancel = this.#clock.schedule(limitMs, () => this.#look());
  }

  stop(): void {
    this.#cancel();
  }

  #look(): void {
    const left = this.#lastSign + this.#limitMs - this.#clock.now();
    if (left <= 0) this.#onSilence();
    else this.#cancel = this.#clock.schedule(left, () => this.#look());
  }
}

/** Notices that somebody has been at our rules: all of them at once by the canary, a few by reading them back. */
import { isJunctionError } from '../errors.ts';
import { CanaryMonitor } from '../modes/iptables/canary.ts';
import type { IptablesDoor } from '../modes/iptables/client.ts';
import type { Log } from '../log/log.ts';
import { type FamilyLoop, VERIFICATION } from '../proxy/familyLoop.ts';

export interface GuardOptions {
  /** Where the canary lives, in modes that have one. */
  readonly canary: IptablesDoor | undefined;
  readonly loop: FamilyLoop;
  readonly intervalMs: number;
  /** Reads everything back each time, and not only when something may have changed. */
  readonly verifiesAlways: boolean;
  /** Whether a sync has something to try again, though nothing has changed. */
  readonly hasLeftovers: () => boolean;
  readonly log: Log;
}

export class Guard {
  readonly #options: GuardOptions;
  readonly #canary: CanaryMonitor | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: GuardOptions) {
    this.#options = options;
    const { canary: door, loop, intervalMs, log } = options;
    if (!door) return;
    this.#canary = new CanaryMonitor({
      door,
      intervalMs,
      onFlushed: () => loop.flushed(),
      onEvent: (event) => {
        const ipFamily = door.family;
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

  start(): void {
    this.#canary?.start();
    this.#timer = setInterval(() => this.#look(), this.#options.intervalMs);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#canary?.stop();
  }

  #look(): void {
    const { loop, hasLeftovers, verifiesAlways } = this.#options;
    if (verifiesAlways) loop.requestFull(VERIFICATION);
    else loop.verify();
    if (hasLeftovers()) loop.request('ports that another program had');
  }
}

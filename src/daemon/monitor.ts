/** Notices that somebody has been at our rules: all of them at once by the canary, a few by reading them back. */
import { isJunctionError } from '../errors.ts';
import { CanaryMonitor } from '../modes/iptables/canary.ts';
import type { IptablesClient } from '../modes/iptables/client.ts';
import type { Log } from '../log/log.ts';
import { type SyncRunner, VERIFICATION } from '../proxy/syncRunner.ts';

export interface MonitorOptions {
  /** Where the canary lives, in modes that have one. */
  readonly canary: IptablesClient | undefined;
  readonly runner: SyncRunner;
  readonly intervalMs: number;
  /** Reads everything back each time, and not only when something may have changed. */
  readonly verifiesAlways: boolean;
  /** Whether a sync has something to try again, though nothing has changed. */
  readonly hasRetries: () => boolean;
  readonly log: Log;
}

export class Monitor {
  readonly #options: MonitorOptions;
  readonly #canary: CanaryMonitor | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: MonitorOptions) {
    this.#options = options;
    const { canary: client, runner, intervalMs, log } = options;
    if (!client) return;
    this.#canary = new CanaryMonitor({
      client,
      intervalMs,
      onFlushed: () => runner.flushed(),
      onEvent: (event) => {
        const ipFamily = client.family;
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
    const { runner, hasRetries, verifiesAlways } = this.#options;
    if (verifiesAlways) runner.requestFull(VERIFICATION);
    else runner.verify();
    if (hasRetries()) runner.request('ports that another program had');
  }
}

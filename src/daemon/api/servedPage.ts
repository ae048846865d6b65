/** The page of the running proxy, served as the configuration says now. */
import type { ValidConfig } from '../../config/effective.ts';
import { parseUiAddress, uiTokenPath } from '../../config/uiAddress.ts';
import type { Log } from '../../log/log.ts';
import type { StreamingPage } from '../../telemetry/http/server.ts';
import { systemClock } from '../../time/systemClock.ts';
import { TokenFile } from '../../ui/token.ts';
import { UiServer } from '../../ui/uiServer.ts';

interface ServedPageOptions {
  readonly nodeName: string;
  readonly api: StreamingPage;
  readonly log: Log;
}

export class ServedPage {
  readonly #options: ServedPageOptions;
  #server: UiServer | undefined;
  #settings = '';
  /** One step after the other: a new server may want the old one's port. */
  #steps: Promise<void> = Promise.resolve();

  constructor(options: ServedPageOptions) {
    this.#options = options;
  }

  get isOn(): boolean {
    return this.#server !== undefined;
  }

  /** Open pages connect again by themselves. */
  apply(config: ValidConfig): void {
    const settings = JSON.stringify([config.junction.uiBindAddress, uiTokenPath(config)]);
    if (settings === this.#settings) return;
    this.#settings = settings;
    this.#steps = this.#steps.then(() => this.#replace(config));
  }

  stop(): Promise<void> {
    this.#steps = this.#steps.then(() => this.#server?.stop());
    return this.#steps;
  }

  async #replace(config: ValidConfig): Promise<void> {
    await this.#server?.stop();
    this.#server = this.#open(config);
    await this.#server?.start();
  }

  #open(config: ValidConfig): UiServer | undefined {
    const { nodeName, api, log } = this.#options;
    const address = parseUiAddress(config.junction.uiBindAddress);
    if (!address) return undefined;
    const tokenFile = uiTokenPath(config);
    const tokens =
      tokenFile === undefined ? undefined : new TokenFile({ path: tokenFile, log, clock: systemClock });
    return new UiServer({
      address,
      nodeName,
      api,
      log,
      clock: systemClock,
      ...(tokens && { token: () => tokens.current() }),
      onServing: (link) => {
        // Made now, so that the file is there when the log names it.
        tokens?.current();
        log.info('Serving the page', { link, ...(tokens && { tokenFile }) });
      },
    });
  }
}

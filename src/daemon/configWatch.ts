/**
 * Follows the configuration file. The directory is watched, not the file, because a ConfigMap is changed by swapping a
 * link, and editors replace files.
 */
import { type FSWatcher, readFileSync, watch } from 'node:fs';
import { dirname } from 'node:path';
import type { ConfigChange, ValidConfig } from '../config/effective.ts';
import { diffConfig } from '../config/effective.ts';
import type { Log } from '../log/log.ts';

interface ConfigWatchOptions {
  readonly path: string;
  readonly current: () => ValidConfig;
  /** Reads it again, with the same flags; throws with what is wrong. */
  readonly reload: () => ValidConfig;
  readonly apply: (config: ValidConfig) => void;
  /** Something changed that only a new process can take up. */
  readonly onRestartNeeded: (changes: readonly ConfigChange[]) => void;
  readonly log: Log;
}

/** Writers write in several steps. */
const SETTLE_MS = 100;

export class ConfigWatch {
  readonly #options: ConfigWatchOptions;
  #watcher: FSWatcher | undefined;
  #timer: NodeJS.Timeout | undefined;
  #text: string;

  constructor(options: ConfigWatchOptions) {
    this.#options = options;
    this.#text = this.#read();
  }

  start(): void {
    const { path, log } = this.#options;
    try {
      this.#watcher = watch(dirname(path), () => this.#settle());
      this.#watcher.on('error', (error) =>
        log.error('The configuration file cannot be watched', { path, err: error }),
      );
    } catch (error) {
      log.error('The configuration file cannot be watched', { path, err: error });
    }
  }

  stop(): void {
    this.#watcher?.close();
    clearTimeout(this.#timer);
  }

  #settle(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#look(), SETTLE_MS);
  }

  #look(): void {
    const text = this.#read();
    if (text === this.#text) return;
    this.#text = text;
    const { path, log } = this.#options;
    try {
      this.#take(this.#options.reload());
    } catch (error) {
      log.error('The changed configuration is refused; the old one stays in force', { path, err: error });
    }
  }

  #take(config: ValidConfig): void {
    const { log, current, apply, onRestartNeeded } = this.#options;
    const changes = diffConfig(current(), config);
    for (const { path, before, after, reload } of changes) {
      log.info('Configuration changed', {
        field: path,
        before,
        after,
        takesEffect: reload === 'live' ? 'now' : 'at a restart',
      });
    }
    const restart = changes.filter(({ reload }) => reload === 'restart');
    if (restart.length > 0) onRestartNeeded(restart);
    else if (changes.length > 0) apply(config);
  }

  #read(): string {
    try {
      return readFileSync(this.#options.path, 'utf8');
    } catch {
      return this.#text ?? '';
    }
  }
}

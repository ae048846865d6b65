/**
 * Watches the configuration file. The directory is watched, not the file, because a ConfigMap is changed by swapping a
 * link, and editors replace files.
 */
import { type FSWatcher, readFileSync, watch } from 'node:fs';
import { dirname } from 'node:path';
import { diffConfig, type ValidConfig } from '../config/effective.ts';
import { attempt } from '../errors.ts';
import type { Log } from '../log/log.ts';

interface ConfigWatchOptions {
  readonly path: string;
  readonly current: () => ValidConfig;
  /** Reads it again, with the same flags; throws with what is wrong. */
  readonly reload: () => ValidConfig;
  readonly apply: (config: ValidConfig) => void;
  /** Something changed that only a new process can take up. */
  readonly onRestartNeeded: () => void;
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
    const onError = (error: unknown): void =>
      log.error('The configuration file cannot be watched', { path, err: error });
    try {
      this.#watcher = watch(dirname(path), () => {
        clearTimeout(this.#timer);
        this.#timer = setTimeout(() => this.#look(), SETTLE_MS);
      });
      this.#watcher.on('error', onError);
    } catch (error) {
      onError(error);
    }
  }

  stop(): void {
    this.#watcher?.close();
    clearTimeout(this.#timer);
  }

  #look(): void {
    const text = this.#read();
    if (text === this.#text) return;
    this.#text = text;
    const { path, log, reload } = this.#options;
    try {
      this.#take(reload());
    } catch (error) {
      log.error('The changed configuration is refused; the old one stays in force', { path, err: error });
    }
  }

  #take(config: ValidConfig): void {
    const { log, current, apply, onRestartNeeded } = this.#options;
    const changes = diffConfig(current(), config);
    for (const { path: field, before, after, reload } of changes) {
      const takesEffect = reload === 'live' ? 'now' : 'at a restart';
      log.info('Configuration changed', { field, before, after, takesEffect });
    }
    if (changes.some(({ reload }) => reload === 'restart')) onRestartNeeded();
    else if (changes.length > 0) apply(config);
  }

  #read(): string {
    return attempt(() => readFileSync(this.#options.path, 'utf8')) ?? this.#text ?? '';
  }
}

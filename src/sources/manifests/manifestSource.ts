/** Manifests in files and directories as a source: told at the start, and again whenever they change. */
import type { ReadingOptions } from './chunkReading.ts';
import type { Source, SourceEvents, SourceProblem } from '../source.ts';
import { tellDifference, type World } from '../world.ts';
import { unreadable } from './roots.ts';
import { ManifestStore } from './store.ts';
import { DirectoryWatcher } from './watch.ts';

export interface ManifestSourceOptions extends ReadingOptions {
  /** How long to wait after a change for more of them. */
  readonly debounceMilliseconds?: number;
  /** For file systems that tell nobody of changes. */
  readonly pollMilliseconds?: number;
}

/** However busy the directory is, its changes are looked at once in so many debounce times. */
const MOST_DEBOUNCES = 10;

export class ManifestSource implements Source {
  readonly #paths: readonly string[];
  readonly #store: ManifestStore;
  readonly #watcher: DirectoryWatcher;
  readonly #debounce: number;
  readonly #poll: number;
  #events: SourceEvents | undefined;
  #world: World = new Map();
  #problems: readonly SourceProblem[] = [];
  #troubles = new Map<string, SourceProblem>();
  #timer: NodeJS.Timeout | undefined;
  #changedSince: number | undefined;
  #refreshing: Promise<void> | undefined;

  constructor(paths: readonly string[], options: ManifestSourceOptions = {}) {
    this.#paths = paths;
    this.#store = new ManifestStore(paths, options);
    this.#debounce = options.debounceMilliseconds ?? 50;
    this.#poll = options.pollMilliseconds ?? 30_000;
    this.#watcher = new DirectoryWatcher({
      changed: () => this.#soon(),
      troubled: (directory, message) => this.#trouble(directory, message),
    });
  }

  /** What is wrong with the manifests now. */
  get problems(): readonly SourceProblem[] {
    return this.#problems;
  }

  async start(events: SourceEvents): Promise<void> {
    if (this.#paths.length === 0) throw new Error('manifests: no path was given');
    this.#events = events;
    try {
      await this.#alone(this.#refresh(true));
      this.#events?.synced();
      this.#later();
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  async stop(): Promise<void> {
    this.#events = undefined;
    clearTimeout(this.#timer);
    await this.#refreshing?.catch(() => undefined);
    this.#watcher.close();
  }

  async #alone(refresh: Promise<void>): Promise<void> {
    this.#refreshing = refresh;
    try {
      await refresh;
    } finally {
      this.#refreshing = undefined;
    }
  }

  /** Again until no new directory turned up, because what happened in it before it was watched went unseen. */
  async #refresh(first: boolean): Promise<void> {
    let again = true;
    while (again && this.#events) {
      const { world, problems, scan, badRoots } = await this.#store.refresh();
      if (first && badRoots.length > 0) throw unreadable(badRoots);
      this.#troubles.clear();
      again = await this.#watcher.update(scan.directories);
      this.#tell(world, [...problems, ...this.#troubles.values()]);
    }
  }

  #tell(world: World, problems: readonly SourceProblem[]): void {
    if (!this.#events) return;
    const before = this.#world;
    const known = new Set(this.#problems.map(keyOf));
    this.#world = world;
    this.#problems = problems;
    for (const problem of problems) if (!known.has(keyOf(problem))) this.#events.report(problem);
    tellDifference(this.#events, before, world);
  }

  #soon(): void {
    this.#changedSince ??= Date.now();
    if (this.#refreshing) return;
    const left = this.#changedSince + this.#debounce * MOST_DEBOUNCES - Date.now();
    this.#refreshIn(Math.max(0, Math.min(this.#debounce, left)));
  }

  #later(): void {
    if (this.#changedSince === undefined) this.#refreshIn(this.#poll);
    else this.#soon();
  }

  #refreshIn(milliseconds: number): void {
    clearTimeout(this.#timer);
    if (this.#events) this.#timer = setTimeout(() => void this.#refreshAgain(), milliseconds);
  }

  async #refreshAgain(): Promise<void> {
    this.#changedSince = undefined;
    try {
      await this.#alone(this.#refresh(false));
    } catch (error) {
      const message = `cannot be read again: ${error instanceof Error ? error.message : String(error)}`;
      this.#events?.report({ severity: 'error', where: this.#paths.join(', '), message });
    }
    this.#later();
  }

  #trouble(directory: string, message: string): void {
    const late = `changes may be noticed up to ${this.#poll / 1000} s late`;
    this.#troubles.set(directory, { severity: 'warning', where: directory, message: `${message}; ${late}` });
  }
}

function keyOf({ severity, where, object, message }: SourceProblem): string {
  return JSON.stringify([severity, where, object, message]);
}

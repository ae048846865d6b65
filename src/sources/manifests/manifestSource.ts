/** Manifests in files and directories as a source: emitted at the start, and again whenever they change. */
import { type FSWatcher, watch } from 'node:fs';
import { stat } from 'node:fs/promises';
import { messageOf } from '../../errors.ts';
import type { Source, SourceEvents, SourceProblem } from '../source.ts';
import type { ReadingOptions } from './chunkReading.ts';
import { checkRoots, explain, isGone, isManifestName, type Scan } from './scan.ts';
import { locateField } from './locate.ts';
import { emitDifference, type IgnoredObject, ManifestStore, type Snapshot } from './store.ts';

export interface ManifestSourceOptions extends ReadingOptions {
  /** How long to wait after a change for more of them. */
  readonly debounceMilliseconds?: number;
  /** For file systems that do not notify of changes. */
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
  #snapshot: Snapshot = new Map();
  #problems: readonly SourceProblem[] = [];
  #ignored: readonly IgnoredObject[] = [];
  #places: ReadonlyMap<string, string> = new Map();
  #timer: NodeJS.Timeout | undefined;
  #changedSince: number | undefined;
  #refreshing: Promise<void> | undefined;

  constructor(paths: readonly string[], options: ManifestSourceOptions = {}) {
    this.#paths = paths;
    this.#store = new ManifestStore(paths, options);
    this.#debounce = options.debounceMilliseconds ?? 50;
    this.#poll = options.pollMilliseconds ?? 30_000;
    this.#watcher = new DirectoryWatcher(() => this.#soon());
  }

  /** What is wrong with the manifests now. */
  get problems(): readonly SourceProblem[] {
    return this.#problems;
  }

  /** Objects that are not for a proxy, each with the reason. */
  get ignored(): readonly IgnoredObject[] {
    return this.#ignored;
  }

  /** File and line of a field: `examples/web.yaml:19`. */
  locate(object: string, field: string): string | undefined {
    const place = this.#places.get(object);
    return place === undefined ? undefined : locateField(place, object, field);
  }

  async start(events: SourceEvents): Promise<void> {
    if (this.#paths.length === 0) throw new Error('manifests: no path was given');
    this.#events = events;
    try {
      await checkRoots(this.#paths);
      await this.#alone(this.#refresh());
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
  async #refresh(): Promise<void> {
    let again = true;
    while (again && this.#events) {
      const { snapshot, problems, scan, ignored, places } = await this.#store.refresh();
      this.#ignored = ignored;
      this.#places = places;
      const { added, unwatched } = await this.#watcher.update(scan.directories);
      again = added;
      this.#emit(snapshot, [...problems, ...Array.from(unwatched, (each) => this.#unwatched(...each))]);
    }
  }

  #emit(snapshot: Snapshot, problems: readonly SourceProblem[]): void {
    if (!this.#events) return;
    const before = this.#snapshot;
    const known = new Set(this.#problems.map(keyOf));
    this.#snapshot = snapshot;
    this.#problems = problems;
    for (const problem of problems) if (!known.has(keyOf(problem))) this.#events.report(problem);
    emitDifference(this.#events, before, snapshot);
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
      await this.#alone(this.#refresh());
    } catch (error) {
      const message = `cannot be read again: ${messageOf(error)}`;
      this.#events?.report({ severity: 'error', where: this.#paths.join(', '), message });
    }
    this.#later();
  }

  #unwatched(where: string, reason: string): SourceProblem {
    const message = `${reason}; changes may be noticed up to ${this.#poll / 1000} s late`;
    return { severity: 'warning', where, message };
  }
}

function keyOf({ severity, where, object, message }: SourceProblem): string {
  return JSON.stringify([severity, where, object, message]);
}

interface Watched {
  readonly watcher: FSWatcher;
  /** A directory that was moved away and replaced has the same path but is another. */
  readonly identity: string;
  names: ReadonlySet<string> | 'all';
}

/** Notices that something in a set of directories may have changed. */
class DirectoryWatcher {
  readonly #onChange: () => void;
  readonly #watched = new Map<string, Watched>();

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /**
   * `added`: a directory was added; what happened in it just before was not seen. `unwatched`: directories that cannot be
   * watched, with the reason.
   */
  async update(
    directories: Scan['directories'],
  ): Promise<{ readonly added: boolean; readonly unwatched: ReadonlyMap<string, string> }> {
    for (const directory of this.#watched.keys()) if (!directories.has(directory)) this.#drop(directory);
    let added = false;
    const unwatched = new Map<string, string>();
    for (const [directory, names] of directories) {
      try {
        added = (await this.#keep(directory, names)) || added;
      } catch (error) {
        this.#drop(directory);
        // Deleted since it was listed: the next look finds its files gone too.
        if (names === 'all' && isGone(error)) added = true;
        else unwatched.set(directory, explain(error));
      }
    }
    return { added, unwatched };
  }

  close(): void {
    for (const directory of this.#watched.keys()) this.#drop(directory);
  }

  async #keep(directory: string, names: Watched['names']): Promise<boolean> {
    const { dev, ino } = await stat(directory);
    const identity = `${dev} ${ino}`;
    const known = this.#watched.get(directory);
    if (known?.identity === identity) {
      known.names = names;
      return false;
    }
    this.#drop(directory);
    const watcher = watch(directory);
    const watched: Watched = { watcher, identity, names };
    this.#watched.set(directory, watched);
    watcher.on('change', (type, name) => {
      if (matters(watched.names, type, String(name ?? ''))) this.#onChange();
    });
    watcher.on('error', () => {
      if (this.#watched.get(directory) === watched) this.#drop(directory);
      this.#onChange();
    });
    return true;
  }

  #drop(directory: string): void {
    this.#watched.get(directory)?.watcher.close();
    this.#watched.delete(directory);
  }
}

function matters(names: Watched['names'], type: string, name: string): boolean {
  if (name === '') return true;
  // Creations, removals and moves can be of directories and links, `..data` of a ConfigMap among them.
  return names === 'all' ? type === 'rename' || isManifestName(name) : names.has(name);
}

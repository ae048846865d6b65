/** Tells when something in a set of directories may have changed. */
import { type FSWatcher, watch } from 'node:fs';
import { stat } from 'node:fs/promises';
import { explain, isManifestName, type Scan } from './scan.ts';

export interface WatchEvents {
  changed(): void;
  /** A directory cannot be watched; changes in it will be noticed late. */
  troubled(directory: string, message: string): void;
}

interface Watched {
  readonly watcher: FSWatcher;
  /** A directory that was moved away and replaced has the same path but is another. */
  readonly identity: string;
  names: ReadonlySet<string> | 'all';
}

export class DirectoryWatcher {
  readonly #events: WatchEvents;
  readonly #watched = new Map<string, Watched>();

  constructor(events: WatchEvents) {
    this.#events = events;
  }

  /** True when a directory was added: what happened in it just before was not seen. */
  async update(directories: Scan['directories']): Promise<boolean> {
    for (const directory of this.#watched.keys()) if (!directories.has(directory)) this.#drop(directory);
    let added = false;
    for (const [directory, names] of directories) added = (await this.#keep(directory, names)) || added;
    return added;
  }

  close(): void {
    for (const directory of this.#watched.keys()) this.#drop(directory);
  }

  async #keep(directory: string, names: Watched['names']): Promise<boolean> {
    try {
      const { dev, ino } = await stat(directory);
      const identity = `${dev} ${ino}`;
      const known = this.#watched.get(directory);
      if (known?.identity === identity) {
        known.names = names;
        return false;
      }
      this.#drop(directory);
      this.#add(directory, identity, names);
      return true;
    } catch (error) {
      this.#drop(directory);
      this.#events.troubled(directory, explain(error));
      return false;
    }
  }

  #add(directory: string, identity: string, names: Watched['names']): void {
    const watcher = watch(directory);
    const watched: Watched = { watcher, identity, names };
    this.#watched.set(directory, watched);
    watcher.on('change', (type, name) => {
      if (matters(watched.names, type, String(name ?? ''))) this.#events.changed();
    });
    watcher.on('error', () => {
      if (this.#watched.get(directory) === watched) this.#drop(directory);
      this.#events.changed();
    });
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

/** Manifests in files and directories: their objects, and what changes in them. The last valid version of an object stays. */
import { type FSWatcher, watch } from 'node:fs';
import { attempt, messageOf } from '../../errors.ts';
import { deepEqual } from '../../model/equal.ts';
import {
  type EndpointSlice,
  type Node,
  objectKey,
  type ObjectKey,
  type Service,
} from '../../model/objects.ts';
import { systemClock } from '../../time/systemClock.ts';
import { runSliced, runToEnd, TimeSlice } from '../../time/timeSlice.ts';
import type { Source, SourceEvents, SourceProblem } from '../source.ts';
import { checkRoots, findFiles, type FoundFiles, readStream, readContent } from './files.ts';
import { type Definition, type ParsedText, parseText, type SnapshotObject } from './parse.ts';

export interface Manifests {
  readonly services: readonly Service[];
  readonly slices: readonly EndpointSlice[];
  readonly nodes: readonly Node[];
  readonly problems: readonly SourceProblem[];
  /** Sound objects that are not for a proxy. */
  readonly ignored: readonly IgnoredObject[];
  /** `file:line` of each object that is used, by `Service shop/web`. Empty where no files are read. */
  readonly places: ReadonlyMap<string, string>;
}

interface IgnoredObject {
  readonly object: string;
  readonly where: string;
  readonly reason: string;
}

/** By `snapshotKey`. */
export type Snapshot = ReadonlyMap<string, SnapshotObject>;

/** What all files together say. */
interface Resolution {
  /** By id. */
  readonly inForce: ReadonlyMap<string, Definition>;
  readonly problems: readonly SourceProblem[];
}

const NOTHING: Resolution = { inForce: new Map(), problems: [] };
const MAX_NAMES = 3;

/**
 * The first definition of an object counts. One that cannot be used keeps its last version, and a file with an error
 * deletes nothing: what is missing may be in the part that cannot be read.
 */
function resolve(
  files: ReadonlyMap<string, ParsedText>,
  before = NOTHING.inForce,
  isHidden: (file: string) => boolean = () => false,
): Resolution {
  const inForce = new Map<string, Definition>();
  const problems = [...files.values()].flatMap((file) => file.problems);
  for (const [file, parsed] of files) {
    for (const each of parsed.definitions) {
      const winner = inForce.get(each.id);
      if (winner) problems.push(duplicate(each, winner));
      else inForce.set(each.id, each);
    }
    for (const id of brokenIn(parsed.problems)) {
      const last = before.get(id);
      if (last?.file === file && !inForce.has(id)) inForce.set(id, last);
    }
  }
  // An object may have moved to another file, and be broken there.
  const broken = brokenIn(problems);
  for (const [id, last] of before)
    if (!inForce.has(id) && (broken.has(id) || isHidden(last.file))) inForce.set(id, last);
  for (const [file, { problems: found }] of files) {
    if (!found.some(({ severity }) => severity === 'error')) continue;
    const left = [...before.values()].filter((last) => last.file === file && !inForce.has(last.id));
    for (const last of left) inForce.set(last.id, last);
    if (left.length > 0) problems.push(keptProblem(file, left));
  }
  return { inForce, problems };
}

/** Ids of objects that cannot be used as they are. */
function brokenIn(problems: readonly SourceProblem[]): ReadonlySet<string> {
  return new Set(
    problems.flatMap(({ severity, object }) =>
      severity === 'error' && object !== undefined ? [object] : [],
    ),
  );
}

function keptProblem(where: string, left: readonly Definition[]): SourceProblem {
  const names = left.slice(0, MAX_NAMES).map(({ id }) => id);
  const more = left.length > MAX_NAMES ? ` and ${left.length - MAX_NAMES} more` : '';
  const message = `until this is corrected, what it said before stays: ${names.join(', ')}${more}`;
  return { severity: 'warning', where, message };
}

function duplicate({ id, where }: Definition, winner: Definition): SourceProblem {
  const message = `is also defined at ${winner.where}, and that one is used`;
  return { severity: 'warning', where, object: id, message, expected: 'each object once' };
}

function manifestsOf({ inForce, problems }: Resolution): Manifests {
  const objects = [...snapshotOf(inForce).values()];
  return {
    services: objects.flatMap((each) => (each.kind === 'Service' ? [each.value] : [])),
    slices: objects.flatMap((each) => (each.kind === 'EndpointSlice' ? [each.value] : [])),
    nodes: objects.flatMap((each) => (each.kind === 'Node' ? [each.value] : [])),
    problems,
    ignored: ignoredIn(inForce),
    places: new Map(Array.from(inForce, ([id, { where }]) => [id, where])),
  };
}

function ignoredIn(inForce: Resolution['inForce']): readonly IgnoredObject[] {
  return [...inForce.values()].flatMap(({ id, where, reason }) =>
    reason === undefined ? [] : [{ object: id, where, reason }],
  );
}

/** Two definitions can make the same object only when a slice has the name that we give to a subset of Endpoints. */
function snapshotOf(inForce: Resolution['inForce']): Snapshot {
  const snapshot = new Map<string, SnapshotObject>();
  for (const object of [...inForce.values()].flatMap(({ objects }) => objects)) {
    const key = snapshotKey(object);
    if (!snapshot.has(key)) snapshot.set(key, object);
  }
  return snapshot;
}

export function snapshotKey({ kind, value }: SnapshotObject): string {
  return kind === 'Node' ? `${kind} ${value.name}` : `${kind} ${objectKey(value.namespace, value.name)}`;
}

/** `isPresent` false: it was deleted. */
export function emitObject(events: SourceEvents, object: SnapshotObject, isPresent: boolean): void {
  const { kind, value } = object;
  if (kind === 'Node') return events.node(value.name, isPresent ? value : undefined);
  const key = objectKey(value.namespace, value.name);
  if (kind === 'Service') events.service(key, isPresent ? value : undefined);
  else events.endpointSlice(key, isPresent ? value : undefined);
}

export function emitDifference(events: SourceEvents, before: Snapshot, after: Snapshot): void {
  for (const [key, object] of before) if (!after.has(key)) emitObject(events, object, false);
  for (const [key, object] of after)
    if (!deepEqual(before.get(key), object)) emitObject(events, object, true);
}

/** Reads files again only where they changed. */
class ManifestFiles {
  #files: ReadonlyMap<string, { readonly stamp: string; readonly parsed: ParsedText }> = new Map();
  #inForce = NOTHING.inForce;

  async read({ files, hidden, problems }: FoundFiles): Promise<Resolution> {
    const timeSlice = new TimeSlice(systemClock);
    const readings = new Map<string, { readonly stamp: string; readonly parsed: ParsedText }>();
    for (const { path, stamp } of files) {
      const known = this.#files.get(path);
      const isSame = stamp !== '' && known?.stamp === stamp;
      const content = isSame ? undefined : await readContent(path);
      timeSlice.begin();
      if (isSame) readings.set(path, known);
      else if (content)
        readings.set(path, { stamp, parsed: await runSliced(parseText(content, path), timeSlice) });
    }
    this.#files = readings;
    const texts = new Map(Array.from(readings, ([path, { parsed }]) => [path, parsed]));
    const isHidden = (file: string): boolean =>
      hidden.some((path) => file === path || file.startsWith(`${path}/`));
    const resolution = resolve(texts, this.#inForce, isHidden);
    this.#inForce = resolution.inForce;
    return { ...resolution, problems: [...problems, ...resolution.problems] };
  }
}

/** Never rejects: a path that does not exist is one of the problems. */
export async function loadManifests(paths: readonly string[]): Promise<Manifests> {
  return manifestsOf(await new ManifestFiles().read(await findFiles(paths)));
}

/** The same for standard input. */
export async function readManifestStream(stream: AsyncIterable<Buffer>, name: string): Promise<Manifests> {
  return manifestsOf(resolve(new Map([[name, runToEnd(parseText(await readStream(stream), name))]])));
}

/** The same for one text; `name` stands for the file in problems. */
export function parseManifests(text: string, name = 'text'): Manifests {
  return manifestsOf(resolve(new Map([[name, runToEnd(parseText({ text }, name))]])));
}

/** How long to wait after a change for more of them. */
const DEBOUNCE_MS = 50;
/** However many changes there are, they are read after this. */
const MAX_DEBOUNCE_MS = 500;
/** For file systems that do not notify of changes. */
const POLL_MS = 30_000;

export class ManifestSource implements Source {
  readonly #paths: readonly string[];
  readonly #files = new ManifestFiles();
  /** By identity, as in `FoundFiles`. */
  readonly #watchers = new Map<string, FSWatcher>();
  #events: SourceEvents | undefined;
  #now = NOTHING;
  #timer: NodeJS.Timeout | undefined;
  #changedSince: number | undefined;
  #reading: Promise<void> = Promise.resolve();
  /** A reading that has not begun. */
  #next: Promise<void> | undefined;

  constructor(paths: readonly string[]) {
    this.#paths = paths;
  }

  /** What is wrong with the manifests now. */
  get problems(): readonly SourceProblem[] {
    return this.#now.problems;
  }

  get ignored(): readonly IgnoredObject[] {
    return ignoredIn(this.#now.inForce);
  }

  /** File and line of an object such as `Service shop/web`. */
  locate(object: string): string | undefined {
    return this.#now.inForce.get(object)?.where;
  }

  async start(events: SourceEvents): Promise<void> {
    if (this.#paths.length === 0) throw new Error('manifests: no path was given');
    this.#events = events;
    try {
      await checkRoots(this.#paths);
      await this.#readNext();
      this.#events?.synced();
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  async stop(): Promise<void> {
    this.#events = undefined;
    clearTimeout(this.#timer);
    await this.#reading.catch(() => undefined);
    for (const identity of this.#watchers.keys()) this.#drop(identity);
  }

  /** Files that change while they are read are read once more: what is asked for now begins afterwards. */
  #readNext(): Promise<void> {
    this.#next ??= this.#reading = this.#reading
      .catch(() => undefined)
      .then(() => {
        this.#next = undefined;
        return this.#read();
      });
    return this.#next;
  }

  async refresh(): Promise<void> {
    if (!this.#events) return;
    try {
      await this.#readNext();
    } catch (error) {
      const message = `cannot be read again: ${messageOf(error)}`;
      this.#events?.report({ severity: 'error', where: this.#paths.join(', '), message });
      this.#readIn(POLL_MS);
    }
  }

  missing(service: ObjectKey): string | undefined {
    return this.#now.inForce.has(`Service ${service}`) ? undefined : `Service ${service} is in no manifest`;
  }

  async #read(): Promise<void> {
    clearTimeout(this.#timer);
    this.#changedSince = undefined;
    let found = await findFiles(this.#paths);
    // What happened in a directory just before it was watched was not seen.
    while (this.#watch(found.directories)) found = await findFiles(this.#paths);
    const after = await this.#files.read(found);
    this.#emit({ ...after, problems: [...after.problems, ...this.#unwatched(found.directories)] });
    if (this.#changedSince === undefined) this.#readIn(POLL_MS);
  }

  #emit(after: Resolution): void {
    if (!this.#events) return;
    const before = this.#now;
    this.#now = after;
    const known = new Set(before.problems.map(keyOf));
    for (const problem of after.problems) if (!known.has(keyOf(problem))) this.#events.report(problem);
    emitDifference(this.#events, snapshotOf(before.inForce), snapshotOf(after.inForce));
    this.#events.received?.();
  }

  /** Returns whether a directory is watched that was not. */
  #watch(directories: FoundFiles['directories']): boolean {
    for (const identity of this.#watchers.keys()) if (!directories.has(identity)) this.#drop(identity);
    let isNew = false;
    for (const [identity, path] of this.#events ? directories : []) {
      if (this.#watchers.has(identity)) continue;
      const watcher = attempt(() => watch(path, () => this.#soon()));
      if (!watcher) continue;
      this.#watchers.set(identity, watcher);
      watcher.on('error', () => {
        this.#drop(identity);
        this.#soon();
      });
      isNew = true;
    }
    return isNew;
  }

  #drop(identity: string): void {
    this.#watchers.get(identity)?.close();
    this.#watchers.delete(identity);
  }

  #unwatched(directories: FoundFiles['directories']): readonly SourceProblem[] {
    const message = `cannot be watched; changes may be noticed up to ${POLL_MS / 1000} s late`;
    return [...directories]
      .filter(([identity]) => !this.#watchers.has(identity))
      .map(([, where]) => ({ severity: 'warning', where, message }));
  }

  #soon(): void {
    this.#changedSince ??= Date.now();
    const left = this.#changedSince + MAX_DEBOUNCE_MS - Date.now();
    this.#readIn(Math.max(0, Math.min(DEBOUNCE_MS, left)));
  }

  #readIn(milliseconds: number): void {
    clearTimeout(this.#timer);
    if (!this.#events) return;
    this.#timer = setTimeout(() => void this.refresh(), milliseconds);
  }
}

function keyOf({ severity, where, object, message }: SourceProblem): string {
  return JSON.stringify([severity, where, object, message]);
}

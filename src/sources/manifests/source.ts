/** Manifests in files and directories: their objects, and what changes in them. The last valid version of an object stays. */
import { type FSWatcher, watch } from 'node:fs';
import { messageOf } from '../../errors.ts';
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
import { printSourceProblem, type Source, type SourceEvents, type SourceProblem } from '../source.ts';
import {
  checkRoots,
  type Content,
  findFiles,
  type FoundFiles,
  isGone,
  readStream,
  readContent,
} from './files.ts';
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

type Files = ReadonlyMap<string, { readonly stamp: string; readonly parsed: ParsedText }>;

/** What all files together say. */
interface State {
  readonly files: Files;
  /** By id. */
  readonly inForce: ReadonlyMap<string, Definition>;
  readonly problems: readonly SourceProblem[];
}

const EMPTY: State = { files: new Map(), inForce: new Map(), problems: [] };
const MAX_NAMES = 3;

/**
 * The first definition of an object counts. One that cannot be used keeps its last version, and a file with an error
 * deletes nothing: what is missing may be in the part that cannot be read. `hidden`: paths of which that is all of it.
 */
function resolve(files: Files, before = EMPTY.inForce, hidden: readonly string[] = []): State {
  const texts = Array.from(files, ([file, { parsed }]) => ({ file, ...parsed }));
  const inForce = new Map<string, Definition>();
  const problems = texts.flatMap((text) => text.problems);
  const broken = new Set<string>();
  for (const each of texts.flatMap((text) => text.definitions)) {
    const { id, file, where, objects } = each;
    const last = before.get(id);
    const winner = inForce.get(id);
    if (!objects) broken.add(id);
    if (winner && objects) {
      const message = `is also defined at ${winner.where}, and that one is used`;
      problems.push({ severity: 'warning', where, object: id, message, expected: 'each object once' });
    } else if (objects) inForce.set(id, each);
    else if (!winner && last?.file === file) inForce.set(id, last);
  }
  const unsure = texts.filter((text) => text.problems.some(({ severity }) => severity === 'error'));
  const kept = new Map([...hidden, ...unsure.map(({ file }) => file)].map((path) => [path, [] as string[]]));
  for (const [id, last] of before) {
    if (inForce.has(id)) continue;
    const path = [...kept.keys()].find((each) => last.file === each || last.file.startsWith(`${each}/`));
    // An object may have moved to another file, and be broken there.
    if (broken.has(id) || path !== undefined) inForce.set(id, last);
    if (!broken.has(id) && path !== undefined) kept.get(path)?.push(id);
  }
  for (const [where, ids] of kept) {
    if (ids.length === 0) continue;
    const more = ids.length > MAX_NAMES ? ` and ${ids.length - MAX_NAMES} more` : '';
    const names = ids.slice(0, MAX_NAMES).join(', ');
    const message = `until this is corrected, what it said before stays: ${names}${more}`;
    problems.push({ severity: 'warning', where, message });
  }
  return { files, inForce, problems };
}

function manifestsOf({ inForce, problems }: State): Manifests {
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

function ignoredIn(inForce: State['inForce']): readonly IgnoredObject[] {
  return [...inForce.values()].flatMap(({ id, where, reason }) =>
    reason === undefined ? [] : [{ object: id, where, reason }],
  );
}

/** Two definitions can make the same object only when a slice has the name that we give to a subset of Endpoints. */
function snapshotOf(inForce: State['inForce']): Snapshot {
  const snapshot = new Map<string, SnapshotObject>();
  for (const object of [...inForce.values()].flatMap(({ objects }) => objects ?? [])) {
    const key = snapshotKey(object);
    if (!snapshot.has(key)) snapshot.set(key, object);
  }
  return snapshot;
}

export function snapshotKey({ kind, value }: SnapshotObject): string {
  return kind === 'Node' ? `${kind} ${value.name}` : `${kind} ${objectKey(value.namespace, value.name)}`;
}

/** `isPresent` false: it was deleted. */
function emitObject(events: SourceEvents, object: SnapshotObject, isPresent: boolean): void {
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
async function readFiles({ files, hidden, problems }: FoundFiles, before: State): Promise<State> {
  const timeSlice = new TimeSlice(systemClock);
  const read = new Map<string, { readonly stamp: string; readonly parsed: ParsedText }>();
  for (const { path, stamp } of files) {
    const known = before.files.get(path);
    const isSame = stamp !== '' && known?.stamp === stamp;
    const content = isSame ? undefined : await readContent(path);
    timeSlice.begin();
    if (isSame) read.set(path, known);
    else if (content) read.set(path, { stamp, parsed: await runSliced(parseText(content, path), timeSlice) });
  }
  const after = resolve(read, before.inForce, hidden);
  return { ...after, problems: [...problems, ...after.problems] };
}

/** Never rejects: a path that does not exist is one of the problems. */
export async function loadManifests(paths: readonly string[]): Promise<Manifests> {
  return manifestsOf(await readFiles(await findFiles(paths), EMPTY));
}

/** The same for standard input. */
export async function readManifestStream(stream: AsyncIterable<Buffer>, name: string): Promise<Manifests> {
  return manifestsIn(await readStream(stream), name);
}

/** The same for one text; `name` stands for the file in problems. */
export function parseManifests(text: string, name = 'text'): Manifests {
  return manifestsIn({ text }, name);
}

function manifestsIn(content: Content, name: string): Manifests {
  return manifestsOf(resolve(new Map([[name, { stamp: '', parsed: runToEnd(parseText(content, name)) }]])));
}

/** After the first of several changes. */
const DEBOUNCE_MS = 100;
/** For file systems that do not notify of changes. */
const POLL_MS = 30_000;

export class ManifestSource implements Source {
  readonly #paths: readonly string[];
  /** By directory. */
  #watchers = new Map<string, FSWatcher | undefined>();
  #events: SourceEvents | undefined;
  #now = EMPTY;
  #timer: NodeJS.Timeout | undefined;
  #hasChanged = false;
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

  missing(service: ObjectKey): string | undefined {
    return this.#now.inForce.has(`Service ${service}`) ? undefined : `Service ${service} is in no manifest`;
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
    closeAll(this.#watchers);
  }

  refresh(): Promise<void> {
    return this.#readNext().catch((error: unknown) => {
      const message = `cannot be read again: ${messageOf(error)}`;
      this.#events?.report({ severity: 'error', where: this.#paths.join(', '), message });
      this.#readIn(POLL_MS);
    });
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

  async #read(): Promise<void> {
    if (!this.#events) return;
    clearTimeout(this.#timer);
    this.#hasChanged = false;
    // A directory that was replaced has the same path, and is another: each is watched anew, before it is read.
    const old = this.#watchers;
    this.#watchers = new Map();
    const found = await findFiles(this.#paths, (directory) => this.#watch(directory));
    closeAll(old);
    const after = await readFiles(found, this.#now);
    const message = `cannot be watched; changes may be noticed up to ${POLL_MS / 1000} s late`;
    const unwatched = [...this.#watchers].flatMap(([where, watcher]) =>
      watcher ? [] : [{ severity: 'warning', where, message } as const],
    );
    this.#emit({ ...after, problems: [...after.problems, ...unwatched] });
    if (!this.#hasChanged) this.#readIn(POLL_MS);
  }

  #emit(after: State): void {
    if (!this.#events) return;
    const known = new Set(this.#now.problems.map(printSourceProblem));
    const before = snapshotOf(this.#now.inForce);
    this.#now = after;
    for (const problem of after.problems)
      if (!known.has(printSourceProblem(problem))) this.#events.report(problem);
    emitDifference(this.#events, before, snapshotOf(after.inForce));
    this.#events.received?.();
  }

  #watch(directory: string): void {
    if (this.#watchers.has(directory)) return;
    try {
      const watcher = watch(directory, () => this.#changed());
      watcher.on('error', () => this.#changed());
      this.#watchers.set(directory, watcher);
    } catch (error) {
      if (!isGone(error)) this.#watchers.set(directory, undefined);
    }
  }

  #changed(): void {
    if (!this.#hasChanged) this.#readIn(DEBOUNCE_MS);
    this.#hasChanged = true;
  }

  #readIn(milliseconds: number): void {
    clearTimeout(this.#timer);
    if (!this.#events) return;
    this.#timer = setTimeout(() => void this.refresh(), milliseconds);
  }
}

function closeAll(watchers: ReadonlyMap<string, FSWatcher | undefined>): void {
  for (const watcher of watchers.values()) watcher?.close();
}

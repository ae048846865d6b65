/**
 * The manifests as they are on disk now, read again only where they changed: which object is used when one is defined
 * twice, what stays when there is no good version, and the events that lead from one snapshot to the next.
 */
import { relative } from 'node:path';
import { deepEqual } from '../../model/equal.ts';
import { type EndpointSlice, type Node, objectKey, type Service } from '../../model/objects.ts';
import type { SourceEvents, SourceProblem } from '../source.ts';
import type { ReadingOptions, SnapshotObject } from './chunkReading.ts';
import { type FileReading, keepReading, type PlacedDefinition, readManifest } from './fileReading.ts';
import { type Content, type FoundFile, readContent, readStream, type Scan, scan } from './scan.ts';

/** A sound object that is not for us. */
export interface IgnoredObject {
  readonly object: string;
  readonly where: string;
  readonly reason: string;
}

/** What all files together say. */
interface Resolution {
  readonly inForce: InForce;
  readonly snapshot: Snapshot;
  readonly problems: readonly SourceProblem[];
  readonly ignored: readonly IgnoredObject[];
  readonly places: ReadonlyMap<string, string>;
}

interface KnownFile {
  readonly stamp: string;
  /** Written long enough before it was read that an equal stamp means equal content. */
  readonly settled: boolean;
  readonly reading: FileReading;
}

/** Timestamps of a coarse file system; git calls files that are younger than this "racily clean". */
const SETTLING_MILLISECONDS = 2000;

export class ManifestStore {
  readonly #roots: readonly string[];
  readonly #options: ReadingOptions;
  #files: ReadonlyMap<string, KnownFile> = new Map();
  #inForce: InForce = new Map();

  constructor(roots: readonly string[], options: ReadingOptions = {}) {
    this.#roots = roots;
    this.#options = options;
  }

  async refresh(): Promise<Resolution & { readonly scan: Scan }> {
    const found = await scan(this.#roots);
    const files = new Map<string, KnownFile>();
    for (const file of found.files) {
      const known = await this.#read(file);
      if (known !== undefined) files.set(file.path, known);
    }
    for (const [path, known] of this.#files) {
      const isHidden = found.hidden.some((hidden) => !relative(hidden, path).startsWith('..'));
      if (isHidden && !files.has(path)) files.set(path, known);
    }
    this.#files = files;
    const readings = [...files.values()].map(({ reading }) => reading);
    const resolution = resolve(readings, this.#inForce);
    this.#inForce = resolution.inForce;
    return {
      ...resolution,
      problems: [...found.problems, ...resolution.problems],
      scan: found,
    };
  }

  async #read(file: FoundFile): Promise<KnownFile | undefined> {
    const before = this.#files.get(file.path);
    if (before?.settled && before.stamp === file.stamp) return before;
    const settled = Date.now() - file.modifiedAt > SETTLING_MILLISECONDS;
    const content = await readContent(file);
    if (content.kind === 'gone') return undefined;
    const reading = readingOf(file.path, content, this.#options, before?.reading);
    return { stamp: file.stamp, settled, reading };
  }
}

function readingOf(
  path: string,
  content: Content,
  options: ReadingOptions,
  before?: FileReading,
): FileReading {
  return content.kind === 'text'
    ? readManifest(path, content.text, before, options)
    : keepReading(content.problem, before);
}

/** By the id of the definition. */
type InForce = ReadonlyMap<string, readonly SnapshotObject[]>;

/** `files` in the order in which they win. */
function resolve(files: readonly FileReading[], before: InForce): Resolution {
  const all = files.flatMap(({ definitions }) => definitions);
  const byId = new Map<string, PlacedDefinition[]>();
  for (const definition of all) {
    const others = byId.get(definition.id);
    if (others) others.push(definition);
    else byId.set(definition.id, [definition]);
  }
  const inForce = new Map<string, readonly SnapshotObject[]>();
  const duplicates: SourceProblem[] = [];
  const places = new Map<string, string>();
  for (const [id, definitions] of byId) {
    const winner = choose(definitions);
    inForce.set(id, winner?.objects ?? before.get(id) ?? []);
    if (winner) places.set(id, winner.where);
    if (winner && definitions.length > 1) duplicates.push(...unusedDefinitions(winner, definitions));
  }
  return {
    inForce,
    snapshot: snapshotOf(inForce),
    problems: [...files.flatMap(({ problems }) => problems), ...duplicates],
    ignored: all.flatMap(({ id, where, reason }) =>
      reason === undefined ? [] : [{ object: id, where, reason }],
    ),
    places,
  };
}

/** The first that says something; what a broken file once said only when no other file says it now. */
function choose(definitions: readonly PlacedDefinition[]): PlacedDefinition | undefined {
  const usable = definitions.filter(({ state, objects }) => state !== 'bad' || objects.length > 0);
  return usable.find(({ carried }) => !carried) ?? usable[0];
}

function unusedDefinitions(winner: PlacedDefinition, all: readonly PlacedDefinition[]): SourceProblem[] {
  const message = `is also defined at ${winner.where}, and that one is used`;
  const expected = 'each object once';
  return all
    .filter((definition) => definition !== winner && !definition.carried)
    .map(({ id, where }) => ({ severity: 'warning', where, object: id, message, expected }));
}

/** Two ids can make the same object only when a slice has the name that we give to a subset of Endpoints. */
function snapshotOf(inForce: InForce): Snapshot {
  const snapshot = new Map<string, SnapshotObject>();
  for (const object of [...inForce.values()].flat()) {
    const key = snapshotKey(object);
    if (!snapshot.has(key)) snapshot.set(key, object);
  }
  return snapshot;
}

/** By `snapshotKey`. */
export type Snapshot = ReadonlyMap<string, SnapshotObject>;

export function snapshotKey({ kind, value }: SnapshotObject): string {
  return kind === 'Node' ? `${kind} ${value.name}` : `${kind} ${objectKey(value.namespace, value.name)}`;
}

/** `isPresent` false: it was deleted. */
export function emitObject(events: SourceEvents, object: SnapshotObject, isPresent: boolean): void {
  const { kind, value } = object;
  if (kind === 'Node') events.node(value.name, isPresent ? value : undefined);
  else {
    const key = objectKey(value.namespace, value.name);
    if (kind === 'Service') events.service(key, isPresent ? value : undefined);
    else events.endpointSlice(key, isPresent ? value : undefined);
  }
}

export function emitDifference(events: SourceEvents, before: Snapshot, after: Snapshot): void {
  for (const [key, object] of before) if (!after.has(key)) emitObject(events, object, false);
  for (const [key, object] of after)
    if (!deepEqual(before.get(key), object)) emitObject(events, object, true);
}

export interface Manifests {
  readonly services: readonly Service[];
  readonly slices: readonly EndpointSlice[];
  readonly nodes: readonly Node[];
  readonly problems: readonly SourceProblem[];
  /** Services and slices that are not for a proxy, each with the reason. */
  readonly ignored: readonly IgnoredObject[];
  /** `file:line:column` of each object that is used, by `Service shop/web`. Empty where no files are read. */
  readonly places: ReadonlyMap<string, string>;
}

/** Never rejects: a path that does not exist is one of the problems. */
export async function loadManifests(
  paths: readonly string[],
  options: ReadingOptions = {},
): Promise<Manifests> {
  return byKind(await new ManifestStore(paths, options).refresh());
}

/** The same for standard input. */
export async function readManifestStream(
  stream: AsyncIterable<Buffer>,
  name: string,
  options: ReadingOptions = {},
): Promise<Manifests> {
  return byKind(resolve([readingOf(name, await readStream(name, stream), options)], new Map()));
}

/** The same for one text; `name` stands for the file in problems. */
export function parseManifests(text: string, name = 'text', options: ReadingOptions = {}): Manifests {
  return byKind(resolve([readManifest(name, text, undefined, options)], new Map()));
}

function byKind({ snapshot, problems, ignored, places }: Resolution): Manifests {
  const services: Service[] = [];
  const slices: EndpointSlice[] = [];
  const nodes: Node[] = [];
  for (const object of snapshot.values()) {
    if (object.kind === 'Service') services.push(object.value);
    else if (object.kind === 'EndpointSlice') slices.push(object.value);
    else nodes.push(object.value);
  }
  return { services, slices, nodes, problems, ignored, places };
}

/** Objects with versions, and what happened to them lately. Each object is held once, as the bytes that are sent. */
import { encodedOrNothing } from './protobuf/encode.ts';
import { resourceOfKind, type ServedResource } from './resources.ts';

export interface RawObject {
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly [field: string]: unknown;
  };
  readonly [field: string]: unknown;
}

export interface Entry {
  readonly key: string;
  readonly revision: number;
  /** Without kind and apiVersion, as items of a list are. */
  readonly json: Buffer;
  /** The same as protobuf. Nothing: a real server could not hold such an object. */
  readonly protobuf: Buffer | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly fields: Readonly<Record<string, string>>;
}

export interface Change {
  readonly revision: number;
  readonly before: Entry | undefined;
  readonly after: Entry | undefined;
}

interface Table {
  readonly entries: Map<string, Entry>;
  readonly history: Change[];
  /** No object of it was ever one that protobuf cannot say. */
  isEncodable: boolean;
}

export class ObjectStore {
  revision: number;
  /** Changes up to this revision are forgotten. */
  compacted: number;
  readonly #window: number;
  readonly #tables = new Map<string, Table>();
  readonly #listeners = new Map<string, Set<(change: Change) => void>>();

  constructor(revision = 100, window = 1000) {
    this.revision = revision;
    this.compacted = revision;
    this.#window = window;
  }

  /** Whether it can be listed and watched as protobuf. */
  isEncodable(resource: ServedResource): boolean {
    return this.#table(resource).isEncodable;
  }

  put(raw: RawObject): void {
    const resource = resourceOfKind(raw.kind);
    const { entries } = this.#table(resource);
    this.revision++;
    const entry = toEntry(raw, this.revision);
    const before = entries.get(entry.key);
    entries.set(entry.key, entry);
    this.#record(resource, { revision: this.revision, before, after: entry });
  }

  delete(kind: string, key: string): void {
    const resource = resourceOfKind(kind);
    const { entries } = this.#table(resource);
    const before = entries.get(key);
    if (before === undefined) throw new Error(`there is no ${kind} ${key}`);
    this.revision++;
    entries.delete(key);
    this.#record(resource, { revision: this.revision, before, after: undefined });
  }

  /** In the order of etcd. */
  list(resource: ServedResource): readonly Entry[] {
    return sorted(this.#table(resource).entries.values());
  }

  /** As it was, for as long as the changes since then are remembered. */
  listAt(resource: ServedResource, revision: number): readonly Entry[] {
    const entries = new Map(this.#table(resource).entries);
    for (const { before, after } of [...this.since(resource, revision)].reverse()) {
      if (after !== undefined) entries.delete(after.key);
      if (before !== undefined) entries.set(before.key, before);
    }
    return sorted(entries.values());
  }

  since(resource: ServedResource, revision: number): readonly Change[] {
    return this.#table(resource).history.filter((change) => change.revision > revision);
  }

  subscribe(resource: ServedResource, listener: (change: Change) => void): () => void {
    const listeners = this.#listeners.get(resource.name) ?? new Set();
    this.#listeners.set(resource.name, listeners);
    listeners.add(listener);
    return () => listeners.delete(listener);
  }

  compact(): void {
    this.compacted = this.revision;
    for (const { history } of this.#tables.values()) history.length = 0;
  }

  /** All else, as if etcd had been restored from a backup. */
  replace(objects: readonly RawObject[], revision: number): void {
    this.#tables.clear();
    this.revision = revision;
    this.compacted = revision;
    for (const raw of objects) {
      const entry = toEntry(raw, revision);
      const table = this.#table(resourceOfKind(raw.kind));
      table.entries.set(entry.key, entry);
      if (entry.protobuf === undefined) table.isEncodable = false;
    }
  }

  #table(resource: ServedResource): Table {
    const known = this.#tables.get(resource.name);
    if (known !== undefined) return known;
    const table: Table = { entries: new Map(), history: [], isEncodable: true };
    this.#tables.set(resource.name, table);
    return table;
  }

  #record(resource: ServedResource, change: Change): void {
    const table = this.#table(resource);
    const { history } = table;
    if (change.after !== undefined && change.after.protobuf === undefined) table.isEncodable = false;
    history.push(change);
    const forgotten = history.length > this.#window ? history.shift() : undefined;
    if (forgotten !== undefined) this.compacted = Math.max(this.compacted, forgotten.revision);
    for (const listener of this.#listeners.get(resource.name) ?? []) listener(change);
  }
}

function sorted(entries: Iterable<Entry>): readonly Entry[] {
  return [...entries].sort((a, b) => (a.key < b.key ? -1 : 1));
}

function toEntry(raw: RawObject, revision: number): Entry {
  const { kind: _kind, apiVersion: _apiVersion, metadata, ...rest } = raw;
  const { namespace, name, labels } = metadata;
  const object = { metadata: { ...metadata, resourceVersion: String(revision) }, ...rest };
  const spec = raw['spec'] as
    | Readonly<Record<'clusterIP' | 'type' | 'nodeName', string | undefined>>
    | undefined;
  return {
    key: namespace === undefined ? name : `${namespace}/${name}`,
    revision,
    json: Buffer.from(JSON.stringify(object)),
    protobuf: encodedOrNothing(raw.kind, object),
    labels: labels ?? {},
    fields: {
      'metadata.name': name,
      'metadata.namespace': namespace ?? '',
      'spec.clusterIP': spec?.clusterIP ?? '',
      'spec.type': spec?.type ?? '',
      'spec.nodeName': spec?.nodeName ?? '',
    },
  };
}

/** The same object at another version: what a watch sends when an object is deleted, or leaves its selector. */
export function atRevision(kind: string, entry: Entry, revision: number): Entry {
  const raw = JSON.parse(entry.json.toString('utf8')) as Omit<RawObject, 'kind'>;
  return toEntry({ ...raw, kind, metadata: raw.metadata as RawObject['metadata'] }, revision);
}

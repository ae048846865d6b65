/** A source that holds what a test gives it. */
import { deepEqual } from '../../src/model/equal.ts';
import {
  type EndpointSlice,
  type Node,
  type ObjectKey,
  objectKey,
  type Service,
} from '../../src/model/objects.ts';
import { printSourceProblem, type Source, type SourceEvents } from '../../src/sources/source.ts';
import type { SnapshotObject } from '../../src/sources/manifests/parse.ts';
import { emitObject, parseManifests, snapshotKey } from '../../src/sources/manifests/source.ts';

export class MemorySource implements Source {
  readonly #snapshot = new Map<string, SnapshotObject>();
  #events: SourceEvents | undefined;

  async start(events: SourceEvents): Promise<void> {
    this.#events = events;
    for (const object of this.#snapshot.values()) emitObject(events, object, true);
    events.synced();
  }

  async stop(): Promise<void> {
    this.#events = undefined;
  }

  setService(service: Service): void {
    this.#set({ kind: 'Service', value: service });
  }

  setEndpointSlice(slice: EndpointSlice): void {
    this.#set({ kind: 'EndpointSlice', value: slice });
  }

  setNode(node: Node): void {
    this.#set({ kind: 'Node', value: node });
  }

  deleteService(key: ObjectKey): void {
    this.#delete(`Service ${key}`);
  }

  deleteEndpointSlice(namespace: string, name: string): void {
    this.#delete(`EndpointSlice ${objectKey(namespace, name)}`);
  }

  deleteNode(name: string): void {
    this.#delete(`Node ${name}`);
  }

  /** Sets every object of a YAML or JSON text, like `kubectl apply`. Throws when anything in it is wrong. */
  apply(text: string): void {
    for (const object of objectsOf(text)) this.#set(object);
  }

  /** Deletes every object of a text, like `kubectl delete`. */
  delete(text: string): void {
    for (const object of objectsOf(text)) this.#delete(snapshotKey(object));
  }

  #set(object: SnapshotObject): void {
    const key = snapshotKey(object);
    if (deepEqual(this.#snapshot.get(key), object)) return;
    this.#snapshot.set(key, object);
    if (this.#events) emitObject(this.#events, object, true);
  }

  #delete(key: string): void {
    const object = this.#snapshot.get(key);
    if (!this.#snapshot.delete(key) || object === undefined) return;
    if (this.#events) emitObject(this.#events, object, false);
  }
}

function objectsOf(text: string): readonly SnapshotObject[] {
  const { services, slices, nodes, problems } = parseManifests(text);
  if (problems.length > 0) throw new Error(problems.map(printSourceProblem).join('\n'));
  return [
    ...nodes.map((value): SnapshotObject => ({ kind: 'Node', value })),
    ...services.map((value): SnapshotObject => ({ kind: 'Service', value })),
    ...slices.map((value): SnapshotObject => ({ kind: 'EndpointSlice', value })),
  ];
}

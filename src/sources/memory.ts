/** A source that holds what a test gives it. */
import { type EndpointSlice, type Node, type ObjectKey, objectKey, type Service } from '../model/objects.ts';
import { parseManifests } from './manifests/load.ts';
import { printSourceProblem, type Source, type SourceEvents } from './source.ts';
import { sameObject, tell, type WorldObject, worldKey } from './world.ts';

export class MemorySource implements Source {
  readonly #world = new Map<string, WorldObject>();
  #events: SourceEvents | undefined;

  async start(events: SourceEvents): Promise<void> {
    this.#events = events;
    for (const object of this.#world.values()) tell(events, object, true);
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
    for (const object of objectsOf(text)) this.#delete(worldKey(object));
  }

  #set(object: WorldObject): void {
    const key = worldKey(object);
    if (sameObject(this.#world.get(key), object)) return;
    this.#world.set(key, object);
    if (this.#events) tell(this.#events, object, true);
  }

  #delete(key: string): void {
    const object = this.#world.get(key);
    if (!this.#world.delete(key) || object === undefined) return;
    if (this.#events) tell(this.#events, object, false);
  }
}

function objectsOf(text: string): readonly WorldObject[] {
  const { services, slices, nodes, problems } = parseManifests(text);
  if (problems.length > 0) throw new Error(problems.map(printSourceProblem).join('\n'));
  return [
    ...nodes.map((value): WorldObject => ({ kind: 'Node', value })),
    ...services.map((value): WorldObject => ({ kind: 'Service', value })),
    ...slices.map((value): WorldObject => ({ kind: 'EndpointSlice', value })),
  ];
}

/** The objects of all manifests in one map, and the events that lead from one map to the next. */
import { deepEqual } from '../../model/equal.ts';
import { type EndpointSlice, type Node, objectKey, type Service } from '../../model/objects.ts';
import type { SourceEvents } from '../source.ts';

export type SnapshotObject =
  | { readonly kind: 'Service'; readonly value: Service }
  | { readonly kind: 'EndpointSlice'; readonly value: EndpointSlice }
  | { readonly kind: 'Node'; readonly value: Node };

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

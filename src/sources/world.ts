/** Objects of any kind in one map, and the events that lead from one map to the next. */
import { isDeepStrictEqual } from 'node:util';
import { type EndpointSlice, type Node, objectKey, type Service } from '../model/objects.ts';
import type { SourceEvents } from './source.ts';

export type WorldObject =
  | { readonly kind: 'Service'; readonly value: Service }
  | { readonly kind: 'EndpointSlice'; readonly value: EndpointSlice }
  | { readonly kind: 'Node'; readonly value: Node };

/** By `worldKey`. */
export type World = ReadonlyMap<string, WorldObject>;

export function worldKey({ kind, value }: WorldObject): string {
  return kind === 'Node' ? `${kind} ${value.name}` : `${kind} ${objectKey(value.namespace, value.name)}`;
}

export function sameObject(one: WorldObject | undefined, other: WorldObject | undefined): boolean {
  return one === other || isDeepStrictEqual(one, other);
}

export function tell(events: SourceEvents, object: WorldObject, present: boolean): void {
  switch (object.kind) {
    case 'Service':
      events.service(
        objectKey(object.value.namespace, object.value.name),
        present ? object.value : undefined,
      );
      break;
    case 'EndpointSlice':
      events.endpointSlice(object.value.namespace, object.value.name, present ? object.value : undefined);
      break;
    case 'Node':
      events.node(object.value.name, present ? object.value : undefined);
      break;
  }
}

export function tellDifference(events: SourceEvents, before: World, after: World): void {
  for (const [key, object] of before) if (!after.has(key)) tell(events, object, false);
  for (const [key, object] of after) if (!sameObject(before.get(key), object)) tell(events, object, true);
}

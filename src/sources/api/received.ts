/** One object of a list or a watch, as it came: what it is called, and how it is checked. */
import { objectKey } from '../../model/objects.ts';
import { ownField, ownText, type Projection } from '../../text/cursor.ts';

export interface ReceivedObject<T> {
  /** `shop/web`, or `node1` for what has no namespace. Nothing: it does not say. */
  readonly key: string | undefined;
  /** '' where it has none. */
  readonly resourceVersion: string;
  readonly hasVersion: boolean;
  /** It carries the mark of the bookmark after the last object of a streamed list. */
  readonly endsInitialEvents: boolean;
  /** It could not be decoded, so that without a key nobody knows which object it is. */
  readonly isBroken: boolean;
  readonly project: () => Projection<T>;
}

export const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';

/** Of a raw object, as JSON has it. */
export function receivedObject<T>(raw: unknown, project: (raw: unknown) => Projection<T>): ReceivedObject<T> {
  const metadata = ownField(raw, 'metadata');
  const resourceVersion = ownText(metadata, 'resourceVersion');
  return {
    key: keyOf(metadata),
    resourceVersion,
    hasVersion: resourceVersion !== '',
    endsInitialEvents: ownField(ownField(metadata, 'annotations'), INITIAL_EVENTS_END) === 'true',
    isBroken: false,
    project: () => project(raw),
  };
}

/** Of what was decoded before the failure. */
export function brokenObject<T>(raw: unknown, kind: string, reason: string): ReceivedObject<T> {
  const problem = {
    path: [],
    message: `the object cannot be decoded: ${reason}`,
    expected: `a ${kind} as protobuf`,
  };
  return {
    ...receivedObject<T>(raw, () => ({ kind: 'invalid', problems: [problem] })),
    isBroken: true,
  };
}

function keyOf(metadata: unknown): string | undefined {
  const name = ownText(metadata, 'name');
  const namespace = ownField(metadata, 'namespace') ?? '';
  if (name === '' || typeof namespace !== 'string') return undefined;
  return namespace === '' ? name : objectKey(namespace, name);
}

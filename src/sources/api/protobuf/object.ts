/** An object's bytes as a received object. What cannot be decoded harms no other object. */
import type { Problem, Projection } from '../../../text/cursor.ts';
import { ApiFailure, malformedAnswer } from '../failure.ts';
import { brokenObject, type ReceivedObject, receivedObject } from '../received.ts';
import type { Resource } from '../resources.ts';
import { decode, decodeInto, type DecodedFields } from './decode.ts';
import { openEnvelope } from './envelope.ts';
import { OBJECTS, STATUS } from './messages.ts';
import type { StraightObject } from './straightReader.ts';

type ReadAs<T> = Pick<Resource<T>, 'kind' | 'project' | 'readStraight'>;

export function decodeObject<T>(bytes: Uint8Array, resource: ReadAs<T>): ReceivedObject<T> {
  const straight = resource.readStraight?.(bytes);
  return straight === undefined ? decodeRaw(bytes, resource) : new StraightlyReceived(straight);
}

class StraightlyReceived<T> implements ReceivedObject<T> {
  readonly key: string;
  readonly resourceVersion: string;
  readonly endsInitialEvents = false;
  readonly isBroken = false;
  readonly #value: T;

  constructor({ key, resourceVersion, value }: StraightObject<T>) {
    this.key = key;
    this.resourceVersion = resourceVersion;
    this.#value = value;
  }

  project(): Projection<T> {
    return { kind: 'object', value: this.#value, warnings: NO_WARNINGS };
  }
}

const NO_WARNINGS: readonly Problem[] = [];

/** The way on which everything that is wrong is noted. */
function decodeRaw<T>(bytes: Uint8Array, { kind, project }: ReadAs<T>): ReceivedObject<T> {
  const message = OBJECTS[kind];
  if (message === undefined) throw malformedAnswer(`${kind} is not read as protobuf`);
  const raw: DecodedFields = {};
  try {
    decodeInto(raw, message, bytes);
  } catch (error) {
    if (!(error instanceof ApiFailure)) throw error;
    return brokenObject(raw, kind, error.message);
  }
  return receivedObject(raw, project);
}

/** A Status with its envelope, as an answer or the object of a watch event; nothing for something else. */
export function decodeStatus(bytes: Uint8Array): unknown {
  try {
    const { kind, raw } = openEnvelope(bytes);
    return kind === 'Status' ? decode(STATUS, raw) : undefined;
  } catch (error) {
    if (error instanceof ApiFailure) return undefined;
    throw error;
  }
}

/** An object's bytes as a received object. What cannot be decoded harms no other object. */
import { ApiFailure, malformedAnswer } from '../failure.ts';
import { brokenObject, type ReceivedObject, receivedObject } from '../received.ts';
import type { Resource } from '../resources.ts';
import { decode, decodeInto, type DecodedFields } from './decode.ts';
import { openEnvelope } from './envelope.ts';
import { OBJECTS, STATUS } from './messages.ts';

type ReadAs<T> = Pick<Resource<T>, 'kind' | 'project' | 'readStraight'>;

/** Of this part of the bytes; without one, of all of them. */
export function decodeObject<T>(
  bytes: Uint8Array,
  resource: ReadAs<T>,
  from = 0,
  end = bytes.length,
): ReceivedObject<T> {
  const straight = resource.readStraight?.(bytes, from, end);
  return straight ?? decodeRaw(bytes.subarray(from, end), resource);
}

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
    const { kind, from, end } = openEnvelope(bytes);
    return kind === 'Status' ? decode(STATUS, bytes.subarray(from, end)) : undefined;
  } catch (error) {
    if (error instanceof ApiFailure) return undefined;
    throw error;
  }
}

/** An object's bytes as a received object. What cannot be decoded harms no other object. */
import type { Projection } from '../../../text/cursor.ts';
import { ApiFailure, malformedAnswer } from '../failure.ts';
import { brokenObject, type ReceivedObject, receivedObject } from '../received.ts';
import { decode, decodeInto, type DecodedFields } from './decode.ts';
import { openEnvelope } from './envelope.ts';
import { OBJECTS, STATUS } from './messages.ts';

interface ReadAs<T> {
  /** `Service` */
  readonly kind: string;
  readonly project: (raw: unknown) => Projection<T>;
}

export function decodeObject<T>(bytes: Uint8Array, { kind, project }: ReadAs<T>): ReceivedObject<T> {
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

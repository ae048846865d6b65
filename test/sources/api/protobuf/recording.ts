/** Bodies of answers, read in pieces, as a slow network would bring them. */
import { readFileSync } from 'node:fs';
import {
  type Encoding,
  frameReader,
  listReader,
  type WatchFrame,
} from '../../../../src/sources/api/encoding.ts';
import type { ReceivedObject } from '../../../../src/sources/api/received.ts';
import type { Resource } from '../../../../src/sources/api/resources.ts';
import type { ListEnvelope } from '../../../../src/sources/api/split.ts';

/** The body of an answer of kube-apiserver 1.36.4, byte for byte. */
export function recording(name: string): Buffer {
  return readFileSync(new URL(`recordings/${name}`, import.meta.url));
}

/** All that can be known of a received object. */
export function seen<T>(received: ReceivedObject<T>): object {
  const { key, resourceVersion, endsInitialEvents, isBroken } = received;
  return { key, resourceVersion, endsInitialEvents, isBroken, projection: received.project() };
}

export interface ReadList<T> {
  readonly objects: readonly ReceivedObject<T>[];
  readonly envelope: ListEnvelope;
}

export function readList<T>(
  encoding: Encoding,
  resource: Resource<T>,
  bytes: Uint8Array,
  size = bytes.length + 1,
): ReadList<T> {
  const objects: ReceivedObject<T>[] = [];
  const reader = listReader(encoding, resource, (object) => objects.push(object));
  for (let from = 0; from < bytes.length; from += size) reader.push(bytes.subarray(from, from + size));
  return { objects, envelope: reader.end() };
}

export function readWatch<T>(
  encoding: Encoding,
  resource: Resource<T>,
  bytes: Uint8Array,
  size = bytes.length + 1,
): readonly WatchFrame<T>[] {
  const frames: WatchFrame<T>[] = [];
  const reader = frameReader(encoding, resource, 'watching');
  for (let from = 0; from < bytes.length; from += size)
    reader.push(bytes.subarray(from, from + size), (frame) => frames.push(frame));
  reader.end();
  return frames;
}

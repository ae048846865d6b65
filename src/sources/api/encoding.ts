/** The two encodings of lists and watches: which one is asked for, and how each is read while it arrives. */
import { isMap, ownField } from '../../text/cursor.ts';
import { failureOfStatus, malformedAnswer, parseJson } from './failure.ts';
import { openEnvelope } from './protobuf/envelope.ts';
import { FrameSplitter, readWatchEvent } from './protobuf/frames.ts';
import { ListSplitter } from './protobuf/list.ts';
import { decodeObject, decodeStatus } from './protobuf/object.ts';
import { type ReceivedObject, receivedObject } from './received.ts';
import type { Resource } from './resources.ts';
import { LineSplitter, type ListEnvelope, MOST_LIST_BYTES, Parts, readList } from './split.ts';

export type Encoding = 'protobuf' | 'json';

const PROTOBUF = 'application/vnd.kubernetes.protobuf';
const JSON_TYPE = 'application/json';

/**
 * The encodings that may be asked for, the best first, by the settings `contentType` and `acceptContentTypes`. The
 * second wins where it is given. JSON is always among them: every server has it.
 */
export function wantedEncoding(contentType: string, acceptContentTypes: string): Encoding {
  const types = (acceptContentTypes || contentType).split(',').map(readMediaRange);
  const quality = (type: string): number =>
    Math.max(0, ...types.map((range) => (range.type === type ? range.q : 0)));
  const protobuf = quality(PROTOBUF);
  return protobuf > 0 && protobuf >= quality(JSON_TYPE) ? 'protobuf' : 'json';
}

function readMediaRange(text: string): { readonly type: string; readonly q: number } {
  const [type = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase());
  const q = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
  return { type, q: q === undefined ? 1 : Number(q) || 0 };
}

/** The header `Accept`. A server that has no protobuf answers JSON. */
export function acceptHeader(encoding: Encoding): string {
  return encoding === 'protobuf' ? `${PROTOBUF}, ${JSON_TYPE}` : JSON_TYPE;
}

/** What the header `Content-Type` says. Whatever is not protobuf is read as JSON, and refused there. */
export function encodingOf(contentType: string | undefined): Encoding {
  return readMediaRange(contentType ?? '').type === PROTOBUF ? 'protobuf' : 'json';
}

interface ListReader {
  readonly push: (chunk: Uint8Array) => void;
  /** Call at the end of the body. */
  readonly end: () => ListEnvelope;
}

/** `take` is called with each item, which is good until the next chunk. */
export function listReader<T>(
  encoding: Encoding,
  resource: Resource<T>,
  take: (item: ReceivedObject<T>) => void,
): ListReader {
  if (encoding === 'protobuf') {
    const splitter = new ListSplitter();
    return {
      push: (chunk) =>
        splitter.push(chunk, (bytes, from, end) => take(decodeObject(bytes, resource, from, end))),
      end: () => splitter.end(),
    };
  }
  const body = new Parts('the list', MOST_LIST_BYTES);
  return {
    push: (chunk) => body.add(chunk),
    end: () => {
      const { items, envelope } = readList(body.take());
      for (const item of items) take(receivedObject(item, resource.project));
      return envelope;
    },
  };
}

export interface WatchFrame<T> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  readonly object: ReceivedObject<T>;
}

interface FrameReader<T> {
  /**
   * `take` is called with each frame that this chunk completes, but for those that a newer server may send and this version
   * does not know. It is good until the next chunk.
   */
  readonly push: (chunk: Uint8Array, take: (frame: WatchFrame<T>) => void) => void;
  /** Call at the end of the body. */
  readonly end: () => void;
}

/** `what`: for messages. */
export function frameReader<T>(encoding: Encoding, resource: Resource<T>, what: string): FrameReader<T> {
  if (encoding === 'protobuf') {
    const splitter = new FrameSplitter();
    return {
      push(chunk, take) {
        splitter.push(chunk, (bytes, from, end) => {
          const frame = readProtobufFrame(bytes, from, end, resource, what);
          if (frame !== undefined) take(frame);
        });
      },
      end: () => splitter.end(),
    };
  }
  const splitter = new LineSplitter();
  return {
    push(chunk, take) {
      for (const line of splitter.push(chunk)) {
        const frame = readJsonFrame(line, resource, what);
        if (frame !== undefined) take(frame);
      }
    },
    end: () => splitter.end(),
  };
}

function readProtobufFrame<T>(
  bytes: Uint8Array,
  frameFrom: number,
  frameEnd: number,
  resource: Resource<T>,
  what: string,
): WatchFrame<T> | undefined {
  const { type, from, end } = readWatchEvent(bytes, frameFrom, frameEnd);
  if (type === 'ERROR') throw failureOfStatus(decodeStatus(bytes.subarray(from, end)), 500, what);
  const inner = openEnvelope(bytes, from, end);
  if (!isKnown(type) || (inner.kind || resource.kind) !== resource.kind) return undefined;
  return withVersion({ type, object: decodeObject(bytes, resource, inner.from, inner.end) }, what);
}

function readJsonFrame<T>(
  line: string,
  { kind, project }: Resource<T>,
  what: string,
): WatchFrame<T> | undefined {
  const raw = parseJson(line, `${what}: a frame`);
  const type = ownField(raw, 'type');
  const object = ownField(raw, 'object');
  if (typeof type !== 'string' || !isMap(object))
    throw malformedAnswer(`${what}: a frame is not a watch event`);
  if (type === 'ERROR') throw failureOfStatus(object, 500, what);
  if (!isKnown(type) || (ownField(object, 'kind') ?? kind) !== kind) return undefined;
  return withVersion({ type, object: receivedObject(object, project) }, what);
}

function isKnown(type: string): type is WatchFrame<unknown>['type'] {
  return type === 'ADDED' || type === 'MODIFIED' || type === 'DELETED' || type === 'BOOKMARK';
}

function withVersion<T>(frame: WatchFrame<T>, what: string): WatchFrame<T> {
  if (!frame.object.hasVersion) throw malformedAnswer(`${what}: an event has no resourceVersion`);
  return frame;
}

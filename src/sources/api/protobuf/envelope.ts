/** What stands around an object in Kubernetes' protobuf: four bytes, and a `runtime.Unknown` that names its kind. */
import { malformedAnswer } from '../failure.ts';
import { BYTES, WireReader } from './wire.ts';

/** `k8s` and a zero. */
export const MAGIC = Buffer.from('k8s\0');

/** Of `runtime.Unknown`: tags of the fields. */
export const TYPE = (1 << 3) | BYTES;
export const RAW = (2 << 3) | BYTES;
export const CONTENT_ENCODING = (3 << 3) | BYTES;
/** Of `TypeMeta`. */
const KIND = (2 << 3) | BYTES;

interface Enveloped {
  readonly kind: string;
  /** The object. A part of what was given. */
  readonly raw: Buffer;
}

const reader = new WireReader();

export function openEnvelope(bytes: Uint8Array): Enveloped {
  reader.load(bytes);
  try {
    if (!reader.isAt(MAGIC, 0, Math.min(MAGIC.length, bytes.length)))
      throw malformedAnswer("it does not begin as Kubernetes' protobuf does");
    reader.at = MAGIC.length;
    return readUnknown();
  } finally {
    reader.unload();
  }
}

function readUnknown(): Enveloped {
  let kind = '';
  let raw: Buffer | undefined;
  while (reader.at < reader.end) {
    const tag = reader.tag();
    if (tag === TYPE) kind = readKind();
    else if (tag === RAW) raw = readBytes();
    else if (tag === CONTENT_ENCODING) refuseEncoding(readBytes());
    else reader.skip(tag & 7);
  }
  if (raw === undefined) throw malformedAnswer('there is no object in it');
  return { kind, raw };
}

function readBytes(): Buffer {
  const end = reader.valueEnd();
  const value = reader.bytes.subarray(reader.at, end);
  reader.at = end;
  return value;
}

/** Of a `TypeMeta` that begins here with its length. */
function readKind(): string {
  const outer = reader.enter();
  let kind = '';
  while (reader.at < reader.end) {
    const tag = reader.tag();
    if (tag === KIND) kind = reader.sharedText();
    else reader.skip(tag & 7);
  }
  reader.end = outer;
  return kind;
}

/** No server uses it; if one does, what is inside is something else than it seems. */
export function refuseEncoding(value: Uint8Array): void {
  if (value.length > 0) throw malformedAnswer('its content is encoded once more');
}

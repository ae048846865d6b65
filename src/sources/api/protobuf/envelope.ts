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
  /** Where the object is. */
  readonly from: number;
  readonly end: number;
}

const reader = new WireReader();

/** Of this part of the bytes; without one, of all of them. */
export function openEnvelope(bytes: Uint8Array, from = 0, end = bytes.length): Enveloped {
  reader.load(bytes, from, end);
  try {
    if (!reader.isAt(MAGIC, from, Math.min(from + MAGIC.length, end)))
      throw malformedAnswer("it does not begin as Kubernetes' protobuf does");
    reader.at += MAGIC.length;
    return readUnknown();
  } finally {
    reader.unload();
  }
}

function readUnknown(): Enveloped {
  let kind = '';
  let from: number | undefined;
  let end = 0;
  while (reader.at < reader.end) {
    const tag = reader.tag();
    if (tag === TYPE) {
      kind = readKind();
    } else if (tag === RAW) {
      end = reader.valueEnd();
      from = reader.at;
      reader.at = end;
    } else if (tag === CONTENT_ENCODING) {
      const valueEnd = reader.valueEnd();
      refuseEncoding(valueEnd - reader.at);
      reader.at = valueEnd;
    } else {
      reader.skip(tag & 7);
    }
  }
  if (from === undefined) throw malformedAnswer('there is no object in it');
  return { kind, from, end };
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
export function refuseEncoding(length: number): void {
  if (length > 0) throw malformedAnswer('its content is encoded once more');
}

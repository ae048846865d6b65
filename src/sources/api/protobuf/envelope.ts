/** What stands around an object in Kubernetes' protobuf: four bytes, and a `runtime.Unknown` that names its kind. */
import { malformedAnswer } from '../failure.ts';
import { ownText } from '../../../text/cursor.ts';
import { decode } from './decode.ts';
import { TYPE_META } from './messages.ts';
import { BYTES, WireReader } from './wire.ts';

/** `k8s` and a zero. */
export const MAGIC = Buffer.from('k8s\0');

/** Of `runtime.Unknown`: tags of the fields. */
export const TYPE = (1 << 3) | BYTES;
export const RAW = (2 << 3) | BYTES;
export const CONTENT_ENCODING = (3 << 3) | BYTES;

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
    if (tag !== TYPE && tag !== RAW && tag !== CONTENT_ENCODING) {
      reader.skip(tag & 7);
      continue;
    }
    const end = reader.valueEnd();
    const value = reader.bytes.subarray(reader.at, end);
    reader.at = end;
    if (tag === TYPE) kind = kindIn(value);
    else if (tag === RAW) raw = value;
    else refuseEncoding(value);
  }
  if (raw === undefined) throw malformedAnswer('there is no object in it');
  return { kind, raw };
}

export function kindIn(typeMeta: Uint8Array): string {
  return ownText(decode(TYPE_META, typeMeta), 'kind');
}

/** No server uses it; if one does, what is inside is something else than it seems. */
export function refuseEncoding(value: Uint8Array): void {
  if (value.length > 0) throw malformedAnswer('its content is encoded once more');
}

/** D-Bus messages, as far as a listener for signals needs them: bodies of texts and numbers, little-endian. */
const TYPES = ['unknown', 'call', 'return', 'error', 'signal'] as const;
/** By code. */
const FIELDS = [
  undefined,
  { name: 'path', type: 'o' },
  { name: 'interface', type: 's' },
  { name: 'member', type: 's' },
  undefined,
  { name: 'replySerial', type: 'u' },
  { name: 'destination', type: 's' },
  { name: 'sender', type: 's' },
  { name: 'signature', type: 'g' },
] as const;
type FieldName = NonNullable<(typeof FIELDS)[number]>['name'];
const HEAD_BYTES = 16;
/** A message to a service must not start it. */
const NO_AUTO_START = 2;
const VERSION = 1;
/** The protocol allows 128 MiB; what a listener waits for is short. */
const MAX_BYTES = 1 << 20;

type Value = string | number;

export interface DbusMessage extends Partial<Record<Exclude<FieldName, 'signature'>, Value>> {
  readonly type: (typeof TYPES)[number];
  readonly serial: number;
  /** Up to the first value that is neither a text nor a number. */
  readonly body: readonly Value[];
}

export function encodeMessage(message: DbusMessage): Buffer {
  const types = message.body.map((value) => (typeof value === 'number' ? 'u' : 's'));
  const body = message.body.reduce<string>((bytes, value, index) => append(bytes, types[index], value), '');
  let fields = '';
  for (const [code, field] of FIELDS.entries()) {
    const value = field?.name === 'signature' ? types.join('') : field && message[field.name];
    if (field === undefined || value === undefined || value === '') continue;
    const start = String.fromCharCode(code, 1, field.type.charCodeAt(0), 0);
    fields = append(padded(fields, 8) + start, field.type, value);
  }
  const kind = String.fromCharCode(TYPES.indexOf(message.type), NO_AUTO_START, VERSION);
  const head = `l${kind}${uint32(body.length)}${uint32(message.serial)}${uint32(fields.length)}`;
  return Buffer.from(padded(head + fields, 8) + body, 'latin1');
}

/** Bytes as a string of characters up to 255. */
function append(bytes: string, type: string | undefined, value: Value): string {
  const text = Buffer.from(String(value)).toString('latin1');
  if (type === 'g') return `${bytes}${String.fromCharCode(text.length)}${text}\0`;
  const number = typeof value === 'number' ? uint32(value) : `${uint32(text.length)}${text}\0`;
  return padded(bytes, 4) + number;
}

function uint32(number: number): string {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(number);
  return bytes.toString('latin1');
}

function padded(bytes: string, to: number): string {
  return bytes.padEnd(aligned(bytes.length, to), '\0');
}

function aligned(length: number, to: number): number {
  return Math.ceil(length / to) * to;
}

/** The first message, and how long it is; `undefined` where it is not complete yet. Throws where it is none. */
export function decodeMessage(
  received: Buffer,
): { readonly message: DbusMessage; readonly bytes: number } | undefined {
  if (received.length < HEAD_BYTES) return undefined;
  if (received.toString('latin1', 0, 1) !== 'l' || received[3] !== VERSION)
    throw new Error('the bus sent no D-Bus message');
  const fieldsEnd = HEAD_BYTES + received.readUInt32LE(12);
  const bodyStart = aligned(fieldsEnd, 8);
  const bytes = bodyStart + received.readUInt32LE(4);
  if (bytes > MAX_BYTES) throw new Error(`the bus sent a message of ${bytes} bytes`);
  if (received.length < bytes) return undefined;
  const buffer = received.subarray(0, bytes);
  let at = HEAD_BYTES;
  const text = (length: number): string => {
    const start = at;
    at += length + 1;
    if (at > bytes) throw new Error('the bus sent a text that is longer than its message');
    return buffer.toString('utf8', start, start + length);
  };
  const read = (type: string): Value | undefined => {
    if (type === 'g') return text(buffer.readUInt8(at++));
    if (!['s', 'o', 'u', 'b'].includes(type)) return undefined;
    at = aligned(at, 4) + 4;
    const number = buffer.readUInt32LE(at - 4);
    return type === 's' || type === 'o' ? text(number) : number;
  };
  const fields: Partial<Record<FieldName, Value>> = {};
  while (at < fieldsEnd) {
    at = aligned(at, 8) + 4;
    const field = FIELDS[buffer.readUInt8(at - 4)];
    const type = String.fromCharCode(buffer.readUInt8(at - 2));
    const value = read(type);
    if (value === undefined) throw new Error(`the bus sent a header field of type ${JSON.stringify(type)}`);
    if (field?.type === type) fields[field.name] = value;
  }
  at = bodyStart;
  const { signature, ...others } = fields;
  const body: Value[] = [];
  for (const type of String(signature ?? '')) {
    const value = read(type);
    if (value === undefined) break;
    body.push(value);
  }
  const type = TYPES[buffer.readUInt8(1)] ?? 'unknown';
  return { message: { ...others, type, serial: buffer.readUInt32LE(8), body }, bytes };
}

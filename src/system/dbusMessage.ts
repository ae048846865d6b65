/** Messages of D-Bus, as far as a listener for signals needs them: bodies of texts and numbers, in the byte order of this machine's programs. */
const CODES = { call: 1, return: 2, error: 3, signal: 4 } as const;
const FIELDS = {
  path: [1, 'o'],
  interface: [2, 's'],
  member: [3, 's'],
  replySerial: [5, 'u'],
  destination: [6, 's'],
  sender: [7, 's'],
  signature: [8, 'g'],
} as const;
type FieldName = keyof typeof FIELDS;
const FIELD_NAMES = Object.keys(FIELDS) as readonly FieldName[];
const HEAD_BYTES = 16;
const LITTLE_ENDIAN = 'l'.charCodeAt(0);
/** Whoever listens to a service must not be what starts it. */
const NO_AUTO_START = 2;
const VERSION = 1;
/** The protocol allows 128 MiB; nothing that a listener waits for is nearly as long. */
const MAX_BYTES = 1 << 20;

type Value = string | number;

export interface DbusMessage extends Partial<Record<Exclude<FieldName, 'signature'>, Value>> {
  readonly type: keyof typeof CODES | 'unknown';
  readonly serial: number;
  /** Up to the first value that is neither a text nor a number. */
  readonly body: readonly Value[];
}

export function encodeMessage(message: DbusMessage & { readonly type: keyof typeof CODES }): Buffer {
  const signature = message.body.map((value) => (typeof value === 'number' ? 'u' : 's')).join('');
  const body = message.body.reduce(append, Buffer.alloc(0));
  let fields = Buffer.alloc(0);
  for (const name of FIELD_NAMES) {
    const value = name === 'signature' ? signature : message[name];
    if (value === undefined || value === '') continue;
    const [code, type] = FIELDS[name];
    fields = Buffer.concat([padded(fields, 8), Buffer.from([code, 1, type.charCodeAt(0), 0])]);
    fields =
      type === 'g'
        ? Buffer.concat([fields, Buffer.from([signature.length]), Buffer.from(`${signature}\0`)])
        : append(fields, value);
  }
  const head = Buffer.alloc(HEAD_BYTES);
  head.set([LITTLE_ENDIAN, CODES[message.type], NO_AUTO_START, VERSION]);
  head.writeUInt32LE(body.length, 4);
  head.writeUInt32LE(message.serial, 8);
  head.writeUInt32LE(fields.length, 12);
  return Buffer.concat([head, padded(fields, 8), body]);
}

function append(buffer: Buffer<ArrayBuffer>, value: Value): Buffer<ArrayBuffer> {
  const text = typeof value === 'string' ? Buffer.from(`${value}\0`) : Buffer.alloc(0);
  const number = Buffer.alloc(4);
  number.writeUInt32LE(typeof value === 'number' ? value : text.length - 1);
  return Buffer.concat([padded(buffer, 4), number, text]);
}

function padded(buffer: Buffer<ArrayBuffer>, to: number): Buffer<ArrayBuffer> {
  return Buffer.concat([buffer, Buffer.alloc(aligned(buffer.length, to) - buffer.length)]);
}

function aligned(length: number, to: number): number {
  return Math.ceil(length / to) * to;
}

/** The first message, and how long it is; `undefined` where it is not all there yet. Throws where it is none. */
export function decodeMessage(
  buffer: Buffer,
): { readonly message: DbusMessage; readonly bytes: number } | undefined {
  if (buffer.length < HEAD_BYTES) return undefined;
  if (buffer[0] !== LITTLE_ENDIAN || buffer[3] !== VERSION) throw new Error('the bus sent no D-Bus message');
  const fieldsEnd = HEAD_BYTES + buffer.readUInt32LE(12);
  const bytes = aligned(fieldsEnd, 8) + buffer.readUInt32LE(4);
  if (bytes > MAX_BYTES) throw new Error(`the bus sent a message of ${bytes} bytes`);
  if (buffer.length < bytes) return undefined;
  const reader = new Reader(buffer.subarray(0, bytes), HEAD_BYTES);
  const fields: Partial<Record<FieldName, Value>> = {};
  while (reader.at < fieldsEnd) {
    reader.at = aligned(reader.at, 8);
    const code = buffer[reader.at];
    const type = String.fromCharCode(buffer[reader.at + 2] ?? 0);
    reader.at += 4;
    const value = reader.value(type);
    if (value === undefined) throw new Error(`the bus sent a header field of type ${JSON.stringify(type)}`);
    const name = FIELD_NAMES.find((each) => FIELDS[each][0] === code && FIELDS[each][1] === type);
    if (name) fields[name] = value;
  }
  reader.at = aligned(fieldsEnd, 8);
  const body: Value[] = [];
  const { signature, ...others } = fields;
  for (const type of String(signature ?? '')) {
    const value = reader.value(type);
    if (value === undefined) break;
    body.push(value);
  }
  const names = Object.keys(CODES) as readonly (keyof typeof CODES)[];
  const type = names.find((name) => CODES[name] === buffer[1]) ?? 'unknown';
  return { message: { ...others, type, serial: buffer.readUInt32LE(8), body }, bytes };
}

class Reader {
  readonly #buffer: Buffer;
  at: number;

  constructor(buffer: Buffer, at: number) {
    this.#buffer = buffer;
    this.at = at;
  }

  /** `undefined` for a type that is not read here. */
  value(type: string): Value | undefined {
    if (type === 'g') return this.#text(this.#buffer.readUInt8(this.at++));
    if (!['s', 'o', 'u', 'b'].includes(type)) return undefined;
    this.at = aligned(this.at, 4) + 4;
    const number = this.#buffer.readUInt32LE(this.at - 4);
    return type === 's' || type === 'o' ? this.#text(number) : number;
  }

  #text(length: number): string {
    const start = this.at;
    this.at += length + 1;
    if (this.at > this.#buffer.length) throw new Error('the bus sent a text that is longer than its message');
    return this.#buffer.toString('utf8', start, start + length);
  }
}

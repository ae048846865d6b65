/**
 * D-Bus messages as bytes. Pure.
 *
 * As much of the protocol as a listener needs: bodies of strings, numbers and booleans are written and read; a body
 * with anything else is read up to there. Numbers from the D-Bus specification, "DbusMessage Protocol".
 */
const FIXED_BYTES = 16;
const VERSION = 1;
/** Whoever listens to a service must not be what starts it. */
const NO_AUTO_START = 2;
const TYPES = ['invalid', 'call', 'return', 'error', 'signal'] as const;
const LITTLE = 'l'.charCodeAt(0);
const BIG = 'B'.charCodeAt(0);
/** The protocol allows 128 MiB; nothing that a listener waits for is nearly as long. */
const MAX_BYTES = 1 << 20;

type MessageType = (typeof TYPES)[number];
export type DbusValue = string | number | boolean;

export interface DbusMessage {
  readonly type: MessageType;
  readonly serial: number;
  readonly path?: string;
  readonly interface?: string;
  readonly member?: string;
  readonly errorName?: string;
  readonly replySerial?: number;
  readonly destination?: string;
  /** Filled in by the bus, so it cannot be forged. */
  readonly sender?: string;
  readonly signature?: string;
  readonly body: readonly DbusValue[];
}

const FIELDS = {
  path: [1, 'o'],
  interface: [2, 's'],
  member: [3, 's'],
  errorName: [4, 's'],
  replySerial: [5, 'u'],
  destination: [6, 's'],
  sender: [7, 's'],
  signature: [8, 'g'],
} as const;
type FieldName = keyof typeof FIELDS;
const FIELD_NAMES = Object.keys(FIELDS) as readonly FieldName[];

export class MalformedMessage extends Error {}

/** `body` must be what `signature` says. */
export function encodeMessage(message: DbusMessage): Uint8Array {
  const body = new Writer();
  [...(message.signature ?? '')].forEach((type, index) => body.value(type, message.body[index]));
  const fields = new Writer();
  for (const name of FIELD_NAMES) {
    const value = message[name];
    if (value === undefined || value === '') continue;
    const [code, type] = FIELDS[name];
    fields.align(8);
    fields.value('y', code);
    fields.value('g', type);
    fields.value(type, value);
  }
  const lengths = [body.bytes.length, message.serial, fields.bytes.length];
  fields.align(8);
  const head = new Writer();
  for (const byte of [LITTLE, TYPES.indexOf(message.type), NO_AUTO_START, VERSION]) head.value('y', byte);
  for (const number of lengths) head.value('u', number);
  return Uint8Array.from([...head.bytes, ...fields.bytes, ...body.bytes]);
}

/** How long the first message in the buffer is; `undefined` while that is not known yet. */
export function messageBytes(buffer: Uint8Array): number | undefined {
  if (buffer.length < FIXED_BYTES) return undefined;
  const reader = new Reader(buffer);
  const [bodyBytes, , fieldBytes] = reader.fixedNumbers();
  const total = aligned(FIXED_BYTES + fieldBytes, 8) + bodyBytes;
  if (total > MAX_BYTES) throw new MalformedMessage(`a message of ${total} bytes`);
  return total;
}

/** Exactly one message. */
export function decodeMessage(bytes: Uint8Array): DbusMessage {
  const reader = new Reader(bytes);
  const type = TYPES[bytes[1] ?? 0] ?? 'invalid';
  const [, serial, fieldBytes] = reader.fixedNumbers();
  const fields: Partial<Record<FieldName, DbusValue>> = {};
  const end = FIXED_BYTES + fieldBytes;
  reader.at = FIXED_BYTES;
  while (reader.at < end) {
    reader.align(8);
    const code = reader.value('y');
    const fieldType = String(reader.value('g'));
    const value = reader.value(fieldType);
    if (value === undefined) throw new MalformedMessage(`a header field of type ${fieldType}`);
    const name = FIELD_NAMES.find((each) => FIELDS[each][0] === code && FIELDS[each][1] === fieldType);
    if (name) fields[name] = value;
  }
  if (reader.at !== end) throw new MalformedMessage('its header fields are longer than they say');
  reader.align(8);
  const body: DbusValue[] = [];
  for (const each of String(fields.signature ?? '')) {
    const value = reader.value(each);
    if (value === undefined) break;
    body.push(value);
  }
  // Each field was read as the type that the table says.
  return { ...(fields as Partial<DbusMessage>), type, serial, body };
}

function aligned(length: number, to: number): number {
  return Math.ceil(length / to) * to;
}

class Writer {
  readonly bytes: number[] = [];

  align(to: number): void {
    while (this.bytes.length % to !== 0) this.bytes.push(0);
  }

  value(type: string, value: DbusValue | undefined): void {
    switch (type) {
      case 's':
      case 'o':
      case 'g': {
        const text = new TextEncoder().encode(String(value));
        this.value(type === 'g' ? 'y' : 'u', text.length);
        for (const byte of [...text, 0]) this.bytes.push(byte);
        return;
      }
      case 'y':
        this.bytes.push(Number(value) & 0xff);
        return;
      case 'b':
      case 'u':
        this.align(4);
        for (const shift of [0, 8, 16, 24]) this.bytes.push((Number(value) >>> shift) & 0xff);
        return;
      default:
        throw new MalformedMessage(`values of type ${type} are not written here`);
    }
  }
}

type ReadNumber = (view: DataView, at: number, little: boolean) => number;
const BYTE: readonly [ReadNumber, 1] = [(view, at) => view.getUint8(at), 1];
const UINT32: readonly [ReadNumber, 4] = [(view, at, little) => view.getUint32(at, little), 4];
/** By type: how its number is read, of how many bytes. That of a text is its length. */
const NUMBERS: Readonly<Record<string, readonly [read: ReadNumber, size: 1 | 2 | 4]>> = {
  y: BYTE,
  g: BYTE,
  n: [(view, at, little) => view.getInt16(at, little), 2],
  q: [(view, at, little) => view.getUint16(at, little), 2],
  i: [(view, at, little) => view.getInt32(at, little), 4],
  u: UINT32,
  b: UINT32,
  s: UINT32,
  o: UINT32,
};

class Reader {
  at = 0;
  readonly #view: DataView;
  readonly #little: boolean;

  constructor(bytes: Uint8Array) {
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    if (bytes[0] !== LITTLE && bytes[0] !== BIG) throw new MalformedMessage('an unknown byte order');
    if (bytes[3] !== VERSION) throw new MalformedMessage(`version ${bytes[3]} of the protocol`);
    this.#little = bytes[0] === LITTLE;
  }

  fixedNumbers(): readonly [bodyBytes: number, serial: number, fieldBytes: number] {
    const number = (at: number): number => this.#view.getUint32(at, this.#little);
    return [number(4), number(8), number(12)];
  }

  align(to: number): void {
    this.at = aligned(this.at, to);
  }

  /** `undefined` for a type that is not read here. */
  value(type: string): DbusValue | undefined {
    const [read, size] = NUMBERS[type] ?? [];
    if (!read || !size) return undefined;
    this.align(size);
    const number = read(this.#view, this.#skip(size), this.#little);
    if ('sog'.includes(type)) return this.#text(number);
    return type === 'b' ? number !== 0 : number;
  }

  #text(length: number): string {
    const from = this.#skip(length + 1);
    return new TextDecoder().decode(new Uint8Array(this.#view.buffer, this.#view.byteOffset + from, length));
  }

  #skip(length: number): number {
    const from = this.at;
    this.at += length;
    if (this.at > this.#view.byteLength) throw new MalformedMessage('it ends in the middle of a value');
    return from;
  }
}

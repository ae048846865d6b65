/** Objects as Kubernetes' protobuf, byte for byte as the API server writes them. */
import { type FieldRow, type Kind, LIST_META, MESSAGES } from './schema.ts';

/** The object has a value of another type than its field: no API server could hold it. */
class NotEncodable extends Error {
  override readonly name = 'NotEncodable';
}

export function encodeObject(kind: string, raw: unknown): Buffer {
  const rows = MESSAGES[kind];
  if (rows === undefined) throw new NotEncodable(`${kind} has no protobuf here`);
  return message(rows, raw);
}

/** Nothing for what is not encodable. */
export function encodedOrNothing(kind: string, raw: unknown): Buffer | undefined {
  try {
    return encodeObject(kind, raw);
  } catch (error) {
    if (error instanceof NotEncodable) return undefined;
    throw error;
  }
}

/** `k8s` and a zero, and a `runtime.Unknown` around it. */
export function envelope(kind: string, apiVersion: string, raw: Uint8Array): Buffer {
  return Buffer.concat([envelopeHead(kind, apiVersion, raw.length), raw, ENVELOPE_TAIL]);
}

/** Neither a content encoding nor a content type. */
export const ENVELOPE_TAIL = Buffer.concat([bytesField(3, Buffer.of()), bytesField(4, Buffer.of())]);

/** What stands before so many bytes of the object. */
export function envelopeHead(kind: string, apiVersion: string, length: number): Buffer {
  const type = Buffer.concat([bytesField(1, Buffer.from(apiVersion)), bytesField(2, Buffer.from(kind))]);
  return Buffer.concat([Buffer.from('k8s\0'), bytesField(1, type), tag(2, 2), varint(BigInt(length))]);
}

export function encodeListMeta(metadata: unknown): Buffer {
  return bytesField(1, message(LIST_META, metadata));
}

export function encodeItem(item: Uint8Array): Buffer {
  return bytesField(2, item);
}

/** A frame of a watch; the object has its envelope. */
export function encodeFrame(type: string, object: Uint8Array): Buffer {
  const event = Buffer.concat([bytesField(1, Buffer.from(type)), bytesField(2, bytesField(1, object))]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(event.length);
  return Buffer.concat([length, event]);
}

export function bytesField(number: number, value: Uint8Array): Buffer {
  return Buffer.concat([tag(number, 2), varint(BigInt(value.length)), value]);
}

export function varintField(number: number, value: bigint): Buffer {
  return Buffer.concat([tag(number, 0), varint(value)]);
}

export function tag(number: number, wireType: number): Buffer {
  return varint(BigInt(number) * 8n + BigInt(wireType));
}

export function varint(value: bigint): Buffer {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, value);
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  bytes.push(Number(rest));
  return Buffer.from(bytes);
}

function message(rows: readonly FieldRow[], raw: unknown): Buffer {
  const fields = asMap(raw ?? {});
  return Buffer.concat(
    rows.flatMap((row) => field(row, Object.hasOwn(fields, row[1]) ? fields[row[1]] : undefined)),
  );
}

function field([number, name, kind, presence]: FieldRow, value: unknown): readonly Buffer[] {
  const isGiven = value !== undefined && value !== null;
  if (kind === 'map') return isGiven ? entries(number, value) : [];
  if (presence === 'each') {
    if (!isGiven) return [];
    if (!Array.isArray(value)) throw new NotEncodable(`${name} is not a list`);
    return value.map((item: unknown) => single(number, name, kind, item ?? undefined));
  }
  return isGiven || presence === 'always' ? [single(number, name, kind, isGiven ? value : undefined)] : [];
}

function single(number: number, name: string, kind: Kind, value: unknown): Buffer {
  if (typeof kind === 'object') return bytesField(number, message(kind, value));
  switch (kind) {
    case 'text':
      if (typeof (value ?? '') !== 'string') throw new NotEncodable(`${name} is not text`);
      return bytesField(number, Buffer.from((value ?? '') as string));
    case 'int':
      return varintField(number, integer(name, value ?? 0));
    case 'bool':
      if (typeof (value ?? false) !== 'boolean') throw new NotEncodable(`${name} is neither true nor false`);
      return varintField(number, value === true ? 1n : 0n);
    case 'time':
      return bytesField(number, time(name, value));
    case 'json':
      return bytesField(number, bytesField(1, Buffer.from(JSON.stringify(value))));
    case 'intOrString':
      return bytesField(number, intOrString(name, value ?? 0));
    case 'map':
      throw new NotEncodable(`${name} is no single value`);
  }
}

function integer(name: string, value: unknown): bigint {
  const isInt32 = typeof value === 'number' && Number.isInteger(value) && (value | 0) === value;
  if (!isInt32) throw new NotEncodable(`${name} is not a number of 32 bits`);
  return BigInt(value);
}

function intOrString(name: string, value: unknown): Buffer {
  const isText = typeof value === 'string';
  return Buffer.concat([
    varintField(1, isText ? 1n : 0n),
    varintField(2, isText ? 0n : integer(name, value)),
    bytesField(3, Buffer.from(isText ? value : '')),
  ]);
}

/** Whole seconds; without a time, nothing. */
function time(name: string, value: unknown): Buffer {
  if (value === undefined || value === '') return Buffer.of();
  const isTime =
    typeof value === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(value);
  const milliseconds = isTime ? Date.parse(value) : Number.NaN;
  if (Number.isNaN(milliseconds)) throw new NotEncodable(`${name} is not a time`);
  return Buffer.concat([varintField(1, BigInt(Math.floor(milliseconds / 1000))), varintField(2, 0n)]);
}

function entries(number: number, value: unknown): readonly Buffer[] {
  return Object.entries(asMap(value))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, text]) => {
      if (typeof text !== 'string') throw new NotEncodable(`${key} is not text`);
      return bytesField(
        number,
        Buffer.concat([bytesField(1, Buffer.from(key)), bytesField(2, Buffer.from(text))]),
      );
    });
}

function asMap(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new NotEncodable('not a map');
  return value as Readonly<Record<string, unknown>>;
}

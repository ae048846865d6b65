/** Messages of protobuf as the plain objects that JSON would have given, as far as they are read. */
import { malformedAnswer } from '../failure.ts';
import type { WireField, MapKey, MessageTable } from './messages.ts';
import { BYTES, VARINT, WireReader } from './wire.ts';

/** A decoded message. */
export type DecodedFields = Record<string, unknown>;

const reader = new WireReader();

/**
 * Decodes into `fields`. What was decoded before a failure stays there, so that the object can be named. Everything is
 * copied: nothing of `bytes` is held.
 */
export function decodeInto(fields: DecodedFields, message: MessageTable, bytes: Uint8Array): void {
  reader.load(bytes);
  try {
    readMessage(fields, message);
  } finally {
    reader.unload();
  }
}

export function decode(message: MessageTable, bytes: Uint8Array): DecodedFields {
  const fields: DecodedFields = {};
  decodeInto(fields, message, bytes);
  return fields;
}

function readMessage(fields: DecodedFields, message: MessageTable): void {
  while (reader.at < reader.end) {
    const tag = reader.tag();
    const field = message[tag >>> 3];
    if (field === undefined) reader.skip(tag & 7);
    else readField(fields, field, tag & 7);
  }
}

function readField(fields: DecodedFields, field: WireField, wireType: number): void {
  const expected = field.kind === 'int' || field.kind === 'bool' ? VARINT : BYTES;
  if (wireType !== expected)
    throw reader.fault(`${field.name} has wire type ${wireType} instead of ${expected}`);
  if (field.kind === 'map') {
    readEntry(mapIn(fields, field.name), field.keys);
    return;
  }
  if (field.isList) {
    const items = fields[field.name];
    // A message in a list is a new one; elsewhere a second one continues the first.
    const value = field.kind === 'message' ? readNested({}, field.message) : readValue(field);
    if (Array.isArray(items)) items.push(value);
    else fields[field.name] = [value];
    return;
  }
  if (field.kind === 'message') {
    readNested(mapIn(fields, field.name), field.message);
    return;
  }
  const value = readValue(field);
  if (field.keepsEmpty || (value !== '' && value !== 0)) fields[field.name] = value;
  else if (fields[field.name] !== undefined) fields[field.name] = undefined;
}

function mapIn(fields: DecodedFields, name: string): DecodedFields {
  const known = fields[name];
  if (typeof known === 'object' && known !== null) return known as DecodedFields;
  const fresh: DecodedFields = {};
  fields[name] = fresh;
  return fresh;
}

function readNested(fields: DecodedFields, message: MessageTable): DecodedFields {
  const outer = reader.enter();
  readMessage(fields, message);
  reader.end = outer;
  return fields;
}

function readValue(field: WireField): string | number | boolean {
  switch (field.kind) {
    case 'text':
      return reader.text();
    case 'sharedText':
      return reader.sharedText();
    case 'int':
      return reader.int32();
    case 'bool':
      return reader.bool();
    case 'time':
      return readTime();
    default:
      throw malformedAnswer(`${field.name} is no single value`);
  }
}

/** Key 1, value 2; either is '' where it is missing. */
function readEntry(fields: DecodedFields, keys: readonly MapKey[]): void {
  const outer = reader.enter();
  let key: MapKey | undefined;
  let from = reader.at;
  let end = from;
  while (reader.at < reader.end) {
    const tag = reader.tag();
    if (tag !== KEY && tag !== VALUE) {
      reader.skip(tag & 7);
      continue;
    }
    const valueEnd = reader.valueEnd();
    if (tag === KEY) key = keyAt(keys, reader.at, valueEnd);
    else [from, end] = [reader.at, valueEnd];
    reader.at = valueEnd;
  }
  reader.end = outer;
  if (key !== undefined) fields[key.name] = reader.bytes.toString('utf8', from, end);
}

const KEY = (1 << 3) | BYTES;
const VALUE = (2 << 3) | BYTES;

function keyAt(keys: readonly MapKey[], from: number, end: number): MapKey | undefined {
  for (const key of keys) if (reader.isAt(key.bytes, from, end)) return key;
  return undefined;
}

/** JSON has no parts of a second. Nothing in it: no time. */
function readTime(): string {
  const seconds = readSeconds(reader);
  return seconds === undefined ? '' : printTime(seconds);
}

/** Since the epoch. The message that begins here has them in field 1; one with nothing in it is no time. */
export function readSeconds(wire: WireReader): number | undefined {
  const outer = wire.enter();
  let seconds = wire.at === wire.end ? undefined : 0;
  while (wire.at < wire.end) {
    const tag = wire.tag();
    if (tag === SECONDS) seconds = wire.int64();
    else wire.skip(tag & 7);
  }
  wire.end = outer;
  return seconds;
}

const SECONDS = (1 << 3) | VARINT;
/** 9999-12-31T23:59:59Z; Go's JSON has years of five digits then, which nobody reads either. */
export const LAST_SECOND = 253_402_300_799;

function printTime(seconds: number): string {
  if (Math.abs(seconds) > LAST_SECOND) return `${seconds} seconds`;
  return `${new Date(seconds * 1000).toISOString().slice(0, -'.000Z'.length)}Z`;
}

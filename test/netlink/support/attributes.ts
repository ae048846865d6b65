/** Single attributes and values, as the tables read them. */
import { list } from '../../../src/netlink/attributes.ts';
import { ATTRIBUTE_HEADER_BYTES, LITTLE_ENDIAN, NLA_TYPE_MASK, viewOf } from '../../../src/netlink/codec.ts';
import {
  type AttributeKind,
  bytesAt,
  u16,
  u16be,
  u32,
  u32be,
  u64be,
  u8,
} from '../../../src/netlink/kinds.ts';

interface Attribute {
  readonly type: number;
  readonly value: Uint8Array;
}

/** The type is right before the value. */
const attribute: AttributeKind<Attribute> = {
  write: () => undefined,
  read: (view, start, end) => ({
    type: view.getUint16(start - ATTRIBUTE_HEADER_BYTES + 2, LITTLE_ENDIAN) & NLA_TYPE_MASK,
    value: bytesAt(view, start, end),
  }),
};

/** Flags (nested, byte order) are taken off the types. */
export function decodeAttributes(bytes: Uint8Array): readonly Attribute[] {
  const read = list(attribute).read(viewOf(bytes), 0, bytes.length, {});
  return typeof read === 'object' ? read : [];
}

type Plain<Value> = { read(view: DataView, start: number, end: number): Value };
const whole =
  <Value>(kind: Plain<Value>) =>
  (bytes: Uint8Array): Value =>
    kind.read(viewOf(bytes), 0, bytes.length);

export const decodeU8 = whole(u8);
export const decodeU16 = whole(u16);
export const decodeU16be = whole(u16be);
export const decodeU32 = whole(u32);
export const decodeU32be = whole(u32be);
export const decodeU64be = whole(u64be);

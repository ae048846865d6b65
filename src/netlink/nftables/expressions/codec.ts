/** What the file of each expression offers: how it is written and how it is read. */
import { type MessageWriter, decodeU32be, requiredAttribute } from '../../codec.ts';

export type Attributes = ReadonlyMap<number, Uint8Array>;

export interface ExpressionCodec<Value> {
  /** The kernel's own. */
  readonly name: string;
  readonly write: (writer: MessageWriter, value: Value) => void;
  /** `undefined` for a use of the expression that has no word here; the bytes are kept then. */
  readonly read: (attributes: Attributes) => Value | undefined;
}

export function readNumber(attributes: Attributes, type: number, what: string): number {
  return decodeU32be(requiredAttribute(attributes, type, what));
}

export function readOptionalNumber(attributes: Attributes, type: number): number | undefined {
  const value = attributes.get(type);
  return value && decodeU32be(value);
}

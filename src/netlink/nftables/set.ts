/** Sets and maps, without their elements. */
import {
  type MessageWriter,
  NLM_F_CREATE,
  attributesByType,
  decodeAttributes,
  decodeString,
  decodeU32be,
  decodeU64be,
  requiredAttribute,
} from '../codec.ts';
import type { NetlinkRequest } from '../socket.ts';
import { type Expression, decodeExpression, writeExpression } from './expressions/expression.ts';
import {
  NFT_MSG_DELSET,
  NFT_MSG_GETSET,
  NFT_MSG_NEWSET,
  type NftFamily,
  type NftMessage,
  type TablePlace,
  nftMessage,
  received,
} from './message.ts';
import { type SetShape, type SetSpec, shapeOf } from './setSpec.ts';
import { decodeSetComment, encodeSetUserData } from './setUserData.ts';

const NFTA_LIST_ELEM = 1;
const NFTA_SET_TABLE = 1;
const NFTA_SET_NAME = 2;
const NFTA_SET_FLAGS = 3;
const NFTA_SET_KEY_TYPE = 4;
const NFTA_SET_KEY_LEN = 5;
const NFTA_SET_DATA_TYPE = 6;
const NFTA_SET_DATA_LEN = 7;
const NFTA_SET_DESC = 9;
const NFTA_SET_ID = 10;
const NFTA_SET_TIMEOUT = 11;
const NFTA_SET_USERDATA = 13;
const NFTA_SET_HANDLE = 16;
const NFTA_SET_EXPR = 17;
const NFTA_SET_DESC_SIZE = 1;
const NFTA_SET_DESC_CONCAT = 2;
const NFTA_SET_FIELD_LEN = 1;

export interface NewSet extends TablePlace {
  readonly kind: 'new set';
  readonly set: SetSpec;
}

/** Refused with EBUSY while a rule looks into it. */
export interface DeleteSet extends TablePlace {
  readonly kind: 'delete set';
  readonly set: string;
}

/** All by which the kernel tells sets from each other. */
export interface SetProperties extends SetShape {
  readonly size: number | undefined;
  readonly timeoutMs: number | undefined;
  /** Of each element: a counter. */
  readonly expression: Expression | undefined;
  readonly userData: Uint8Array;
}

export interface NftSet extends SetProperties {
  readonly family: NftFamily | undefined;
  readonly table: string;
  readonly name: string;
  readonly handle: bigint;
  readonly comment: string | undefined;
}

const NEW_COUNTER: Expression = { kind: 'counter', packets: 0n, bytes: 0n };

/** What the kernel answers for a set that was made so. */
export function propertiesOf(spec: SetSpec): SetProperties {
  return {
    ...shapeOf(spec),
    size: spec.size,
    timeoutMs: spec.timeoutMs,
    expression: spec.counter && NEW_COUNTER,
    userData: encodeSetUserData(spec),
  };
}

/** `id` is any number that no other set of the transaction has. One that is there already stays. */
export function newSet({ family, table, set }: NewSet, id: number): NftMessage {
  const properties = propertiesOf(set);
  const { flags, keyType, keyBytes, dataType, dataBytes, timeoutMs, expression, userData } = properties;
  return nftMessage(NFT_MSG_NEWSET, NLM_F_CREATE, family, (writer) => {
    writer
      .string(NFTA_SET_TABLE, table)
      .string(NFTA_SET_NAME, set.name)
      .u32be(NFTA_SET_FLAGS, flags)
      .u32be(NFTA_SET_KEY_TYPE, keyType)
      .u32be(NFTA_SET_KEY_LEN, keyBytes);
    if (dataType !== undefined) writer.u32be(NFTA_SET_DATA_TYPE, dataType);
    if (dataBytes !== undefined) writer.u32be(NFTA_SET_DATA_LEN, dataBytes);
    writer.u32be(NFTA_SET_ID, id);
    writeDescription(writer, properties);
    if (timeoutMs !== undefined) writer.u64be(NFTA_SET_TIMEOUT, BigInt(timeoutMs));
    writer.attribute(NFTA_SET_USERDATA, userData);
    if (expression) writer.nested(NFTA_SET_EXPR, (inner) => writeExpression(inner, expression));
  });
}

export function deleteSet({ family, table, set }: DeleteSet): NftMessage {
  return nftMessage(NFT_MSG_DELSET, 0, family, (writer) =>
    writer.string(NFTA_SET_TABLE, table).string(NFTA_SET_NAME, set),
  );
}

/** To be asked with `dump`. Refused with ENOENT where there is no such table. */
export function getSets({ family, table }: TablePlace): NetlinkRequest {
  return nftMessage(NFT_MSG_GETSET, 0, family, (writer) => writer.string(NFTA_SET_TABLE, table));
}

export function decodeSet(payload: Uint8Array): NftSet {
  const { family, attributes } = received(payload);
  const number = (type: number): number | undefined => {
    const value = attributes.get(type);
    return value && decodeU32be(value);
  };
  const handle = attributes.get(NFTA_SET_HANDLE);
  const timeout = attributes.get(NFTA_SET_TIMEOUT);
  const expression = attributes.get(NFTA_SET_EXPR);
  const userData = attributes.get(NFTA_SET_USERDATA) ?? new Uint8Array();
  return {
    family,
    table: decodeString(requiredAttribute(attributes, NFTA_SET_TABLE, 'the table of a set')),
    name: decodeString(requiredAttribute(attributes, NFTA_SET_NAME, 'the name of a set')),
    handle: handle ? decodeU64be(handle) : 0n,
    flags: number(NFTA_SET_FLAGS) ?? 0,
    keyType: number(NFTA_SET_KEY_TYPE) ?? 0,
    keyBytes: number(NFTA_SET_KEY_LEN) ?? 0,
    dataType: number(NFTA_SET_DATA_TYPE),
    dataBytes: number(NFTA_SET_DATA_LEN),
    ...decodeDescription(attributes.get(NFTA_SET_DESC) ?? new Uint8Array()),
    timeoutMs: timeout && Number(decodeU64be(timeout)),
    expression: expression && decodeExpression(expression),
    userData,
    comment: decodeSetComment(userData),
  };
}

function writeDescription(writer: MessageWriter, { size, fieldBytes }: SetProperties): void {
  writer.nested(NFTA_SET_DESC, (description) => {
    if (size !== undefined) description.u32be(NFTA_SET_DESC_SIZE, size);
    if (fieldBytes.length === 0) return;
    description.nested(NFTA_SET_DESC_CONCAT, (fields) => {
      for (const bytes of fieldBytes)
        fields.nested(NFTA_LIST_ELEM, (field) => field.u32be(NFTA_SET_FIELD_LEN, bytes));
    });
  });
}

function decodeDescription(bytes: Uint8Array): Pick<SetProperties, 'size' | 'fieldBytes'> {
  const attributes = attributesByType(bytes);
  const size = attributes.get(NFTA_SET_DESC_SIZE);
  const fields = decodeAttributes(attributes.get(NFTA_SET_DESC_CONCAT) ?? new Uint8Array());
  return {
    size: size && decodeU32be(size),
    fieldBytes: fields.map(({ value }) =>
      decodeU32be(requiredAttribute(attributesByType(value), NFTA_SET_FIELD_LEN, 'the length of a field')),
    ),
  };
}

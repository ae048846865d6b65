/** A set or a map as one would declare it to nft, and what that means to the kernel. */
import { type DataType, totalBytes, typeBytes, typeNumber } from './dataTypes.ts';
import { type Selector, selectorType } from './selectors.ts';

/** One field, or the parts of a concatenation. */
export type Fields = { readonly type: readonly DataType[] } | { readonly typeof: readonly Selector[] };

export type SetFlag = 'constant' | 'interval' | 'timeout' | 'dynamic';

export interface SetSpec {
  readonly name: string;
  readonly key: Fields;
  /** A map has it. */
  readonly data?: Fields | 'verdict';
  readonly flags?: readonly SetFlag[];
  /** How many elements it takes at most. */
  readonly size?: number;
  /** After which an element is gone that has no time-out of its own. */
  readonly timeoutMs?: number;
  /** Each element counts packets and bytes. */
  readonly counter?: true;
  /** `auto-merge`, which is nft's own affair: the kernel takes no overlapping intervals, merged or not. */
  readonly mergesElements?: true;
  readonly comment?: string;
}

/** Numbers that the kernel keeps and answers. */
export interface SetShape {
  readonly flags: number;
  readonly keyType: number;
  readonly keyBytes: number;
  readonly dataType: number | undefined;
  readonly dataBytes: number | undefined;
  /** Of a concatenation of intervals. */
  readonly fieldBytes: readonly number[];
}

const NFT_SET_INTERVAL = 0x4;
const NFT_SET_MAP = 0x8;
const NFT_SET_CONCAT = 0x80;
const FLAG_BITS: Readonly<Record<SetFlag, number>> = {
  constant: 0x2,
  interval: NFT_SET_INTERVAL,
  timeout: 0x10,
  dynamic: 0x20,
};
export const NFT_DATA_VERDICT = 0xffffff00;
/** What the kernel answers for a map of verdicts; it does not read what it is told. */
const VERDICT_BYTES = 16;

export function fieldTypes(fields: Fields): readonly DataType[] {
  return 'type' in fields ? fields.type : fields.typeof.map(selectorType);
}

export function isConcatenation(fields: Fields): boolean {
  return fieldTypes(fields).length > 1;
}

export function shapeOf({ key, data, flags = [] }: SetSpec): SetShape {
  const types = fieldTypes(key);
  const isRanges = flags.includes('interval') && types.length > 1;
  const bits = flags.reduce((all, flag) => all | FLAG_BITS[flag], 0);
  return {
    flags: bits | (data ? NFT_SET_MAP : 0) | (isRanges ? NFT_SET_CONCAT : 0),
    keyType: typeNumber(types),
    keyBytes: totalBytes(types),
    dataType: data && (data === 'verdict' ? NFT_DATA_VERDICT : typeNumber(fieldTypes(data))),
    dataBytes: data && (data === 'verdict' ? VERDICT_BYTES : totalBytes(fieldTypes(data))),
    fieldBytes: isRanges ? types.map(typeBytes) : [],
  };
}

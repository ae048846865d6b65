/** Kinds of attribute values: numbers of several sizes, text, bytes, words for numbers. */
import { LITTLE_ENDIAN, type MessageWriter, malformedMessage } from './codec.ts';

/** A value that is not in the table of words. */
export const UNKNOWN: unique symbol = Symbol('unknown');

/** The fields that were read so far, by name. */
export type Fields = Record<string, unknown>;

/** How values of one kind are written and read. */
export interface AttributeKind<Value> {
  write(this: void, writer: MessageWriter, type: number, value: Value): void;
  /** Reads the bytes from `start` to `end`. `undefined` is the same as no attribute. */
  read(
    this: void,
    view: DataView,
    start: number,
    end: number,
    read: Fields,
  ): Value | undefined | typeof UNKNOWN;
}

/** A kind without unknown values. */
interface PlainKind<Value> extends AttributeKind<Value> {
  read(this: void, view: DataView, start: number, end: number): Value;
}

function integer(size: 1 | 2 | 4, isLittleEndian = false): PlainKind<number> {
  return {
    write: (writer, type, value) => writer.integer(type, size, value, isLittleEndian),
    read: (view, start, end) => {
      if (end - start !== size) throw wrongSize(start, end, size);
      if (size === 4) return view.getUint32(start, isLittleEndian);
      return size === 2 ? view.getUint16(start, isLittleEndian) : view.getUint8(start);
    },
  };
}

export const u8 = integer(1);
/** In the machine's byte order. */
export const u16 = integer(2, LITTLE_ENDIAN);
export const u16be = integer(2);
/** In the machine's byte order. */
export const u32 = integer(4, LITTLE_ENDIAN);
export const u32be = integer(4);

/** With a sign. */
export const i32be: PlainKind<number> = {
  write: u32be.write,
  read: (view, start, end) => u32be.read(view, start, end) | 0,
};

export const u64be: PlainKind<bigint> = {
  write: (writer, type, value) => writer.u64be(type, value),
  read: (view, start, end) => bigAt(view, start, end),
};

/** 64 bits in the machine's byte order, read as a number of 53. Read only. */
export const count64: PlainKind<number> = {
  write: () => undefined,
  read: (view, start, end) => Number(bigAt(view, start, end, LITTLE_ENDIAN)),
};

/** 64 bits, read as a number of 53. */
export const milliseconds: PlainKind<number> = {
  write: (writer, type, value) => writer.u64be(type, BigInt(value)),
  read: (view, start, end) => Number(bigAt(view, start, end)),
};

/** NUL-terminated. */
export const text: PlainKind<string> = {
  write: (writer, type, value) => writer.string(type, value),
  read: (view, start, end) => decodeText(bytesAt(view, start, end)),
};

export const bytes: PlainKind<Uint8Array> = {
  write: (writer, type, value) => writer.attribute(type, value),
  read: (view, start, end) => bytesAt(view, start, end),
};

interface WordKind<Word extends string> extends AttributeKind<Word> {
  number(word: Word): number;
  /** `undefined` for an unknown number. */
  word(number: number): Word | undefined;
}

/** Words for the kernel's numbers: those of the program nft where it has any. */
export function words<Word extends string>(
  numbers: Readonly<Record<Word, number>>,
  kind: PlainKind<number> = u32be,
): WordKind<Word> {
  const byNumber = new Map(Object.entries<number>(numbers).map(([word, number]) => [number, word as Word]));
  return {
    number: (word) => numbers[word],
    word: (number) => byNumber.get(number),
    write: (writer, type, word) => kind.write(writer, type, numbers[word]),
    read: (view, start, end) => byNumber.get(kind.read(view, start, end)) ?? UNKNOWN,
  };
}

/** An unknown value is read as no attribute. */
export function ifKnown<Value>(kind: AttributeKind<Value>): AttributeKind<Value> {
  return {
    write: kind.write,
    read: (view, start, end, read) => {
      const value = kind.read(view, start, end, read);
      return value === UNKNOWN ? undefined : value;
    },
  };
}

/** Words for bits, in the order of the table. `ignored`: bits that the kernel adds. */
export function flagWords<Word extends string>(
  table: Readonly<Record<Word, number>>,
  ignored = 0,
): AttributeKind<readonly Word[]> {
  const all = Object.entries<number>(table).map(([word, bit]) => [word as Word, bit] as const);
  const known = all.reduce((bits, [, bit]) => bits | bit, ignored);
  return {
    write: (writer, type, flags) => {
      const bits = flags.reduce((sum, flag) => sum | table[flag], 0);
      u32be.write(writer, type, bits);
    },
    read: (view, start, end) => {
      const bits = u32be.read(view, start, end);
      if ((bits & ~known) !== 0) return UNKNOWN;
      return all.filter(([, bit]) => (bits & bit) !== 0).map(([word]) => word);
    },
  };
}

const decoder = new TextDecoder();

export function decodeText(value: Uint8Array): string {
  const end = value.indexOf(0);
  return decoder.decode(end < 0 ? value : value.subarray(0, end));
}

/** Not a copy. */
export function bytesAt(view: DataView, start: number, end: number): Uint8Array {
  return new Uint8Array(view.buffer, view.byteOffset + start, end - start);
}

function bigAt(view: DataView, start: number, end: number, isLittleEndian = false): bigint {
  if (end - start !== 8) throw wrongSize(start, end, 8);
  return view.getBigUint64(start, isLittleEndian);
}

function wrongSize(start: number, end: number, size: number): Error {
  return malformedMessage(`${end - start} bytes where ${size} belong`);
}

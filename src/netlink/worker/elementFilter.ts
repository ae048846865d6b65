/** Elements of a set by a part of their keys. The kernel has no such question: it returns all of a set, or one. */
import { attributeEnd, findAttribute } from '../attributes.ts';
import {
  align,
  ATTRIBUTE_HEADER_BYTES,
  HEADER_BYTES,
  LITTLE_ENDIAN,
  NLA_F_NESTED,
  viewOf,
} from '../codec.ts';
import { NFGENMSG_BYTES } from '../generic.ts';
import type { MessageTest } from './scan.ts';

/** Elements whose key has one of these values at one of these places. */
export interface ElementFilter {
  readonly kind: 'elements';
  readonly parts: readonly KeyPartFilter[];
  /** All others. */
  readonly isExcluding?: boolean;
}

interface KeyPartFilter {
  readonly offset: number;
  /** In bytes. */
  readonly width: number;
  /** One after the other. */
  readonly values: Uint8Array;
}

const NFTA_SET_ELEM_LIST_ELEMENTS = 3;
const NFTA_SET_ELEM_KEY = 1;
const NFTA_DATA_VALUE = 1;

/** Yields while it is being made: there may be hundreds of thousands of values. */
export function* elementTest({ parts, isExcluding = false }: ElementFilter): Generator<void, MessageTest> {
  const wanted: { offset: number; width: number; values: ReadonlySet<string> }[] = [];
  for (const { offset, width, values } of parts)
    wanted.push({ offset, width, values: yield* textsIn(values, width) });
  let examined = 0;
  const isWanted = (bytes: Buffer, view: DataView, start: number, end: number): boolean => {
    examined++;
    const nest = findAttribute(view, start, end, NFTA_SET_ELEM_KEY);
    if (nest === 0) return true; // stands for all others: another program's
    const nestEnd = nest + view.getUint16(nest, LITTLE_ENDIAN);
    const value = findAttribute(view, nest + ATTRIBUTE_HEADER_BYTES, nestEnd, NFTA_DATA_VALUE);
    if (value === 0) return true;
    const key = value + ATTRIBUTE_HEADER_BYTES;
    const keyEnd = value + view.getUint16(value, LITTLE_ENDIAN);
    const isAmong = wanted.some(({ offset, width, values }) => {
      const [from, to] = [key + offset, key + offset + width];
      return to <= keyEnd && values.has(bytes.toString('latin1', from, to));
    });
    return isAmong !== isExcluding;
  };
  return {
    get examined() {
      return examined;
    },
    take: (message) => {
      const view = viewOf(message);
      const bytes = Buffer.from(message.buffer, message.byteOffset, message.byteLength);
      const list = findAttribute(
        view,
        HEADER_BYTES + NFGENMSG_BYTES,
        message.length,
        NFTA_SET_ELEM_LIST_ELEMENTS,
      );
      if (list === 0) return undefined;
      const start = list + ATTRIBUTE_HEADER_BYTES;
      const listEnd = list + view.getUint16(list, LITTLE_ENDIAN);
      // What is kept is moved to the front, in place.
      let used = start;
      for (let at = start; at < listEnd; ) {
        const end = attributeEnd(view, at, listEnd);
        const next = Math.min(align(end), listEnd);
        if (isWanted(bytes, view, at + ATTRIBUTE_HEADER_BYTES, end)) {
          message.copyWithin(used, at, next);
          used += next - at;
        }
        at = next;
      }
      if (used === start) return undefined;
      view.setUint16(list, used - list, LITTLE_ENDIAN);
      view.setUint16(list + 2, NFTA_SET_ELEM_LIST_ELEMENTS | NLA_F_NESTED, LITTLE_ENDIAN);
      view.setUint32(0, used, LITTLE_ENDIAN);
      return message.subarray(0, used);
    },
  };
}

/** So many take less time than a datagram. */
const VALUES_PER_STEP = 1000;

function* textsIn(values: Uint8Array, width: number): Generator<void, ReadonlySet<string>> {
  const bytes = Buffer.from(values.buffer, values.byteOffset, values.byteLength);
  const all = new Set<string>();
  for (let at = 0; at + width <= bytes.length; at += width) {
    all.add(bytes.toString('latin1', at, at + width));
    if (all.size % VALUES_PER_STEP === 0) yield;
  }
  return all;
}

/** Elements of a set by a part of their keys. The kernel has no such question: it returns all of a set, or one. */
import { attributeEnd, findAttribute } from '../attributes.ts';
import {
  ATTRIBUTE_HEADER_BYTES,
  HEADER_BYTES,
  LITTLE_ENDIAN,
  NLA_F_NESTED,
  align,
  viewOf,
} from '../codec.ts';
import { NFGENMSG_BYTES } from '../nfnetlink.ts';
import type { MessageTest } from './scan.ts';

/** Elements whose key has one of these values at one of these places. */
export interface ElementFilter {
  readonly kind: 'elements';
  readonly parts: readonly KeyPartFilter[];
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

export function elementTest({ parts }: ElementFilter): MessageTest {
  const wanted = parts.map(({ offset, width, values }) => ({ offset, width, values: texts(values, width) }));
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
    return wanted.some(({ offset, width, values }) => {
      const [from, to] = [key + offset, key + offset + width];
      return to <= keyEnd && values.has(bytes.toString('latin1', from, to));
    });
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

function texts(values: Uint8Array, width: number): ReadonlySet<string> {
  const bytes = Buffer.from(values.buffer, values.byteOffset, values.byteLength);
  const all = new Set<string>();
  for (let at = 0; at + width <= bytes.length; at += width) all.add(bytes.toString('latin1', at, at + width));
  return all;
}

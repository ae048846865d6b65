/** The elements of sets and maps: reading them. `ElementList` writes them. */
import {
  AttributeTable,
  list,
  nested,
  optional,
  required,
  type ValueOf,
  withDefault,
} from '../attributes.ts';
import { isAbsent, type NetlinkChannel, readUntilStable } from '../channel.ts';
import type { NetlinkRequest } from '../request.ts';
import { type AttributeKind, bytes, milliseconds, text, u32be, UNKNOWN } from '../kinds.ts';
import { ElementList, NFT_SET_ELEM_INTERVAL_END } from './elementList.ts';
import { expressionKind, type NftVerdict, VERDICT } from './expressions.ts';
import {
  commentKind,
  type MessageOf,
  nftRequest,
  type OperationName,
  readMessage,
  type TablePlace,
} from './message.ts';

/** A verdict that has no word here, such as a queue, is none. */
const verdict: AttributeKind<NftVerdict> = {
  write: nested(VERDICT).write,
  read: (view, start, end) => VERDICT.tryRead(view, start, end),
};

const intervalEnd: AttributeKind<true> = {
  write: (writer, type) => u32be.write(writer, type, NFT_SET_ELEM_INTERVAL_END),
  read: (view, start, end) =>
    (u32be.read(view, start, end) & NFT_SET_ELEM_INTERVAL_END) === 0 ? undefined : true,
};

interface ElementCounter {
  readonly packets: bigint;
  readonly bytes: bigint;
}

const counter: AttributeKind<ElementCounter> = {
  write: (writer, type, value) => expressionKind.write(writer, type, { kind: 'counter', ...value }),
  read: (view, start, end, read) => {
    const expression = expressionKind.read(view, start, end, read);
    if (!expression || expression === UNKNOWN || expression.kind !== 'counter') return undefined;
    return { packets: expression.packets, bytes: expression.bytes };
  },
};

const NO_KEY = new Uint8Array();

const ELEMENT = new AttributeTable('an element', {
  /** With its padding, if it is a concatenation. Empty for the element that stands for all others. */
  key: withDefault([1, 1], bytes, NO_KEY),
  /** The last key of a range, in a set of concatenations. */
  keyEnd: optional([10, 1], bytes),
  /** The key is the first beyond an interval. */
  isIntervalEnd: optional(3, intervalEnd),
  data: optional([2, 1], bytes),
  verdict: optional([2, 2], verdict),
  comment: optional(6, commentKind),
  timeoutMs: optional(4, milliseconds),
  /** How long it has still to live. */
  expiresMs: optional(5, milliseconds),
  counter: optional(7, counter),
});
export type SetElement = ValueOf<typeof ELEMENT>;

export const ELEMENTS = new AttributeTable('elements', {
  table: required(1, text),
  set: required(2, text),
  elements: withDefault(3, list(nested(ELEMENT)), []),
});

/** Attributes that are written already. */
const encodedNest: AttributeKind<Uint8Array> = {
  write: (writer, type, value) => writer.nested(type, (inner) => inner.raw(value)),
  read: bytes.read,
};

const ENCODED_ELEMENTS = new AttributeTable('elements', {
  table: required(1, text),
  set: required(2, text),
  encoded: optional(3, encodedNest),
});

export interface SetPlace extends TablePlace {
  readonly set: string;
}

export type ElementsOfSet = MessageOf<typeof ELEMENTS>;

/** To be asked with `dump`; each message of the reply has some. Refused with ENOENT where there is no such set. */
export function getElements(place: SetPlace): NetlinkRequest {
  return elementsRequest('get elements', 0, place);
}

/**
 * One element by its key: of intervals, that which holds the key; by an empty key, that which stands for all others. Refused
 * with ENOENT where there is none; kernels before 5.13 refuse an empty key with EINVAL.
 */
export function getElement(place: SetPlace, key: Uint8Array): NetlinkRequest {
  const list = new ElementList(64 + key.length);
  if (key.length === 0) list.beginCatchAll().end();
  else list.begin().raw(key).end();
  const [encoded] = list.messages();
  return elementsRequest('get elements', 0, place, encoded);
}

/** `encoded`: elements of an `ElementList`; without them, all that the set has. */
export function elementsRequest(
  operation: OperationName,
  flags: number,
  { family, table, set }: SetPlace,
  encoded?: Uint8Array,
): NetlinkRequest {
  return nftRequest(operation, flags, family, ENCODED_ELEMENTS, { table, set, encoded });
}

export function decodeElements(payload: Uint8Array): ElementsOfSet {
  return readMessage(ELEMENTS, payload);
}

/**
 * All elements of a set; none where there is no such set. Each message of the kernel's reply walks the hash table from
 * its start again, so the time grows with the square: 10 ms for ten thousand elements, seven tenths of a second for a
 * hundred thousand, ten seconds for three hundred thousand (Linux 6.18).
 *
 * While a hash table grows, which it does for a moment after it was filled, elements change their places. Some are then returned
 * twice and as many not at all, and the kernel does not say that its reply is incomplete: it is read again.
 */
export function readElements(
  channel: Pick<NetlinkChannel, 'scan'>,
  place: SetPlace,
): Promise<readonly SetElement[]> {
  const what = `the elements of ${place.set}`;
  return readUntilStable(what, async () => {
    const elements: SetElement[] = [];
    const keys = new Set<string>();
    const end = await channel.scan(getElements(place), (messages) => {
      for (const { payload } of messages)
        for (const element of decodeElements(payload).elements) {
          elements.push(element);
          keys.add(String.fromCharCode(...element.key) + (element.isIntervalEnd ? 'end' : ''));
        }
    });
    return isAbsent(end, what) || (!end.interrupted && keys.size === elements.length) ? elements : undefined;
  });
}

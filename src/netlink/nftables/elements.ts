/** The elements of sets and maps: reading them. `ElementList` writes them. */
import {
  AttributeTable,
  type ValueOf,
  list,
  nested,
  optional,
  required,
  withDefault,
} from '../attributes.ts';
import { DUMP_ATTEMPTS, type NetlinkChannel, changedTooOften } from '../channel.ts';
import type { Message } from '../codec.ts';
import { type AttributeKind, UNKNOWN, bytes, milliseconds, text, u32be } from '../kinds.ts';
import type { NetlinkRefusal, NetlinkRequest } from '../socket.ts';
import { TimeSlice, runSliced } from '../../time/timeSlice.ts';
import { systemClock } from '../../time/systemClock.ts';
import { ElementList, NFT_SET_ELEM_INTERVAL_END } from './elementList.ts';
import { VERDICT, type NftVerdict, expressionKind } from './expressions.ts';
import {
  type InFamily,
  type OperationName,
  type TablePlace,
  commentKind,
  nftRequest,
  readMessage,
} from './message.ts';

/** A verdict that has no word here, such as a queue, is none. */
const verdict: AttributeKind<NftVerdict> = {
  write: nested(VERDICT).write,
  read: (view, start, end) => VERDICT.tryRead(view, start, end),
};

const intervalEnd: AttributeKind<true> = {
  write: (writer, type) => writer.u32be(type, NFT_SET_ELEM_INTERVAL_END),
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

const ELEMENTS = new AttributeTable('elements', {
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

export type ElementsOfSet = InFamily & ValueOf<typeof ELEMENTS>;

/** To be asked with `dump`; each message of the reply has some. Refused with ENOENT where there is no such set. */
export function getElements(place: SetPlace): NetlinkRequest {
  return elementsRequest('get elements', 0, place);
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

/** As many messages as the elements take. */
export function elementRequests(
  operation: OperationName,
  flags: number,
  place: SetPlace,
  elements: ElementList,
): readonly NetlinkRequest[] {
  return Array.from(elements.messages(), (encoded) => elementsRequest(operation, flags, place, encoded));
}

export function decodeElements(payload: Uint8Array): ElementsOfSet {
  return readMessage(ELEMENTS, payload);
}

/** For a few, or for those that were read: what the kernel counts is left out. */
export function elementList(elements: Iterable<SetElement>): ElementList {
  const result = new ElementList();
  for (const { key, keyEnd, isIntervalEnd, data, verdict: outcome, comment, timeoutMs } of elements) {
    result.begin().raw(key);
    if (keyEnd) result.rangeEnd().raw(keyEnd);
    if (data) result.data().raw(data);
    if (outcome) result.verdict(outcome);
    if (isIntervalEnd) result.intervalEnd();
    if (timeoutMs !== undefined) result.timeout(timeoutMs);
    if (comment !== undefined) result.comment(comment);
    result.end();
  }
  return result;
}

type ElementsReply =
  | { readonly kind: 'answered'; readonly elements: readonly SetElement[] }
  /** ENOENT: there is no such set. */
  | NetlinkRefusal;

/**
 * All elements of these sets, in the order of the places. Each message of the kernel's reply walks the hash table from
 * its start again, so the time grows with the square: 10 ms for ten thousand elements, seven tenths of a second for a
 * hundred thousand, ten seconds for three hundred thousand (Linux 6.18).
 */
export async function readElements(
  channel: NetlinkChannel,
  places: readonly SetPlace[],
): Promise<readonly ElementsReply[]> {
  const replies: ElementsReply[] = [];
  let left = places.map((place, index) => ({ place, index }));
  for (let attempt = 0; left.length > 0; attempt++) {
    if (attempt === DUMP_ATTEMPTS) throw changedTooOften('the elements of a set');
    const again: typeof left = [];
    const answers = await channel.dumpAll(left.map(({ place }) => getElements(place)));
    for (const [at, asked] of left.entries()) {
      const answer = answers[at];
      if (!answer || answer.kind === 'refused') {
        if (answer) replies[asked.index] = answer;
        continue;
      }
      const elements = await runSliced(decoding(answer.messages), new TimeSlice(systemClock));
      if (hasDuplicates(elements)) again.push(asked);
      else replies[asked.index] = { kind: 'answered', elements };
    }
    left = again;
  }
  return replies;
}

/** Other work has its turn between two messages: there may be hundreds of thousands of elements. */
function* decoding(messages: readonly Message[]): Generator<void, readonly SetElement[]> {
  const elements: SetElement[] = [];
  for (const { payload } of messages) {
    for (const element of decodeElements(payload).elements) elements.push(element);
    yield;
  }
  return elements;
}

/**
 * While a hash table grows, which it does for a moment after it was filled, elements change their places. Some are
 * then returned twice and as many not at all, and the kernel does not say that its reply is incomplete.
 */
function hasDuplicates(elements: readonly SetElement[]): boolean {
  const keys = new Set<string>();
  for (const { key, isIntervalEnd } of elements) keys.add(keyText(key) + (isIntervalEnd ? 'end' : ''));
  return keys.size < elements.length;
}

/** A character for each byte. */
function keyText(key: Uint8Array): string {
  return String.fromCharCode(...key);
}

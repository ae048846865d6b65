/**
 * The elements of sets and maps: `ElementList` writes them, attribute tables read them. Numbers from linux/netfilter/nf_tables.h.
 */
import type { Ip } from '../../model/ip.ts';
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
import {
  ATTRIBUTE_HEADER_BYTES as HEADER_BYTES,
  LITTLE_ENDIAN,
  MessageWriter,
  NLA_F_NESTED,
  malformedMessage,
} from '../codec.ts';
import { PROTOCOL_NUMBERS, type TransportProtocol, writeIp } from '../inet.ts';
import { type AttributeKind, bytes, milliseconds, text, u32be, UNKNOWN } from '../kinds.ts';
import type { NetlinkRequest } from '../request.ts';
import { expressionKind, type NftVerdict, VERDICT } from './expressions.ts';
import {
  commentKind,
  encodeComment,
  type MessageOf,
  nftRequest,
  type OperationName,
  readMessage,
  type TablePlace,
} from './message.ts';

const NFTA_LIST_ELEM = 1;
const NFTA_SET_ELEM_KEY = 1;
const NFTA_SET_ELEM_DATA = 2;
const NFTA_SET_ELEM_FLAGS = 3;
const NFTA_SET_ELEM_TIMEOUT = 4;
const NFTA_SET_ELEM_EXPIRATION = 5;
const NFTA_SET_ELEM_USERDATA = 6;
const NFTA_SET_ELEM_KEY_END = 10;
const NFT_SET_ELEM_INTERVAL_END = 1;
const NFT_SET_ELEM_CATCHALL = 2;
const NFTA_DATA_VALUE = 1;
const NFTA_DATA_VERDICT = 2;
const verdictData = nested(VERDICT);
/** The attribute that holds a message's elements says its length, itself included, in 16 bits. */
const MESSAGE_BYTES = 0xffff - HEADER_BYTES;

/**
 * Elements of one set, written as the kernel wants them into one growing buffer: a start has hundreds of thousands, so
 * nothing is made for an element or a part of it.
 *
 *     list.begin().ip(address).protocol('TCP').port(80).data().ip(endpoint).port(8080).comment('shop/api').end();
 */
export class ElementList extends MessageWriter {
  #element = 0;
  /** Where the key or data begins that is being written; 0 is none, since an element's header comes before any. */
  #section = 0;
  #fields = 0;
  #fieldBytes = 0;
  /** The elements of a service have one comment, and come one after the other. */
  #comment: string | undefined;
  #commentAt = 0;
  #commentBytes = 0;

  constructor(capacity = 1024) {
    super(capacity);
  }

  /** An element, and its key. */
  begin(): this {
    this.#element = this.openNest();
    return this.#open(NFTA_SET_ELEM_KEY);
  }

  /** The element that stands for all keys that have none. */
  beginCatchAll(): this {
    this.#element = this.openNest();
    u32be.write(this, NFTA_SET_ELEM_FLAGS, NFT_SET_ELEM_CATCHALL);
    return this;
  }

  /** From here on, the last key of a range, in a set of concatenations. */
  rangeEnd(): this {
    return this.#open(NFTA_SET_ELEM_KEY_END);
  }

  /** From here on, what a map has for the key. */
  data(): this {
    return this.#open(NFTA_SET_ELEM_DATA);
  }

  ip(ip: Ip): this {
    const bytes = ip.includes(':') ? 16 : 4;
    const at = this.#field(bytes);
    writeIp(ip, this.bytes, at);
    return this;
  }

  protocol(protocol: TransportProtocol): this {
    const at = this.#field(1);
    this.bytes[at] = PROTOCOL_NUMBERS[protocol];
    return this;
  }

  port(port: number): this {
    const at = this.#field(2);
    this.view.setUint16(at, port);
    return this;
  }

  /** A number of `numgen`, which is in the machine's byte order. */
  index(index: number): this {
    const at = this.#field(4);
    this.view.setUint32(at, index, LITTLE_ENDIAN);
    return this;
  }

  /** One field, or all of them with their padding. */
  override raw(value: Uint8Array): this {
    const at = this.#field(value.length);
    this.bytes.set(value, at);
    return this;
  }

  /** What a map of verdicts has for the key. */
  verdict(verdict: NftVerdict): this {
    const data = this.#close().openNest();
    verdictData.write(this, NFTA_DATA_VERDICT, verdict);
    return this.closeNest(data, NFTA_SET_ELEM_DATA);
  }

  comment(comment: string): this {
    this.#close();
    const at = this.used;
    if (comment === this.#comment) {
      this.reserve(this.#commentBytes);
      this.bytes.copyWithin(at, this.#commentAt, this.#commentAt + this.#commentBytes);
    } else {
      this.attribute(NFTA_SET_ELEM_USERDATA, encodeComment(comment));
      this.#comment = comment;
      this.#commentAt = at;
      this.#commentBytes = this.used - at;
    }
    return this;
  }

  /** After which it is deleted. */
  timeout(timeoutMs: number): this {
    milliseconds.write(this.#close(), NFTA_SET_ELEM_TIMEOUT, timeoutMs);
    return this;
  }

  /** What is left of its time-out. */
  expiration(leftMs: number): this {
    milliseconds.write(this.#close(), NFTA_SET_ELEM_EXPIRATION, leftMs);
    return this;
  }

  /** The key is the first that is beyond an interval. */
  intervalEnd(): this {
    u32be.write(this.#close(), NFTA_SET_ELEM_FLAGS, NFT_SET_ELEM_INTERVAL_END);
    return this;
  }

  end(): void {
    this.#close();
    const bytes = this.used - this.#element;
    if (bytes > MESSAGE_BYTES) throw malformedMessage(`an element of ${bytes} bytes`);
    this.closeNest(this.#element, NFTA_LIST_ELEM);
  }

  /** As many whole elements as a message takes, one message after the other. Views, good until the next write. */
  *messages(): Generator<Uint8Array, void, undefined> {
    for (let start = 0; start < this.used; ) {
      let end = start;
      while (end < this.used) {
        const next = end + this.view.getUint16(end, LITTLE_ENDIAN);
        if (next - start > MESSAGE_BYTES) break;
        end = next;
      }
      yield this.bytes.subarray(start, end);
      start = end;
    }
  }

  #open(type: number): this {
    this.#close();
    const at = this.reserve(2 * HEADER_BYTES);
    this.view.setUint16(at + 2, type | NLA_F_NESTED, LITTLE_ENDIAN);
    this.view.setUint16(at + 6, NFTA_DATA_VALUE, LITTLE_ENDIAN);
    this.#section = at;
    this.#fields = 0;
    return this;
  }

  #field(bytes: number): number {
    this.#fields += 1;
    this.#fieldBytes = bytes;
    return this.reserve(bytes);
  }

  /** A single field is as long as it is; of a concatenation, the last one too is padded. */
  #close(): this {
    const at = this.#section;
    if (at === 0) return this;
    const padded = this.used - at - HEADER_BYTES;
    this.view.setUint16(at, padded + HEADER_BYTES, LITTLE_ENDIAN);
    const exact = this.#fields === 1 ? HEADER_BYTES + this.#fieldBytes : padded;
    this.view.setUint16(at + HEADER_BYTES, exact, LITTLE_ENDIAN);
    this.#section = 0;
    return this;
  }
}

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

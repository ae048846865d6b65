/**
 * Elements of one set, written as the kernel wants them into one growing buffer: a start has hundreds of thousands, so
 * nothing is made for an element or a part of it. Numbers from linux/netfilter/nf_tables.h.
 *
 *     list.begin().ip(address).protocol('TCP').port(80).data().ip(endpoint).port(8080).comment('shop/api').end();
 */
import type { Ip } from '../../model/ip.ts';
import {
  ATTRIBUTE_HEADER_BYTES as HEADER_BYTES,
  LITTLE_ENDIAN,
  MessageWriter,
  NLA_F_NESTED,
  malformedMessage,
} from '../codec.ts';
import { nested } from '../attributes.ts';
import { PROTOCOL_NUMBERS, type TransportProtocol, writeIp } from '../inet.ts';
import { milliseconds, u32be } from '../kinds.ts';
import { type NftVerdict, VERDICT } from './expressions.ts';
import { encodeComment } from './message.ts';

const NFTA_LIST_ELEM = 1;
const NFTA_SET_ELEM_KEY = 1;
const NFTA_SET_ELEM_DATA = 2;
const NFTA_SET_ELEM_FLAGS = 3;
const NFTA_SET_ELEM_TIMEOUT = 4;
const NFTA_SET_ELEM_EXPIRATION = 5;
const NFTA_SET_ELEM_USERDATA = 6;
const NFTA_SET_ELEM_KEY_END = 10;
export const NFT_SET_ELEM_INTERVAL_END = 1;
const NFT_SET_ELEM_CATCHALL = 2;
const NFTA_DATA_VALUE = 1;
const NFTA_DATA_VERDICT = 2;
const verdictData = nested(VERDICT);
/** The attribute that holds a message's elements says its length, itself included, in 16 bits. */
const MESSAGE_BYTES = 0xffff - HEADER_BYTES;

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

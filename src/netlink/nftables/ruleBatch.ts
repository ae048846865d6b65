/**
 * A transaction whose messages are written before it is known which numbers they get: rules that are bytes already go
 * straight into the datagram. A cold start of iptables mode writes 130,000 of them.
 */
import { errnoName } from '../../system/libc.ts';
import {
  decodeErrno,
  forEachMessage,
  LITTLE_ENDIAN,
  type Message,
  MessageWriter,
  NLA_F_NESTED,
  NLM_F_ACK,
  NLM_F_CREATE,
  NLM_F_REQUEST,
  NLMSG_ERROR,
  viewOf,
} from '../codec.ts';
import { u32be } from '../kinds.ts';
import { type NetlinkRequest, writeMessage } from '../request.ts';
import { nfgenmsg, nftType, operationOf, type TablePlace } from './message.ts';
import { decodeRuleHandle } from './objects.ts';
import {
  batchBegin,
  batchEnd,
  type CommitRefusal,
  commitReply,
  type NetlinkTransaction,
  NLM_F_APPEND,
} from './transaction.ts';

/** The kernel says what it made of the message, to whoever sent it. linux/netlink.h */
const NLM_F_ECHO = 0x08;
const FLAGS_OFFSET = 6;
const SEQUENCE_OFFSET = 8;
/** NFTA_CHAIN_TABLE and NFTA_RULE_TABLE. */
const NFTA_TABLE = 1;
const NFTA_CHAIN_NAME = 3;
const NFTA_RULE_CHAIN = 2;
const NFTA_RULE_EXPRESSIONS = 4;
const NFTA_RULE_COMPAT = 5;
const NFTA_RULE_COMPAT_PROTO = 1;
const NFTA_RULE_COMPAT_FLAGS = 2;
const NFT_RULE_COMPAT_F_INV = 2;

interface RuleBytes {
  /** What is inside of NFTA_RULE_EXPRESSIONS. */
  readonly bytes: Uint8Array;
  readonly compat: { readonly protocol: number; readonly isInverted: boolean } | undefined;
}

interface RulePlacement {
  readonly place: 'head' | 'end';
  /** Its handle is wanted. */
  readonly isEchoed: boolean;
}

const NEW_CHAIN = nftType('new chain');
const NEW_RULE = nftType('new rule');
const DELETE_RULE = nftType('delete rule');

export class RuleBatch {
  readonly #writer: MessageWriter;
  /** The family and the table: how each message about a chain or a rule begins. */
  readonly #prefix: Uint8Array;
  /** Where the last message begins. */
  #last = 0;
  #messages = 0;

  /** `generation`: nothing is done when the kernel is at another one. */
  constructor({ family, table }: TablePlace, capacity: number, generation?: number) {
    this.#writer = new MessageWriter(capacity);
    this.#prefix = new MessageWriter(64).raw(nfgenmsg(family)).string(NFTA_TABLE, table).finish().slice();
    writeMessage(this.#writer, batchBegin(generation), 0, false);
  }

  get length(): number {
    return this.#writer.length;
  }

  add(request: NetlinkRequest): void {
    this.#last = this.length;
    writeMessage(this.#writer, request, ++this.#messages, false);
  }

  // The kinds of which there are many are written by hand: by their tables of attributes it takes three times as long.
  /** Unless it is there. */
  addChain(chain: string): void {
    const start = this.#open(NEW_CHAIN, NLM_F_CREATE);
    this.#writer.string(NFTA_CHAIN_NAME, chain).closeMessage(start);
  }

  /** Deletes all rules of the chain. */
  flushChain(chain: string): void {
    const start = this.#open(DELETE_RULE, 0);
    this.#writer.string(NFTA_RULE_CHAIN, chain).closeMessage(start);
  }

  addRule(chain: string, { place, isEchoed }: RulePlacement, { bytes, compat }: RuleBytes): void {
    const flags = NLM_F_CREATE | (place === 'end' ? NLM_F_APPEND : 0) | (isEchoed ? NLM_F_ECHO : 0);
    const start = this.#open(NEW_RULE, flags);
    const writer = this.#writer;
    writer.string(NFTA_RULE_CHAIN, chain).attribute(NFTA_RULE_EXPRESSIONS | NLA_F_NESTED, bytes);
    if (compat) writeCompat(writer, compat);
    writer.closeMessage(start);
  }

  #open(type: number, flags: number): number {
    this.#last = this.length;
    const start = this.#writer.openMessage(type, NLM_F_REQUEST | flags, ++this.#messages);
    this.#writer.raw(this.#prefix);
    return start;
  }

  /** To be called once, and what it returns too. `onHandle`: of the message in this place, which added a rule. */
  finish(onHandle: (place: number, handle: bigint) => void = () => undefined): NetlinkTransaction {
    writeMessage(this.#writer, batchEnd(), this.#messages + 1, false);
    const bytes = this.#writer.finish();
    const view = viewOf(bytes);
    const flags = this.#last + FLAGS_OFFSET;
    view.setUint16(flags, view.getUint16(flags, LITTLE_ENDIAN) | NLM_F_ACK, LITTLE_ENDIAN);
    const count = this.#messages;
    return (sequence) => {
      const begin = sequence.next();
      for (let number = 0; number <= count; number++) sequence.next();
      const numberOf = (place: number): number => (begin + place) >>> 0;
      forEachMessage(bytes, (_, offset) => {
        const place = view.getUint32(offset + SEQUENCE_OFFSET, LITTLE_ENDIAN);
        view.setUint32(offset + SEQUENCE_OFFSET, numberOf(place), LITTLE_ENDIAN);
      });
      const refusals: CommitRefusal[] = [];
      const take = ({ type, sequence: number, payload }: Message): void => {
        const place = (number - begin) >>> 0;
        if (place > count) return; // it answers a transaction before
        if (type === NLMSG_ERROR) {
          const errno = decodeErrno(payload);
          const operation = place === 0 ? undefined : place - 1;
          if (errno !== 0) refusals.push({ operation, errno, name: errnoName(errno) });
        } else if (operationOf({ type }) === 'new rule') onHandle(place - 1, decodeRuleHandle(payload));
      };
      return {
        bytes,
        exchanges: count === 0 ? [] : [{ bytes: bytes.length, last: numberOf(count), begin }],
        take: (messages) => {
          for (const message of messages) take(message);
        },
        result: () => commitReply(refusals),
      };
    };
  }
}

function writeCompat(writer: MessageWriter, compat: NonNullable<RuleBytes['compat']>): void {
  const start = writer.openNest();
  u32be.write(writer, NFTA_RULE_COMPAT_PROTO, compat.protocol);
  u32be.write(writer, NFTA_RULE_COMPAT_FLAGS, compat.isInverted ? NFT_RULE_COMPAT_F_INV : 0);
  writer.closeNest(start, NFTA_RULE_COMPAT);
}

/**
 * Chains whose rules are dumped, digested and compared in the thread that owns the sockets: of 40,000 chains that are as they
 * should be, the thread that asks gets nothing but that.
 */
import {
  align,
  decodeErrno,
  forEachMessage,
  HEADER_BYTES,
  isEnd,
  LITTLE_ENDIAN,
  MessageWriter,
  NLM_F_DUMP,
  NLM_F_DUMP_INTR,
  NLM_F_REQUEST,
  viewOf,
} from '../codec.ts';
import { exchange, type Sequence } from '../request.ts';
import { nfgenmsg, nftType, type TablePlace } from '../nftables/message.ts';
import { ChainDigester, findExpressions, type RuleBounds, RuleDigester } from '../nftables/ruleDigest.ts';
import type { DatagramSocket } from '../socket.ts';

/** Dumps of chains, one message each, and the digests that they should have, without names. */
export interface ChainQuestions {
  readonly requests: Uint8Array<ArrayBuffer>;
  readonly digests: Float64Array<ArrayBuffer>;
}

/** A chain that is not as it should be; one that is not there is as one without rules. */
export interface ComparedChain {
  /** Among the questions. */
  readonly place: number;
  /** 0 where the kernel answered. */
  readonly errno: number;
  /** Something changed during the dump: ask again. */
  readonly isInterrupted: boolean;
}

const SEQUENCE_OFFSET = 8;
const NFTA_RULE_TABLE = 1;
const NFTA_RULE_CHAIN = 2;
const BYTES_PER_QUESTION = 80;
const WORDS_PER_CHAIN = 3;

/** Questions about chains of one table, to be asked in one go. */
export class ChainQuestionList {
  readonly #prefix: Uint8Array;
  readonly #writer: MessageWriter;
  readonly #digests: Float64Array<ArrayBuffer>;
  #size = 0;

  constructor({ family, table }: TablePlace, most: number) {
    this.#prefix = new MessageWriter(64)
      .raw(nfgenmsg(family))
      .string(NFTA_RULE_TABLE, table)
      .finish()
      .slice();
    this.#writer = new MessageWriter(most * BYTES_PER_QUESTION);
    this.#digests = new Float64Array(most);
  }

  get size(): number {
    return this.#size;
  }

  add(chain: string, digest: number): void {
    const start = this.#writer.openMessage(nftType('get rule'), NLM_F_REQUEST | NLM_F_DUMP, 0);
    this.#writer.raw(this.#prefix).string(NFTA_RULE_CHAIN, chain).closeMessage(start);
    this.#digests[this.#size++] = digest;
  }

  /** To be called once. */
  finish(sequence: Sequence): ChainQuestions {
    const requests = this.#writer.finish();
    forEachMessage(requests, (view, offset) =>
      view.setUint32(offset + SEQUENCE_OFFSET, sequence.next(), LITTLE_ENDIAN),
    );
    return { requests, digests: this.#digests };
  }
}

/** Those that differ, as `readCompared` reads them. */
export async function compareChains(
  socket: DatagramSocket,
  { requests, digests }: ChainQuestions,
): Promise<Uint8Array<ArrayBuffer>> {
  const reader = new ChainDigestReader();
  const words: number[] = [];
  const view = viewOf(requests);
  for (let offset = 0, place = 0; offset < requests.length; place++) {
    const length = view.getUint32(offset, LITTLE_ENDIAN);
    const last = view.getUint32(offset + SEQUENCE_OFFSET, LITTLE_ENDIAN);
    reader.begin(last);
    const request = requests.subarray(offset, offset + length);
    for await (const datagram of exchange(socket, request, [{ bytes: length, last, isDump: true }]))
      reader.take(datagram);
    const isSame = reader.end() === digests[place];
    if (!isSame || reader.errno !== 0 || reader.isInterrupted)
      words.push(place, reader.errno, reader.isInterrupted ? 1 : 0);
    offset += align(length);
  }
  return new Uint8Array(Uint32Array.from(words).buffer);
}

export function readCompared(bytes: Uint8Array): readonly ComparedChain[] {
  const view = viewOf(bytes);
  const word = (at: number): number => view.getUint32(at * 4, LITTLE_ENDIAN);
  return Array.from({ length: bytes.length / (4 * WORDS_PER_CHAIN) }, (_, index) => {
    const at = index * WORDS_PER_CHAIN;
    return { place: word(at), errno: word(at + 1), isInterrupted: word(at + 2) !== 0 };
  });
}

/** The digest of one chain after another. */
class ChainDigestReader {
  readonly #rules = new RuleDigester();
  readonly #chain = new ChainDigester();
  readonly #bounds: RuleBounds = { start: 0, end: 0, handleHigh: 0, handleLow: 0 };
  #sequence = 0;
  errno = 0;
  isInterrupted = false;

  begin(sequence: number): void {
    this.#sequence = sequence;
    this.errno = 0;
    this.isInterrupted = false;
    this.#chain.begin('');
  }

  take(datagram: Uint8Array): void {
    forEachMessage(datagram, (view, offset, length) => {
      // Others answer a request that timed out before.
      if (view.getUint32(offset + SEQUENCE_OFFSET, LITTLE_ENDIAN) !== this.#sequence) return;
      if ((view.getUint16(offset + 6, LITTLE_ENDIAN) & NLM_F_DUMP_INTR) !== 0) this.isInterrupted = true;
      if (isEnd(view.getUint16(offset + 4, LITTLE_ENDIAN))) {
        if (length > HEADER_BYTES)
          this.errno = decodeErrno(datagram.subarray(offset + HEADER_BYTES, offset + length));
        return;
      }
      findExpressions(view, offset, length, this.#bounds);
      const { high, low } = this.#rules.digestAt(view, this.#bounds.start, this.#bounds.end);
      this.#chain.take(high, low);
    });
  }

  end(): number {
    return this.#chain.end();
  }
}

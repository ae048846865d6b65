/**
 * Rules that are dumped, reduced to their digests and handles where they arrive: 110,000 rules are 43 MB, of which the thread
 * that asked gets 2 MB.
 */
import {
  ByteBuffer,
  decodeErrno,
  forEachMessage,
  isEnd,
  LITTLE_ENDIAN,
  NLM_F_DUMP_INTR,
  viewOf,
} from '../codec.ts';
import { findExpressions, type RuleBounds, RuleDigester } from './ruleDigest.ts';

/** The rules of one chain, in their order. */
interface ReducedRules {
  /** Of the request. */
  readonly sequence: number;
  /** 0 where the kernel answered. */
  readonly errno: number;
  /** Something changed during the dump: ask again. */
  readonly interrupted: boolean;
  /** Of each rule, two words of digest, the high one first, and two of its handle. */
  readonly words: Uint32Array;
}

export const WORDS_PER_RULE = 4;
const WORD_BYTES = 4;
/** Sequence, errno, whether interrupted, number of rules. */
const HEAD_WORDS = 4;
const FIRST_BYTES = 1 << 14;
const HEADER_BYTES = 16;

/** In one thread it takes datagrams; `readReduced` reads the result in another. */
export class RuleReducer extends ByteBuffer {
  readonly #digester = new RuleDigester();
  readonly #bounds: RuleBounds = { start: 0, end: 0, handleHigh: 0, handleLow: 0 };
  #head = -1;
  #count = 0;
  #interrupted = 0;

  constructor() {
    super(FIRST_BYTES);
  }

  add(datagram: Uint8Array): void {
    forEachMessage(datagram, (view, offset, length) => {
      const sequence = view.getUint32(offset + 8, LITTLE_ENDIAN);
      if (this.#head < 0) this.#head = this.reserve(HEAD_WORDS * WORD_BYTES);
      if ((view.getUint16(offset + 6, LITTLE_ENDIAN) & NLM_F_DUMP_INTR) !== 0) this.#interrupted = 1;
      if (!isEnd(view.getUint16(offset + 4, LITTLE_ENDIAN))) {
        this.#takeRule(view, offset, length);
        return;
      }
      const payload = datagram.subarray(offset + HEADER_BYTES, offset + length);
      this.#end(sequence, payload.length === 0 ? 0 : decodeErrno(payload));
    });
  }

  finish(): Uint8Array<ArrayBuffer> {
    return this.bytes.slice(0, this.used);
  }

  #takeRule(view: DataView, offset: number, length: number): void {
    findExpressions(view, offset, length, this.#bounds);
    const { start, end, handleHigh, handleLow } = this.#bounds;
    const { high, low } = this.#digester.digestAt(view, start, end);
    const at = this.reserve(WORDS_PER_RULE * WORD_BYTES);
    for (const [index, word] of [high, low, handleHigh, handleLow].entries())
      this.view.setUint32(at + index * WORD_BYTES, word, LITTLE_ENDIAN);
    this.#count++;
  }

  #end(sequence: number, errno: number): void {
    for (const [index, word] of [sequence, errno, this.#interrupted, this.#count].entries())
      this.view.setUint32(this.#head + index * WORD_BYTES, word, LITTLE_ENDIAN);
    this.#head = -1;
    this.#count = 0;
    this.#interrupted = 0;
  }
}

export function* readReduced(bytes: Uint8Array): Generator<ReducedRules> {
  const view = viewOf(bytes);
  const all = new Uint32Array(bytes.length / WORD_BYTES);
  for (let index = 0; index < all.length; index++)
    all[index] = view.getUint32(index * WORD_BYTES, LITTLE_ENDIAN);
  for (let at = 0; at + HEAD_WORDS <= all.length; ) {
    const [sequence = 0, errno = 0, interrupted = 0, count = 0] = all.subarray(at, at + HEAD_WORDS);
    const end = at + HEAD_WORDS + count * WORDS_PER_RULE;
    yield { sequence, errno, interrupted: interrupted !== 0, words: all.subarray(at + HEAD_WORDS, end) };
    at = end;
  }
}

/** The registers of a rule, as far as it is known what is in them. Sixteen words of four bytes. */
import { wordsOf } from '../../../netlink/nftables/expressions.ts';

const WORDS = 16;
const WORD_BYTES = 4;
/** From here on a number is that of a word; the numbers from 1 to 4 are those of four words each. */
const FIRST_WORD = 8;
const WORDS_PER_REGISTER = 4;

/** Where a register begins, in words. `undefined`: there is none of this number. */
export function wordOf(register: number): number | undefined {
  const word = register >= FIRST_WORD ? register - FIRST_WORD : (register - 1) * WORDS_PER_REGISTER;
  return word >= 0 && word < WORDS ? word : undefined;
}

export class Registers {
  readonly #bytes: Uint8Array;
  /** A bit for each word. */
  #known: number;

  constructor(before?: Registers) {
    this.#bytes = before ? before.#bytes.slice() : new Uint8Array(WORDS * WORD_BYTES);
    this.#known = before ? before.#known : 0;
  }

  /** What is shorter than its words is followed by zeros. `undefined`: something unknown, of at most so many bytes. */
  put(register: number, value: Uint8Array | undefined, unknownBytes = WORD_BYTES): void {
    const first = wordOf(register);
    if (first === undefined) return;
    const words = Math.min(wordsOf(value?.length ?? unknownBytes), WORDS - first);
    const at = first * WORD_BYTES;
    this.#bytes.fill(0, at, at + words * WORD_BYTES);
    if (value) this.#bytes.set(value.subarray(0, words * WORD_BYTES), at);
    const bits = ((1 << words) - 1) << first;
    this.#known = value ? this.#known | bits : this.#known & ~bits;
  }

  /** `undefined`: a part of it is not known. */
  get(register: number, length: number): Uint8Array | undefined {
    const first = wordOf(register);
    if (first === undefined) return undefined;
    const words = wordsOf(length);
    if (first + words > WORDS) return undefined;
    const bits = ((1 << words) - 1) << first;
    if ((this.#known & bits) !== bits) return undefined;
    return this.#bytes.slice(first * WORD_BYTES, first * WORD_BYTES + length);
  }
}

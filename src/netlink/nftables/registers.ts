/**
 * The registers of a rule: sixteen words of four bytes, each of which is addressed as 8 and following. Where four of
 * them begin that a 16-byte register of old covers, the kernel and nft say 1 to 4 instead, so that is the one number
 * that a register has here.
 */
export type Register = number;

/** What is put there is done. */
export const VERDICT_REGISTER: Register = 0;

const FIRST_WORD = 8;
const WORD_BYTES = 4;
const WORDS_PER_REGISTER = 4;

/** The register that begins so many words after the first. */
export function registerAt(word: number): Register {
  return word % WORDS_PER_REGISTER === 0 ? word / WORDS_PER_REGISTER + 1 : FIRST_WORD + word;
}

/** How many registers of four bytes something takes. Each part of a concatenation starts in one of its own. */
export function wordsOf(bytes: number): number {
  return Math.ceil(bytes / WORD_BYTES);
}

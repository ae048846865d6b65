/**
 * One copy of each text that many objects repeat: namespaces, node names, zones, names of ports.
 *
 * A text that is known costs no decoding and no memory. Each slot holds one text, and the next with the same hash
 * replaces it: the table never holds more than its slots, whatever names a cluster makes up.
 */
const SLOTS = 4096;
/** Longer ones are rarely repeated. */
const LONGEST = 64;

export class StringTable {
  readonly #slots: string[] = Array.from({ length: SLOTS }, () => '');

  /** The UTF-8 text between two places of a buffer. */
  text(bytes: Buffer, from: number, end: number): string {
    const length = end - from;
    if (length === 0) return '';
    if (length > LONGEST) return bytes.toString('utf8', from, end);
    let hash = length;
    for (let at = from; at < end; at++) hash = (Math.imul(hash, 31) + (bytes[at] ?? 0)) | 0;
    const slot = (hash ^ (hash >>> 15)) & (SLOTS - 1);
    const known = this.#slots[slot] ?? '';
    if (known.length === length && isSame(known, bytes, from)) return known;
    const text = bytes.toString('utf8', from, end);
    this.#slots[slot] = text;
    return text;
  }
}

/** Only ASCII can be: the other characters have more bytes than characters. */
function isSame(text: string, bytes: Buffer, from: number): boolean {
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code !== bytes[from + index] || code > 0x7f) return false;
  }
  return true;
}

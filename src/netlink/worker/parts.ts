/** Many small datagrams as a few large pieces: handing a piece to another thread costs more than its bytes. */

/** What the other thread decodes without being held up. */
const PART_BYTES = 1 << 18;
const FIRST_BYTES = 1 << 12;

export class Parts {
  readonly #emit: (bytes: Uint8Array<ArrayBuffer>) => void;
  #bytes = new Uint8Array(FIRST_BYTES);
  #length = 0;

  constructor(emit: (bytes: Uint8Array<ArrayBuffer>) => void) {
    this.#emit = emit;
  }

  add(datagram: Uint8Array): void {
    // The last message of a datagram is not padded, and another one follows here.
    const end = this.#length + ((datagram.length + 3) & ~3);
    if (end > PART_BYTES && this.#length > 0) {
      this.flush();
      this.add(datagram);
      return;
    }
    if (end > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(end, Math.min(this.#bytes.length * 4, PART_BYTES)));
      larger.set(this.#bytes.subarray(0, this.#length));
      this.#bytes = larger;
    }
    this.#bytes.set(datagram, this.#length);
    this.#length = end;
  }

  flush(): void {
    if (this.#length === 0) return;
    this.#emit(this.#bytes.subarray(0, this.#length));
    this.#bytes = new Uint8Array(FIRST_BYTES);
    this.#length = 0;
  }
}

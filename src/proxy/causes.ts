/** Why a sync was made, for its line in the log: the first few causes in words, and how many more there were. */
const MOST = 3;

export class Causes {
  #texts: string[] = [];
  #more = 0;

  /** Makes no text once there are enough; `undefined`: it was no cause. */
  add(describe: () => string | undefined): void {
    if (this.#texts.length >= MOST) {
      this.#more++;
      return;
    }
    const text = describe();
    if (text !== undefined && !this.#texts.includes(text)) this.#texts.push(text);
  }

  /** The same cause again is no other one; `undefined`: there is none to name. */
  note(text: string | undefined): void {
    if (text !== undefined && !this.#texts.includes(text)) this.add(() => text);
  }

  /** Empty where nothing is known. */
  print(): string {
    const shown = this.#texts.join('; ');
    return this.#more > 0 ? `${shown}; and ${this.#more} more` : shown;
  }

  take(): Causes {
    const taken = new Causes();
    taken.join(this);
    this.#texts = [];
    this.#more = 0;
    return taken;
  }

  join(other: Causes): void {
    for (const text of other.#texts) this.note(text);
    this.#more += other.#more;
  }
}

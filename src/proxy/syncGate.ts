/** Lets work that reads what was written wait until no sync is under way. What is posted then is answered before the next one writes. */
export class SyncGate {
  #syncs = 0;
  readonly #waiting: (() => void)[] = [];

  async during<T>(sync: () => Promise<T>): Promise<T> {
    this.#syncs++;
    try {
      return await sync();
    } finally {
      this.#syncs--;
      if (this.isOpen) for (const go of this.#waiting.splice(0)) go();
    }
  }

  get isOpen(): boolean {
    return this.#syncs === 0;
  }

  async opened(): Promise<void> {
    while (!this.isOpen)
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
      });
  }
}

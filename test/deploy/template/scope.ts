/** The variables of a template, from where they are declared to the end of the block around. */
export class Scope {
  readonly #own = new Map<string, unknown>();
  readonly #outer: Scope | undefined;

  constructor(outer?: Scope) {
    this.#outer = outer;
  }

  with(name: string, value: unknown): this {
    this.#own.set(name, value);
    return this;
  }

  get(name: string): unknown {
    return this.#holder(name).#own.get(name);
  }

  assign(name: string, value: unknown): void {
    this.#holder(name).with(name, value);
  }

  #holder(name: string): Scope {
    if (this.#own.has(name)) return this;
    if (!this.#outer) throw new Error(`template: there is no ${name}`);
    return this.#outer.#holder(name);
  }
}

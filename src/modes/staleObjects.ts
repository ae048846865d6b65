/** Deletes what other modes left, once the first rules of every served family are in the kernel. */
import type { Family } from '../model/ip.ts';
import type { FamilySupport } from './mode.ts';

export class StaleObjects {
  readonly #waiting: Set<Family>;
  readonly #remove: () => Promise<void>;
  #removing = Promise.resolve();

  constructor(served: readonly Family[], remove: () => Promise<void>) {
    this.#waiting = new Set(served);
    this.#remove = remove;
  }

  /** Resolves when they are deleted; at once while another family has no rules yet. */
  ready(family: Family): Promise<void> {
    this.#waiting.delete(family);
    if (this.#waiting.size === 0) this.#removing = this.#remove();
    return this.#removing;
  }

  async close(): Promise<void> {
    await this.#removing;
  }
}

export function servedFamilies(families: readonly FamilySupport[]): readonly Family[] {
  return families.filter(({ answer }) => answer.state === 'works').map(({ family }) => family);
}

/**
 * Any number of edits, in transactions of about the size that the kernel takes well. While the kernel has one, the next
 * is made ready, and no more than that is in memory.
 */
import type { ServicePortId } from '../../../model/servicePort.ts';
import type { Committer } from './committer.ts';
import { type Edit, isEmpty, sizeOf } from './edit.ts';
import type { TableSet } from './rule.ts';

/** With more than this it is not they who are to blame. */
const MOST_REFUSED = 100;

export class EditStream {
  readonly #committer: Committer;
  readonly #sets: ReadonlyMap<string, TableSet>;
  readonly #refused = new Map<ServicePortId, Error>();
  #elements = 0;
  #group: Edit[] = [];
  #size = 0;
  #underWay = Promise.resolve();

  constructor(committer: Committer, sets: ReadonlyMap<string, TableSet>) {
    this.#committer = committer;
    this.#sets = sets;
  }

  /** How many have come and gone. */
  get elements(): number {
    return this.#elements;
  }

  get refused(): ReadonlyMap<ServicePortId, Error> {
    return this.#refused;
  }

  /** Something to wait for when a transaction is full; nothing until then. */
  add(edit: Edit): Promise<void> | undefined {
    if (isEmpty(edit)) return undefined;
    this.#group.push(edit);
    this.#size += sizeOf(edit);
    return this.#size < this.#committer.chunk ? undefined : this.#send();
  }

  /** Answers when the kernel has everything. */
  async flush(): Promise<void> {
    await this.#send();
    await this.#underWay;
  }

  async #send(): Promise<void> {
    const group = this.#group;
    this.#elements += this.#size;
    this.#group = [];
    this.#size = 0;
    await this.#underWay;
    this.#underWay = this.#commit(group);
    this.#underWay.catch(() => undefined); // told to who sends the next one
  }

  async #commit(group: readonly Edit[]): Promise<void> {
    for (const [id, error] of await this.#committer.commitEdits(group, this.#sets)) {
      this.#refused.set(id, error);
      if (this.#refused.size > MOST_REFUSED) throw error;
    }
  }
}

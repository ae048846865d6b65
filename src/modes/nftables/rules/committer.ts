/**
 * Commits many edits in transactions that are short enough for the kernel's lock, and finds out whose edit it was
 * when one is refused.
 *
 * How many elements take how long differs from machine to machine, so it is measured.
 */
import { JunctionError } from '../../../errors.ts';
import type { ServicePortId } from '../../../model/serviceTracker.ts';
import { type ElementEdit, editOperations, isEmptyEdit, editSize } from './diff.ts';
import type { TableSet } from './rule.ts';
import type { TransactionOutcome, NftClient, TableTransaction } from './transaction.ts';

/** One commit should hold the lock no longer than twice this, also when the next elements are slower than the last. */
const LONG_MS = 25;
const FIRST_ELEMENTS = 2000;
const MOST_ELEMENTS = 20_000;
const FEWEST_ELEMENTS = 200;

export class Committer {
  readonly #client: Pick<NftClient, 'commit'>;
  readonly #now: () => number;
  #elements: number;
  transactions = 0;

  constructor(client: Pick<NftClient, 'commit'>, now: () => number, elements = FIRST_ELEMENTS) {
    this.#client = client;
    this.#elements = elements;
    this.#now = now;
  }

  /** How many elements one transaction should have. */
  get chunk(): number {
    return this.#elements;
  }

  /** Throws when it is refused: it belongs to no service port. */
  async commit(transaction: TableTransaction): Promise<void> {
    const outcome = await this.attempt(transaction);
    if (outcome.state === 'done') return;
    // A rule may also ask for something that this kernel does not have.
    if (outcome.operation?.kind !== 'addRule') throwIfChanged(outcome.name);
    throw new JunctionError('NFTABLES_REFUSED', `nftables refuses the table: ${outcome.name}`, {
      detail: JSON.stringify(outcome.operation)?.slice(0, 2000) ?? '',
    });
  }

  async attempt(transaction: TableTransaction): Promise<TransactionOutcome> {
    if (transaction.length === 0) return { state: 'done' };
    this.transactions++;
    return this.#client.commit(transaction);
  }

  /** A service port's edit is never split. Returns whose edits the kernel refused. */
  async commitEdits(
    edits: readonly ElementEdit[],
    sets: ReadonlyMap<string, TableSet>,
  ): Promise<ReadonlyMap<ServicePortId, Error>> {
    if (edits.length === 0) return new Map();
    const started = this.#now();
    this.transactions++;
    const outcome = await this.#client.commit(editOperations(edits, sets));
    if (outcome.state === 'done') {
      this.#learn(edits, this.#now() - started);
      return new Map();
    }
    throwIfChanged(outcome.name);
    const [first] = edits;
    if (edits.length === 1 && first) return this.#blame(first, outcome.name);
    const middle = edits.length >> 1;
    const left = await this.commitEdits(edits.slice(0, middle), sets);
    const right = await this.commitEdits(edits.slice(middle), sets);
    return new Map([...left, ...right]);
  }

  #blame({ owner }: ElementEdit, name: string): ReadonlyMap<ServicePortId, Error> {
    const error = new JunctionError('NFTABLES_REFUSED', `nftables refuses its elements: ${name}`);
    if (owner === undefined) throw error;
    return new Map([[owner, error]]);
  }

  #learn(edits: readonly ElementEdit[], milliseconds: number): void {
    const elements = edits.reduce((sum, edit) => sum + editSize(edit), 0);
    if (elements < this.#elements / 2) return;
    if (milliseconds > LONG_MS) this.#elements = Math.max(FEWEST_ELEMENTS, this.#elements >> 1);
    else if (milliseconds < LONG_MS / 2) this.#elements = Math.min(MOST_ELEMENTS, this.#elements * 2);
  }
}

/**
 * What was just found or made is gone, so no service port is at fault. To bisect would take long: the
 * kernel needs some 20 ms to refuse a transaction.
 */
function throwIfChanged(name: string): void {
  if (name === 'ENOENT')
    throw new JunctionError('NFTABLES_CHANGED', 'nftables: the table was changed while it was being written');
}

/*
 * Any number of edits, in transactions of about the size that the kernel takes well. While the kernel has one, the next
 * is made ready, and no more than that is in memory.
 */

/** With more than this, the service ports are not the cause. */
const MOST_REFUSED = 100;

export class EditStream {
  readonly #committer: Committer;
  readonly #sets: ReadonlyMap<string, TableSet>;
  readonly #refused = new Map<ServicePortId, Error>();
  #elements = 0;
  #group: ElementEdit[] = [];
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
  add(edit: ElementEdit): Promise<void> | undefined {
    if (isEmptyEdit(edit)) return undefined;
    this.#group.push(edit);
    this.#size += editSize(edit);
    return this.#size < this.#committer.chunk ? undefined : this.#send();
  }

  /** Resolves when the kernel has everything. */
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
    this.#underWay.catch(() => undefined); // thrown to the caller that sends the next one
  }

  async #commit(group: readonly ElementEdit[]): Promise<void> {
    for (const [id, error] of await this.#committer.commitEdits(group, this.#sets)) {
      this.#refused.set(id, error);
      if (this.#refused.size > MOST_REFUSED) throw error;
    }
  }
}

export function* slices<T>(items: readonly T[], size: number): Generator<readonly T[]> {
  for (let start = 0; start < items.length; start += size) yield items.slice(start, start + size);
}

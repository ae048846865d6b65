/**
 * Commits many edits in transactions that are short enough for the kernel's lock, and finds out whose edit it was
 * when one is refused.
 *
 * How many elements take how long differs from machine to machine, so it is measured.
 */
import { JunctionError } from '../../../errors.ts';
import type { ServicePortId } from '../../../model/serviceTracker.ts';
import { editOperations, editSize } from './table.ts';
import type {
  ElementEdit,
  NftClient,
  SetsByName,
  TableTransaction,
  TransactionOutcome,
  TransactionRefusal,
} from './table.ts';

/** One commit should hold the lock no longer than twice this, also when the next elements are slower than the last. */
const LONG_MS = 25;
const FIRST_ELEMENTS = 2000;
/** More of them, while they wait for the kernel, are more than the young generation holds. */
const MOST_ELEMENTS = 5000;
const FEWEST_ELEMENTS = 200;

export class Committer {
  readonly #client: Pick<NftClient, 'commit'>;
  readonly #now: () => number;
  readonly #onCommit: ((transaction: TableTransaction) => void) | undefined;
  #chunk = FIRST_ELEMENTS;

  /** `onCommit` is called with every transaction that the kernel took. */
  constructor(
    client: Pick<NftClient, 'commit'>,
    now: () => number,
    onCommit?: (transaction: TableTransaction) => void,
  ) {
    this.#client = client;
    this.#now = now;
    this.#onCommit = onCommit;
  }

  /** How many elements a transaction should have. */
  get chunk(): number {
    return this.#chunk;
  }

  /** Throws when it is refused: it belongs to no service port. */
  async commit(transaction: TableTransaction): Promise<void> {
    const outcome = await this.attempt(transaction);
    if (outcome.state === 'done') return;
    throw refusalOf(outcome, true).error;
  }

  async attempt(transaction: TableTransaction): Promise<TransactionOutcome> {
    if (transaction.length === 0) return { state: 'done' };
    const outcome = await this.#client.commit(transaction);
    if (outcome.state === 'done') this.#onCommit?.(transaction);
    return outcome;
  }

  /** A service port's edit is never split. Returns whose edits the kernel refused. */
  async commitEdits(
    edits: readonly ElementEdit[],
    sets: SetsByName,
  ): Promise<ReadonlyMap<ServicePortId, Error>> {
    const [first] = edits;
    if (!first) return new Map();
    const started = this.#now();
    const outcome = await this.attempt(editOperations(edits, sets));
    if (outcome.state === 'done') {
      this.#learn(edits, this.#now() - started);
      return new Map();
    }
    const { error, isExplicable } = refusalOf(outcome, true);
    // To bisect takes long: the kernel needs some 20 ms to refuse a transaction.
    if (!isExplicable && outcome.name !== 'EEXIST') throw error;
    if (edits.length === 1) {
      if (first.owner === undefined) throw error;
      return new Map([[first.owner, error]]);
    }
    const middle = edits.length >> 1;
    const left = await this.commitEdits(edits.slice(0, middle), sets);
    const right = await this.commitEdits(edits.slice(middle), sets);
    return new Map([...left, ...right]);
  }

  #learn(edits: readonly ElementEdit[], milliseconds: number): void {
    const elements = edits.reduce((sum, edit) => sum + editSize(edit), 0);
    if (elements < this.#chunk / 2) return;
    if (milliseconds > LONG_MS) this.#chunk = Math.max(FEWEST_ELEMENTS, this.#chunk >> 1);
    else if (milliseconds < LONG_MS / 2) this.#chunk = Math.min(MOST_ELEMENTS, this.#chunk * 2);
  }
}

export interface Refusal {
  readonly error: JunctionError;
  /** One of the service ports may be the cause. */
  readonly isExplicable: boolean;
}

/** The table is not as it was written. */
const CONTRADICTIONS: ReadonlySet<string> = new Set(['ENOENT', 'EEXIST']);
/** In words, where the kernel's name for it says too little. */
const REASONS: Readonly<Record<string, string>> = {
  ENOMEM: 'the kernel is out of memory (ENOMEM)',
  ENOBUFS: 'the kernel has no buffers left (ENOBUFS)',
  EPERM: 'another process owns the table (EPERM)',
};

export function refusalOf({ name, operation }: TransactionRefusal, mayBeExplained: boolean): Refusal {
  const reason = REASONS[name] ?? name;
  if (name === 'EPERM')
    return { error: new JunctionError('NFTABLES_OWNED', `nftables: ${reason}`), isExplicable: false };
  // A rule may also ask for something that this kernel does not have.
  const isContradiction = CONTRADICTIONS.has(name) && operation?.kind !== 'addRule';
  if (mayBeExplained && !isContradiction) {
    const detail = JSON.stringify(operation)?.slice(0, 2000) ?? '';
    const error = new JunctionError('NFTABLES_REFUSED', `nftables refuses a change: ${reason}`, { detail });
    return { error, isExplicable: true };
  }
  const text = `nftables: the table is not as it was written: ${reason}`;
  return { error: new JunctionError('NFTABLES_CHANGED', text), isExplicable: false };
}

/** With more than this, the service ports are not the cause. */
const MOST_REFUSED = 100;

/**
 * Any number of edits, in transactions of about the size that the kernel takes well. While the kernel has one, the next
 * is made ready, and no more than that is in memory.
 */
export class EditStream {
  readonly #committer: Committer;
  readonly #sets: SetsByName;
  readonly refused = new Map<ServicePortId, Error>();
  /** How many were added and deleted. */
  elements = 0;
  #group: ElementEdit[] = [];
  #size = 0;
  #underWay = Promise.resolve();

  constructor(committer: Committer, sets: SetsByName) {
    this.#committer = committer;
    this.#sets = sets;
  }

  /** Something to wait for when a transaction is full; nothing until then. */
  add(edit: ElementEdit): Promise<void> | undefined {
    if (editSize(edit) === 0) return undefined;
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
    this.elements += this.#size;
    this.#group = [];
    this.#size = 0;
    await this.#underWay;
    this.#underWay = this.#commit(group);
    this.#underWay.catch(() => undefined); // thrown to the caller that sends the next one
  }

  async #commit(group: readonly ElementEdit[]): Promise<void> {
    for (const [id, error] of await this.#committer.commitEdits(group, this.#sets)) {
      this.refused.set(id, error);
      if (this.refused.size > MOST_REFUSED) throw error;
    }
  }
}

export function* slices<T>(items: Iterable<T>, size: number): Generator<readonly T[]> {
  let slice: T[] = [];
  for (const item of items) {
    slice.push(item);
    if (slice.length < size) continue;
    yield slice;
    slice = [];
  }
  if (slice.length > 0) yield slice;
}

/**
 * Chains of services on their way into one step. Where the client can make drafts, each is encoded at once and its rules are
 * dropped: kept until a step of 2,000 chains is full, they outlive V8's young generation, and collecting them took a third of a
 * cold start. A step that the kernel refuses is compiled again, to find out whose chain it is about.
 */
import type { ServicePortId } from '../../../model/serviceTracker.ts';
import { type ChainWrite, type Piece, piece } from './edit.ts';
import type { FullStep } from './resync.ts';
import type { Table } from './rule.ts';
import type { StepDraft } from './sender.ts';

type Recompile = (owner: ServicePortId) => readonly ChainWrite[];

export class ChainGroup {
  readonly #table: Table;
  readonly #again: Recompile | undefined;
  #draft: StepDraft | undefined;
  /** Without a draft. */
  readonly #pieces: Piece[] = [];
  /** Whose, and which: with a draft. */
  readonly #owners: ServicePortId[] = [];
  readonly #names: string[] = [];

  constructor(table: Table, draft: StepDraft | undefined, again: Recompile | undefined) {
    this.#table = table;
    this.#again = again;
    this.#draft = again && draft;
  }

  /** In chains. */
  get size(): number {
    return this.#pieces.length + this.#names.length;
  }

  add(owner: ServicePortId, write: ChainWrite): void {
    if (this.#draft?.add(write)) {
      this.#owners.push(owner);
      this.#names.push(write.name);
      return;
    }
    // It has a rule that only iptables-restore can write, and so has the step.
    this.#pieces.push(...this.#draftedPieces());
    this.#pieces.push(piece(owner, { writes: [write] }));
    this.#draft = undefined;
    this.#owners.length = 0;
    this.#names.length = 0;
  }

  get step(): FullStep {
    const draft = this.#draft;
    if (!draft) return { table: this.#table, pieces: this.#pieces };
    const drafted = (): readonly Piece[] => this.#draftedPieces();
    return {
      table: this.#table,
      draft,
      get pieces() {
        return drafted();
      },
    };
  }

  #draftedPieces(): readonly Piece[] {
    let owner: ServicePortId | undefined;
    let writes = new Map<string, ChainWrite>();
    return this.#names.flatMap((name, index) => {
      const next = this.#owners[index];
      if (next !== undefined && next !== owner)
        writes = new Map(this.#again?.(next).map((write) => [write.name, write]));
      owner = next;
      const write = writes.get(name);
      return write ? [piece(owner, { writes: [write] })] : [];
    });
  }
}

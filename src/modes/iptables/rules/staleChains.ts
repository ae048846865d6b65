/**
 * Chains that nothing needs and that the kernel refused to delete: a rule of another program jumps to them, or the kernel had
 * no memory. Their deletion is tried again with later syncs, first after a second.
 */
import { RetryDelay } from '../../../proxy/report.ts';
import { garbageBatches } from './cleanup.ts';
import { inChunks, type Piece, type Step } from './edit.ts';
import type { OwnChain } from './fragment.ts';
import { type Table, TABLES } from './rule.ts';

export class StaleChains {
  readonly #chains = new Map<Table, Set<string>>();
  readonly #retry = new RetryDelay();

  /** All that nothing needs is about to be deleted. */
  clear(): void {
    this.#chains.clear();
  }

  /** What of a step was refused. */
  add(table: Table, refused: readonly Piece[]): void {
    for (const { deletes } of refused)
      for (const chain of deletes) this.#chains.set(table, (this.#chains.get(table) ?? new Set()).add(chain));
  }

  /** A service port has these now. */
  take(chains: readonly OwnChain[]): void {
    if (this.#chains.size === 0) return;
    for (const { table, name } of chains) {
      const stale = this.#chains.get(table);
      if (stale?.delete(name) && stale.size === 0) this.#chains.delete(table);
    }
  }

  isDue(now: number): boolean {
    return this.#chains.size > 0 && this.#retry.isDue(now);
  }

  /** The steps that delete them; those that are refused again are to be added again. */
  takeSteps(chainsPerRestore: number | undefined): readonly Step[] {
    const steps = TABLES.flatMap((table) =>
      garbageBatches(this.#chains.get(table) ?? new Set()).flatMap((batch) => [
        ...inChunks(table, batch, chainsPerRestore),
      ]),
    );
    this.#chains.clear();
    return steps;
  }

  /** After each try. */
  tried(now: number): void {
    if (this.#chains.size > 0) this.#retry.failed(now);
    else this.#retry.succeeded();
  }

  /** How long until the next try; `undefined`: nothing is left. */
  remainingMs(now: number): number | undefined {
    return this.#chains.size > 0 ? this.#retry.remainingMs(now) : undefined;
  }
}

/** Commits steps, finds whose rules the kernel refuses, and counts what was written in the sync's report. */
import { isJunctionError } from '../../../errors.ts';
import type { ServicePortId } from '../../../model/serviceTracker.ts';
import type { ReportBuilder } from '../../../proxy/report.ts';
import type { TimeSlice } from '../../../time/timeSlice.ts';
import { type Piece, piece, type Step } from './edit.ts';
import { TRIAL_CHAIN } from './names.ts';
import type { Table } from './rule.ts';
import type { TextRule } from './textRule.ts';

/** The programs of iptables, as pure code sees them. */
export interface TableClient {
  /** How many chains one restore should have at most. */
  readonly chainsPerRestore: number;
  readonly timeSlice: TimeSlice;
  /** All of the step or an error. Returns the bytes that were sent. */
  commit(step: Step): Promise<number>;
  chainNames(table: Table): Promise<ReadonlySet<string>>;
  readChain(table: Table, chain: string): Promise<readonly TextRule[] | undefined>;
  ensureChain(table: Table, chain: string): Promise<boolean>;
  ensureRule(
    position: 'prepend' | 'append',
    table: Table,
    chain: string,
    args: readonly string[],
  ): Promise<boolean>;
  deleteRule(table: Table, chain: string, args: readonly string[]): Promise<boolean>;
}

export class Committer {
  readonly #client: Pick<TableClient, 'commit'>;
  readonly #report: ReportBuilder;

  constructor(client: Pick<TableClient, 'commit'>, report: ReportBuilder) {
    this.#client = client;
    this.#report = report;
  }

  get refused(): Map<ServicePortId, Error> {
    return this.#report.refused;
  }

  /** All of it or an error. */
  async commit(step: Step): Promise<void> {
    let bytes: number;
    try {
      bytes = await this.#client.commit(step);
    } catch (error) {
      if (isRefusal(error)) this.#report.count('restore.refusals');
      throw error;
    }
    this.#report.count('restore.bytes', bytes);
    this.#count(step);
  }

  /** Where the kernel refuses, finds the service ports that it is about and goes on without them. */
  async commitAccepted({ table, pieces }: Step): Promise<void> {
    try {
      if (pieces.length > 0) await this.commit({ table, pieces });
    } catch (error) {
      if (!isRefusal(error)) throw error;
      const refused = new Map<ServicePortId, Error>();
      await this.#findRefused(table, pieces, refused);
      await this.#client.commit({ table, pieces: [piece(undefined, { deletes: [TRIAL_CHAIN] })] });
      if (refused.size === 0) throw error; // our own chains: nothing to go on with
      for (const [owner, reason] of refused) this.refused.set(owner, reason);
      const others = pieces.filter(({ owner }) => owner === undefined || !refused.has(owner));
      await this.commitAccepted({ table, pieces: others });
    }
  }

  /** By halves of the owners. Half of a shared chain would cut off the others, so its rules are tried in a chain that nothing jumps to. */
  async #findRefused(
    table: Table,
    pieces: readonly Piece[],
    refused: Map<ServicePortId, Error>,
  ): Promise<void> {
    const owners = [...new Set(pieces.flatMap(({ owner }) => owner ?? []))];
    const [owner] = owners;
    if (owner === undefined) return;
    const owned = pieces.filter((each) => each.owner !== undefined);
    const rules = owned.flatMap(({ adds }) => adds.map(({ rule }) => rule));
    const writes = [...owned.flatMap((each) => each.writes), { name: TRIAL_CHAIN, rules }];
    try {
      await this.#client.commit({ table, pieces: [piece(undefined, { writes })] });
    } catch (error) {
      if (!(error instanceof Error) || !isRefusal(error)) throw error;
      if (owners.length === 1) {
        refused.set(owner, error);
        return;
      }
      const half = new Set(owners.slice(0, owners.length >> 1));
      for (const isIn of [true, false]) {
        const some = owned.filter((each) => each.owner !== undefined && half.has(each.owner) === isIn);
        await this.#findRefused(table, some, refused);
      }
    }
  }

  /** Returns the pieces that were refused. A chain that another program's rule jumps to, for one, cannot be deleted. */
  async tryCommit({ table, pieces }: Step): Promise<readonly Piece[]> {
    try {
      await this.commit({ table, pieces });
      return [];
    } catch (error) {
      if (!isRefusal(error)) throw error;
      if (pieces.length === 1) return pieces;
      const middle = Math.ceil(pieces.length / 2);
      return [
        ...(await this.tryCommit({ table, pieces: pieces.slice(0, middle) })),
        ...(await this.tryCommit({ table, pieces: pieces.slice(middle) })),
      ];
    }
  }

  /** Rules that were added or deleted by commands of their own. */
  countRules(rules: number): void {
    this.#report.commits += rules;
    this.#report.objects += rules;
    this.#report.count('chains', 0);
  }

  #count({ table, pieces }: Step): void {
    const report = this.#report;
    report.commits++;
    for (const { writes, removes, adds, deletes } of pieces) {
      const inWrites = writes.reduce((sum, { rules }) => sum + rules.length, 0);
      // Jumps in INPUT and its like are not counted as rules of ours, as in kube-proxy.
      const own = adds.filter(({ chain }) => chain.startsWith('KUBE-')).length;
      report.objects += removes.length + adds.length + inWrites;
      report.count('chains', writes.length + deletes.length);
      report.count(`written.${table}`, own + inWrites);
    }
  }
}

/** The kernel said no to the rules, as opposed to a lock, a missing program or a full disk. */
export function isRefusal(error: unknown): boolean {
  return isJunctionError(error, 'IPTABLES_RESTORE_FAILED');
}

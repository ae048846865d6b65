/** Sends steps to the kernel, finds whose rules it refuses, and counts what was written in the sync's report. */
import { isJunctionError } from '../../../errors.ts';
import type { ServicePortId } from '../../../model/serviceTracker.ts';
import type { ReportBuilder } from '../../../proxy/report.ts';
import type { TableClient } from './client.ts';
import { type Piece, piece, type Step } from './edit.ts';
import { TRIAL_CHAIN } from './names.ts';
import type { Table } from './rule.ts';

type Client = Pick<TableClient, 'commit'>;

export class Sender {
  readonly #client: Client;
  readonly #report: ReportBuilder;

  constructor(client: Client, report: ReportBuilder) {
    this.#client = client;
    this.#report = report;
  }

  get refused(): Map<ServicePortId, Error> {
    return this.#report.refused;
  }

  /** All of it or an error. */
  async sendWhole(step: Step): Promise<void> {
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

  /** Chains of single service ports. Where the kernel refuses, finds the service port that it is about and goes on without it. */
  async send({ table, pieces }: Step): Promise<void> {
    const wanted = pieces.filter(({ owner }) => owner === undefined || !this.refused.has(owner));
    if (wanted.length === 0) return;
    const step = { table, pieces: wanted };
    try {
      await this.sendWhole(step);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      for (const half of this.#halves(wanted, error)) await this.send({ table, pieces: half });
    }
  }

  /**
   * Chains that many service ports share. Half of one would cut off the others, so whose rules are refused is found out in a
   * chain that nothing jumps to, and the rest is written at once.
   */
  async sendShared(step: Step): Promise<void> {
    try {
      await this.sendWhole(step);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      const before = this.refused.size;
      const { table, pieces } = step;
      await this.#tryRules(
        table,
        pieces.filter(({ owner }) => owner !== undefined),
      );
      await this.#client.commit(trial(table, []));
      if (this.refused.size === before) throw error;
      const others = pieces.filter(({ owner }) => owner === undefined || !this.refused.has(owner));
      await this.sendShared({ table, pieces: others });
    }
  }

  /** Returns the pieces that were refused. A chain that another program's rule jumps to, for one, cannot be deleted. */
  async trySend({ table, pieces }: Step): Promise<readonly Piece[]> {
    try {
      await this.sendWhole({ table, pieces });
      return [];
    } catch (error) {
      if (!isRefusal(error)) throw error;
      if (pieces.length === 1) return pieces;
      const middle = Math.ceil(pieces.length / 2);
      return [
        ...(await this.trySend({ table, pieces: pieces.slice(0, middle) })),
        ...(await this.trySend({ table, pieces: pieces.slice(middle) })),
      ];
    }
  }

  async #tryRules(table: Table, pieces: readonly Piece[]): Promise<void> {
    if (pieces.length === 0) return;
    try {
      await this.#client.commit(trial(table, pieces));
    } catch (error) {
      if (!isRefusal(error)) throw error;
      for (const half of this.#halves(pieces, error)) await this.#tryRules(table, half);
    }
  }

  /** By owners; none where all is one owner's, who is refused then. */
  #halves(pieces: readonly Piece[], error: unknown): readonly (readonly Piece[])[] {
    const owners = new Set(pieces.map(({ owner }) => owner));
    const [owner] = owners;
    if (owners.size > 1) {
      const half = new Set([...owners].slice(0, Math.ceil(owners.size / 2)));
      return [pieces.filter((each) => half.has(each.owner)), pieces.filter((each) => !half.has(each.owner))];
    }
    if (owner === undefined) throw error; // our own chains: nothing to go on with
    this.refused.set(owner, error instanceof Error ? error : new Error(String(error)));
    return [];
  }

  /** Rules that were added or deleted by commands of their own. */
  countRules(rules: number): void {
    this.#report.commits += rules;
    this.#report.objects += rules;
    this.#report.count('chains', 0);
  }

  #count(step: Step): void {
    let chains = 0;
    let inWrites = 0;
    let edits = 0;
    let written = 0;
    for (const { writes, removes, adds, deletes } of step.pieces) {
      chains += writes.length + deletes.length;
      edits += removes.length + adds.length;
      for (const write of writes) inWrites += write.rules.length;
      // Jumps in INPUT and its like are not counted as rules of ours, as in kube-proxy.
      written += adds.filter(({ chain }) => chain.startsWith('KUBE-')).length;
    }
    this.#report.commits++;
    this.#report.objects += edits + inWrites;
    this.#report.count('chains', chains);
    this.#report.count(`written.${step.table}`, written + inWrites);
  }
}

/** The rules of these pieces in a chain that nothing jumps to; without pieces, the chain is deleted. */
function trial(table: Table, pieces: readonly Piece[]): Step {
  const rules = pieces.flatMap(({ adds }) => adds.map(({ rule }) => rule));
  if (pieces.length === 0) return { table, pieces: [piece(undefined, { deletes: [TRIAL_CHAIN] })] };
  return { table, pieces: [piece(undefined, { writes: [{ name: TRIAL_CHAIN, rules }] })] };
}

/** The kernel said no to the rules, as opposed to a lock, a missing program or a full disk. */
export function isRefusal(error: unknown): boolean {
  return isJunctionError(error, 'IPTABLES_RESTORE_FAILED');
}

/** Sends steps to the kernel, and counts them in the sync's report. */
import { isJunctionError } from '../../../errors.ts';
import type { ServicePortId } from '../../../model/serviceTracker.ts';
import type { ReportBuilder } from '../../../proxy/report.ts';
import type { Piece, Step } from './edit.ts';
import type { PrintingClient } from './chainReader.ts';

export class Sender {
  readonly #client: TableClient;
  readonly #report: ReportBuilder;

  constructor(client: TableClient, report: ReportBuilder) {
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

  /** Where the kernel refuses, finds the service port that it is about and goes on without it. */
  async send({ table, pieces }: Step): Promise<void> {
    const wanted = pieces.filter(({ owner }) => owner === undefined || !this.refused.has(owner));
    if (wanted.length === 0) return;
    const step = { table, pieces: wanted };
    try {
      await this.sendWhole(step);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      await this.#divide(step, error);
    }
  }

  /** Returns the pieces that were refused. A chain that another program's rule jumps to, for one, cannot be deleted. */
  async trySend({ table, pieces }: Step): Promise<readonly Piece[]> {
    try {
      await this.send({ table, pieces });
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

  async #divide({ table, pieces }: Step, error: unknown): Promise<void> {
    const owners = new Set(pieces.map(({ owner }) => owner));
    const [owner] = owners;
    if (owners.size === 1) {
      if (owner === undefined) throw error; // our own chains: nothing to go on with
      this.refused.set(owner, error instanceof Error ? error : new Error(String(error)));
      return;
    }
    const half = new Set([...owners].slice(0, Math.ceil(owners.size / 2)));
    await this.send({ table, pieces: pieces.filter((each) => half.has(each.owner)) });
    await this.send({ table, pieces: pieces.filter((each) => !half.has(each.owner)) });
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

/** The kernel said no to the rules, as opposed to a lock, a missing program or a full disk. */
export function isRefusal(error: unknown): boolean {
  return isJunctionError(error, 'IPTABLES_RESTORE_FAILED');
}

/** iptables as the mode needs it: programs and a kernel outside, a kernel in memory in tests. */
export interface TableClient extends PrintingClient {
  /** All of the step or an error. Returns the bytes that were sent. */
  commit(step: Step): Promise<number>;
  /** How many chains one restore should have at most. */
  readonly chainsPerRestore?: number;
}

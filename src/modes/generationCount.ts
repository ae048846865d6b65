/**
 * Accounts for each generation of nf_tables: every transaction raises it by one, ours are counted, and the kernel notifies
 * of those of others. While the sum is right, nobody has changed anything unnoticed. A transaction that changed nothing
 * or a lost notification makes it wrong, and then nothing is claimed.
 */
import { committedByProcess, type TransactionChannel } from '../netlink/channel.ts';
import { decodeGeneration, getGeneration, readNftGeneration } from '../netlink/nftables/message.ts';
import type { GenerationNow } from '../system/record/writtenRecord.ts';

/** Gets to know of every transaction that is not of this thread, whatever it is about. */
export interface TransactionCounter {
  noteOthers(count: number): void;
  noteLost(): void;
}

export class GenerationCount implements TransactionCounter {
  readonly #before = readNftGeneration();
  readonly #committedBefore = committedByProcess();
  #channel: TransactionChannel | undefined;
  #base: number | undefined;
  #committed = 0;
  #others = 0;
  #isLost = false;
  /** Called when others made a transaction. */
  onOthers: (() => void) | undefined;

  /** Once the kernel notifies of changes. Returns the generation that this process found, if no other program has raised it since. */
  async begin(channel: TransactionChannel): Promise<number | undefined> {
    this.#channel = channel;
    this.#committed = channel.committed;
    this.#others = 0;
    this.#base = await this.#ask();
    const own = committedByProcess() - this.#committedBefore;
    return this.#before !== undefined && this.#base === this.#before + own ? this.#before : undefined;
  }

  /** Another program, or another part of this one, made so many transactions. */
  noteOthers(count: number): void {
    this.#others += count;
    this.onOthers?.();
  }

  /** Notifications are missing. */
  noteLost(): void {
    this.#isLost = true;
  }

  async now(): Promise<GenerationNow | undefined> {
    const id = await this.#ask();
    if (id === undefined || this.#base === undefined || !this.#channel) return undefined;
    const counted = this.#channel.committed - this.#committed + this.#others;
    return { id, isKnown: !this.#isLost && id === this.#base + counted };
  }

  async #ask(): Promise<number | undefined> {
    const reply = await this.#channel?.request(getGeneration());
    const [message] = reply?.kind === 'answered' ? reply.messages : [];
    return message && decodeGeneration(message.payload).id;
  }
}

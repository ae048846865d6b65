/**
 * A channel whose socket is in another thread. Messages are written and read here; what crosses is bytes. Long work is
 * cut into pieces, between which this thread does other things, and of which a few are on their way at any time.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  type Batch,
  type Change,
  type ChangeOutcome,
  type CommitRefusal,
  type CommitReply,
  type NetlinkTransaction,
  commitReply,
  noteCommitRefusals,
  noteRefusals,
  outcomesOf,
  writeBatch,
} from './batch.ts';
import { DUMP_ATTEMPTS, type DumpReply, type TransactionChannel, changedTooOften } from './channel.ts';
import { type Message, MessageWriter, NLM_F_DUMP, malformedMessage } from './codec.ts';
import { type NetlinkReply, type NetlinkRequest, ReplyReader, writeRequest } from './socket.ts';
import type { Exchange } from './worker/protocol.ts';

/** Sends, and gives the answers away while they come. Resolves when all have come. */
type Send = (
  bytes: Uint8Array<ArrayBuffer>,
  exchanges: readonly Exchange[],
  take: (messages: readonly Message[]) => void,
) => Promise<void>;

/** Writing so many changes or requests takes a few milliseconds. */
const CHANGES_PER_PIECE = 512;
const REQUESTS_PER_PIECE = 256;
/** Enough that the worker always has the next one, and few enough to stop soon after a failure. */
const PIECES_UNDER_WAY = 4;

export class ThreadChannel implements TransactionChannel {
  readonly #send: Send;
  #sequence = 0;

  constructor(send: Send) {
    this.#send = send;
  }

  async apply(changes: readonly Change[]): Promise<readonly ChangeOutcome[]> {
    const pieces = await this.#inPieces(changes, CHANGES_PER_PIECE, (piece) => this.#applyPiece(piece));
    return pieces.flat();
  }

  async commit(transaction: NetlinkTransaction): Promise<CommitReply> {
    const writer = new MessageWriter(transaction.bytes);
    const written = transaction.write(writer, () => this.#takeSequence());
    const refusals: CommitRefusal[] = [];
    if (written) {
      const { begin, last } = written;
      // A transaction may have megabytes, and nobody writes into this buffer any more: it goes as it is.
      await this.#send(writer.finish(), [{ bytes: writer.length, last, begin }], (messages) =>
        noteCommitRefusals(refusals, written, messages),
      );
    }
    return commitReply(refusals);
  }

  async request(request: NetlinkRequest): Promise<NetlinkReply> {
    const [reply] = await this.#ask([request]);
    if (!reply) throw malformedMessage('no answer');
    return reply;
  }

  async dumpAll(requests: readonly NetlinkRequest[]): Promise<readonly DumpReply[]> {
    const replies: DumpReply[] = [];
    let left = requests.map((request, index) => ({
      index,
      request: { ...request, flags: request.flags | NLM_F_DUMP },
    }));
    for (let attempt = 0; left.length > 0; attempt++) {
      if (attempt === DUMP_ATTEMPTS) throw changedTooOften('the table');
      const interrupted: typeof left = [];
      const answers = await this.#inPieces(left, REQUESTS_PER_PIECE, (piece) =>
        this.#ask(piece.map(({ request }) => request)),
      );
      for (const [at, reply] of answers.flat().entries()) {
        const asked = left[at];
        if (!asked) continue;
        if (reply.kind === 'answered' && reply.interrupted) interrupted.push(asked);
        else replies[asked.index] = reply;
      }
      left = interrupted;
    }
    return replies;
  }

  async #applyPiece(changes: readonly Change[]): Promise<readonly ChangeOutcome[]> {
    const writer = new MessageWriter(changes.length * 64);
    const batches: Batch[] = [];
    const exchanges: Exchange[] = [];
    for (let written = 0; written < changes.length; ) {
      const start = writer.length;
      const batch = writeBatch(writer, changes, written, () => this.#takeSequence());
      batches.push(batch);
      exchanges.push({ bytes: writer.length - start, last: batch.last });
      written += batch.changes.size;
    }
    const refusals = new Map<number, number>();
    await this.#send(writer.finish().slice(), exchanges, (messages) => noteRefusals(refusals, messages));
    return batches.flatMap((batch) => outcomesOf(batch, refusals));
  }

  async #ask(requests: readonly NetlinkRequest[]): Promise<readonly NetlinkReply[]> {
    const writer = new MessageWriter(requests.length * 64);
    const answers = new Map<number, Answer>();
    const exchanges: Exchange[] = [];
    for (const request of requests) {
      const start = writer.length;
      const last = this.#takeSequence();
      writeRequest(writer, request, last);
      answers.set(last, new Answer());
      exchanges.push({ bytes: writer.length - start, last });
    }
    await this.#send(writer.finish().slice(), exchanges, (messages) => {
      for (const message of messages) answers.get(message.sequence)?.take(message);
    });
    return [...answers.values()].map((answer) => answer.reply());
  }

  /** Results in the order of the pieces. The first failure stops those that are not under way yet. */
  async #inPieces<Item, Result>(
    items: readonly Item[],
    size: number,
    act: (piece: readonly Item[]) => Promise<Result>,
  ): Promise<readonly Result[]> {
    const results: Promise<Result>[] = [];
    try {
      for (let from = 0; from < items.length; from += size) {
        if (from > 0) await nextTurn();
        await results[results.length - PIECES_UNDER_WAY];
        const result = act(items.slice(from, from + size));
        result.catch(() => undefined); // thrown below, after those before it
        results.push(result);
      }
      return await Promise.all(results);
    } finally {
      await Promise.allSettled(results);
    }
  }

  #takeSequence(): number {
    this.#sequence = (this.#sequence + 1) >>> 0;
    return this.#sequence;
  }
}

class Answer {
  readonly #reader = new ReplyReader();
  readonly #messages: Message[] = [];

  take(message: Message): void {
    if (this.#reader.take(message)) this.#messages.push(message);
  }

  reply(): NetlinkReply {
    const { end } = this.#reader;
    if (!end) throw malformedMessage('an answer without an end');
    return end.kind === 'refused' ? end : { ...end, messages: this.#messages };
  }
}

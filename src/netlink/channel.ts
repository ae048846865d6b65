/**
 * Requests, changes and transactions of one netlink protocol: messages are written, sent and read here. Long work is cut
 * into pieces, between which other work has its turn.
 */
import { constants } from 'node:os';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { JunctionError } from '../errors.ts';
import { type Message, MessageWriter, NLM_F_DUMP, decodeMessages, malformedMessage } from './codec.ts';
import type { CommitReply, NetlinkTransaction } from './nftables/transaction.ts';
import {
  type Change,
  type ChangeOutcome,
  type Job,
  type NetlinkEnd,
  type NetlinkRefusal,
  type NetlinkReply,
  type NetlinkRequest,
  ReplyReader,
  Sequence,
  changeJob,
  exchange,
  requestJob,
  writeRequest,
} from './request.ts';
import { type DatagramSocket, NetlinkSocket } from './socket.ts';

export type DumpReply = { readonly kind: 'answered'; readonly messages: readonly Message[] } | NetlinkRefusal;

/** What a socket is for. Neither a commit nor a short question waits for a dump, and dumps do not share a buffer with them. */
export type Purpose = 'commit' | 'request' | 'dump';

/** Gives a socket to one user at a time, in order. */
type Use = <T>(purpose: Purpose, work: (socket: DatagramSocket) => Promise<T>) => Promise<T>;

/** Writing these takes a few milliseconds. */
const CHANGES_PER_PIECE = 512;
const REQUESTS_PER_PIECE = 256;
/** More changes than this during a dump are a runaway program's. */
const READINGS = 10;

/** Requests, changes and transactions of one netlink protocol. */
export class NetlinkChannel {
  readonly #use: Use;
  readonly #sequence: Sequence;

  constructor(use: Use, sequence = new Sequence()) {
    this.#use = use;
    this.#sequence = sequence;
  }

  /** Outcomes in the order of the changes. A refusal does not stop the others. */
  async apply(changes: readonly Change[]): Promise<readonly ChangeOutcome[]> {
    return this.#inPieces('request', changes, CHANGES_PER_PIECE, changeJob);
  }

  /** All or nothing, in one datagram. One that is too large for the kernel fails with EMSGSIZE. */
  async commit(transaction: NetlinkTransaction): Promise<CommitReply> {
    return this.#do('commit', transaction(this.#sequence));
  }

  async request(request: NetlinkRequest): Promise<NetlinkReply> {
    const purpose = (request.flags & NLM_F_DUMP) === NLM_F_DUMP ? 'dump' : 'request';
    const [reply] = await this.#do(purpose, requestJob([request], this.#sequence));
    if (!reply) throw malformedMessage('no answer');
    return reply;
  }

  /** One object; `undefined` where it does not exist. `what`, for errors: `the link eth0`. */
  async get(request: NetlinkRequest, what: string): Promise<Message | undefined> {
    return objectsIn(await this.request(request), what)[0];
  }

  /**
   * All objects of a dump, which is read again when they changed meanwhile; none where what they are in does not exist. `what`,
   * for errors: `the links`.
   */
  async list(request: NetlinkRequest, what: string): Promise<readonly Message[]> {
    const [reply] = await this.dumpAll([request]);
    return objectsIn(reply, what);
  }

  /** Dumps, in the order of the requests. A table that changed meanwhile is read again. */
  async dumpAll(requests: readonly NetlinkRequest[]): Promise<readonly DumpReply[]> {
    return readUntilStable(requests.map(asDump), 'the table', async (left) => {
      const replies = await this.#inPieces('dump', left, REQUESTS_PER_PIECE, requestJob);
      return replies.map((reply) => (reply.kind === 'answered' && reply.interrupted ? undefined : reply));
    });
  }

  /**
   * A whole table, which may change meanwhile: what changes may be in it or not. `take` is given what comes while it comes, and
   * other work has its turn in between.
   */
  async scan(request: NetlinkRequest, take: (messages: readonly Message[]) => void): Promise<NetlinkEnd> {
    const writer = new MessageWriter(256);
    const last = this.#sequence.next();
    writeRequest(writer, asDump(request), last);
    const reader = new ReplyReader();
    await this.#use('dump', async (socket) => {
      const bytes = writer.finish();
      for await (const datagram of exchange(socket, bytes, [{ bytes: bytes.length, last, isDump: true }])) {
        for (const message of decodeMessages(datagram)) reader.take(message);
        take(reader.messages.splice(0));
      }
    });
    if (!reader.end) throw malformedMessage('an answer without an end');
    return reader.end;
  }

  /** Results in the order of the items. Others have their turn between two pieces. */
  async #inPieces<Item, Result>(
    purpose: Purpose,
    items: readonly Item[],
    size: number,
    jobOf: (piece: readonly Item[], sequence: Sequence) => Job<readonly Result[]>,
  ): Promise<readonly Result[]> {
    const results: Result[] = [];
    for (let from = 0; from < items.length; from += size) {
      if (from > 0) await nextTurn();
      const job = jobOf(items.slice(from, from + size), this.#sequence);
      for (const result of await this.#do(purpose, job)) results.push(result);
    }
    return results;
  }

  async #do<Result>(purpose: Purpose, job: Job<Result>): Promise<Result> {
    const { bytes, exchanges, take, result } = job;
    if (exchanges.length === 0) return result();
    return this.#use(purpose, async (socket) => {
      for await (const datagram of exchange(socket, bytes, exchanges)) take(decodeMessages(datagram));
      return result();
    });
  }
}

function asDump(request: NetlinkRequest): NetlinkRequest {
  return { ...request, flags: request.flags | NLM_F_DUMP };
}

/** For tests and small tools, which have one socket for everything. */
export function directChannel(socket: DatagramSocket, sequence = new Sequence()): NetlinkChannel {
  const turns = new Turns();
  return new NetlinkChannel((_, work) => turns.take(() => work(socket)), sequence);
}

/** One after the other. */
export class Turns {
  #last: Promise<unknown> = Promise.resolve();

  take<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => undefined);
    return result;
  }
}

/** On a socket of its own, which is closed at the end. */
export async function withChannel<T>(
  protocol: number,
  use: (channel: NetlinkChannel) => Promise<T>,
): Promise<T> {
  const socket = NetlinkSocket.open(protocol);
  try {
    return await use(directChannel(socket));
  } finally {
    socket.close();
  }
}

/** Reads again what changed meanwhile, for which `read` returns `undefined`. */
export async function readUntilStable<Asked, Answer>(
  asked: readonly Asked[],
  what: string,
  read: (left: readonly Asked[]) => Promise<readonly (Answer | undefined)[]>,
): Promise<readonly Answer[]> {
  const answers: Answer[] = [];
  let left = [...asked.entries()];
  for (let attempt = 0; left.length > 0; attempt++) {
    if (attempt === READINGS)
      throw new JunctionError(
        'NETLINK_FAILED',
        `netlink: ${what} changed during each of ${READINGS} readings`,
      );
    const found = await read(left.map(([, each]) => each));
    left = left.filter(([index], at) => {
      const answer = found[at];
      if (answer !== undefined) answers[index] = answer;
      return answer === undefined;
    });
  }
  return answers;
}

/** Of a link, and of a virtual server. */
const ABSENT: ReadonlySet<number> = new Set([
  constants.errno.ENOENT,
  constants.errno.ENODEV,
  constants.errno.ESRCH,
]);

function objectsIn(reply: DumpReply | undefined, what: string): readonly Message[] {
  return reply?.kind === 'refused' && ABSENT.has(reply.errno) ? [] : messagesOf(reply, what);
}

/** `what`: `the links`. */
export function messagesOf(reply: DumpReply | undefined, what: string): readonly Message[] {
  if (reply?.kind === 'answered') return reply.messages;
  throw new JunctionError('NETLINK_FAILED', `netlink: cannot read ${what}: ${reply?.name ?? 'no answer'}`);
}

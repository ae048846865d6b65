/** Requests, changes and transactions of one netlink protocol. */
import { constants } from 'node:os';
import { JunctionError } from '../errors.ts';
import { type Message, NLM_F_DUMP } from './codec.ts';
import type { CommitReply, NetlinkTransaction } from './nftables/transaction.ts';
import {
  type Change,
  type ChangeOutcome,
  Exchange,
  type NetlinkEnd,
  type NetlinkRefusal,
  type NetlinkReply,
  type NetlinkRequest,
  Sequence,
  outcomeOf,
} from './request.ts';
import type { DatagramSocket } from './socket.ts';

/** What a socket is for. Neither a commit nor a short question waits for a dump, and dumps do not share a buffer with them. */
export type Purpose = 'commit' | 'request' | 'dump';

/** Gives a socket to one user at a time, in order. */
type Use = <T>(purpose: Purpose, work: (socket: DatagramSocket) => Promise<T>) => Promise<T>;

/** Of a payload; `undefined`: it is not one of those that are asked for. */
type Decode<T> = (payload: Uint8Array) => T | undefined;

/**
 * When every change is refused, the refusals wait in the receive buffer, at about a kilobyte each. So many fit into one of the
 * default size, which an unprivileged socket has.
 */
const CHANGES_PER_DATAGRAM = 128;
/** More changes than this during a dump are a runaway program's. */
const MAX_READINGS = 10;

export class NetlinkChannel {
  readonly #use: Use;
  readonly #sequence: Sequence;

  constructor(use: Use, sequence = new Sequence()) {
    this.#use = use;
    this.#sequence = sequence;
  }

  request(request: NetlinkRequest): Promise<NetlinkReply> {
    return this.#ask('request', request);
  }

  /** One object; `undefined` where it does not exist. `what`, for errors: `the link eth0`. */
  async get<T>(request: NetlinkRequest, what: string, decode: Decode<T>): Promise<T | undefined> {
    const reply = await this.#ask('request', request);
    const [message] = isAbsent(reply, what) ? [] : reply.messages;
    return message && decode(message.payload);
  }

  /**
   * All objects of a dump, which is read again when they changed meanwhile; none where what they are in does not exist. They are
   * decoded while they come, and other work has its turn in between. `what`, for errors: `the links`.
   */
  list<T>(request: NetlinkRequest, what: string, decode: Decode<T>): Promise<readonly T[]> {
    return readUntilStable(what, async () => {
      const objects: T[] = [];
      const end = await this.scan(request, (messages) => {
        for (const { payload } of messages) {
          const object = decode(payload);
          if (object !== undefined) objects.push(object);
        }
      });
      return isAbsent(end, what) || !end.interrupted ? objects : undefined;
    });
  }

  /** A dump whose messages are given away while they come. What changes meanwhile may be in it or not. */
  scan(request: NetlinkRequest, take: (messages: readonly Message[]) => void): Promise<NetlinkEnd> {
    return this.#ask('dump', { ...request, flags: request.flags | NLM_F_DUMP }, take);
  }

  /** Outcomes in the order of the changes. A refusal does not stop the others. */
  async apply(changes: readonly Change[]): Promise<readonly ChangeOutcome[]> {
    const outcomes: ChangeOutcome[] = [];
    for (let from = 0; from < changes.length; from += CHANGES_PER_DATAGRAM) {
      const some = changes.slice(from, from + CHANGES_PER_DATAGRAM);
      const exchange = new Exchange(this.#sequence, some.length * 64);
      const numbers = some.map((each, index) =>
        exchange.add(each, index < some.length - 1 ? 'between' : 'last'),
      );
      await this.#use('request', (socket) => exchange.run(socket));
      for (const [index, change] of some.entries())
        outcomes.push(outcomeOf(change, exchange.errnoOf(numbers[index] ?? 0)));
    }
    return outcomes;
  }

  /** All or nothing, in one datagram. One that is too large for the kernel fails with EMSGSIZE. */
  async commit(transaction: NetlinkTransaction): Promise<CommitReply> {
    const { exchange, result } = transaction(this.#sequence);
    await this.#use('commit', (socket) => exchange.run(socket));
    return result();
  }

  async #ask(
    purpose: Purpose,
    request: NetlinkRequest,
    take?: (messages: readonly Message[]) => void,
  ): Promise<NetlinkReply> {
    const exchange = new Exchange(this.#sequence, 256);
    const number = exchange.add(request);
    await this.#use(purpose, (socket) =>
      exchange.run(socket, take && (() => take(exchange.messagesOf(number)))),
    );
    return exchange.replyTo(number);
  }
}

/** Reads again what changed meanwhile, for which `read` returns `undefined`. */
export async function readUntilStable<T>(what: string, read: () => Promise<T | undefined>): Promise<T> {
  for (let readings = 0; readings < MAX_READINGS; readings++) {
    const answer = await read();
    if (answer !== undefined) return answer;
  }
  throw new JunctionError(
    'NETLINK_FAILED',
    `netlink: ${what} changed during each of ${MAX_READINGS} readings`,
  );
}

/** Of a link, and of a virtual server; a kernel without the subsystem, or without such objects in it. */
const ABSENT: ReadonlySet<number> = new Set([
  constants.errno.ENOENT,
  constants.errno.ENODEV,
  constants.errno.ESRCH,
  constants.errno.EINVAL,
  constants.errno.EOPNOTSUPP,
]);

/** Whether there is no such thing. Throws where it was refused for another reason. */
export function isAbsent(reply: NetlinkEnd, what: string): reply is NetlinkRefusal {
  if (reply.kind === 'answered') return false;
  if (ABSENT.has(reply.errno)) return true;
  throw new JunctionError('NETLINK_FAILED', `netlink: cannot read ${what}: ${reply.name}`);
}

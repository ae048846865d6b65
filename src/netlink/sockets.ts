/** The sockets of a process: for each protocol one for each purpose, opened when it is first needed, and those for watches. */
import { NetlinkChannel, type Purpose } from './channel.ts';
import { closedError, type DatagramSocket, NetlinkSocket } from './socket.ts';
import { type Watch, Watches, type WatchHandler } from './watch.ts';

export type { Watch, WatchHandler } from './watch.ts';

interface WatchOptions {
  /**
   * Not what this object's own transactions change. The kernel says which socket a change of nf_tables comes from; of links
   * it does not.
   */
  readonly othersOnly?: boolean;
}

export class NetlinkSockets {
  readonly #sockets = new Map<string, SharedSocket>();
  readonly #channels = new Map<number, NetlinkChannel>();
  readonly #watches = new Watches();
  #isClosed = false;

  /** One for each protocol. */
  channel(protocol: number): NetlinkChannel {
    let channel = this.#channels.get(protocol);
    if (!channel) {
      channel = new NetlinkChannel(async (purpose, work) => this.#socket(protocol, purpose).use(work));
      this.#channels.set(protocol, channel);
    }
    return channel;
  }

  async watch(
    protocol: number,
    groups: readonly number[],
    handler: WatchHandler,
    { othersOnly = false }: WatchOptions = {},
  ): Promise<Watch> {
    if (this.#isClosed) throw closedError();
    const own = othersOnly ? [this.#socket(protocol, 'commit').open().portId] : [];
    return this.#watches.open(protocol, groups, handler, own);
  }

  /** What is under way fails. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const socket of this.#sockets.values()) socket.close();
    await this.#watches.close();
  }

  #socket(protocol: number, purpose: Purpose): SharedSocket {
    if (this.#isClosed) throw closedError();
    const key = `${protocol} ${purpose}`;
    let socket = this.#sockets.get(key);
    if (!socket) {
      // The kernel knows by its socket who owns a table and whose a change is: that one stays.
      socket = new SharedSocket(() => NetlinkSocket.open(protocol), purpose === 'commit');
      this.#sockets.set(key, socket);
    }
    return socket;
  }
}

/** On sockets of its own, which are closed at the end. */
export async function withSockets<T>(use: (sockets: NetlinkSockets) => Promise<T>): Promise<T> {
  const sockets = new NetlinkSockets();
  try {
    return await use(sockets);
  } finally {
    await sockets.close();
  }
}

export function withChannel<T>(protocol: number, use: (channel: NetlinkChannel) => Promise<T>): Promise<T> {
  return withSockets((sockets) => use(sockets.channel(protocol)));
}

/** A socket with one user at a time, in order. */
class SharedSocket {
  readonly #open: () => NetlinkSocket;
  readonly #isKept: boolean;
  #last: Promise<unknown> = Promise.resolve();
  #socket: NetlinkSocket | undefined;
  #isClosed = false;

  /** `isKept`: also after a failure. */
  constructor(open: () => NetlinkSocket, isKept: boolean) {
    this.#open = open;
    this.#isKept = isKept;
  }

  open(): NetlinkSocket {
    if (this.#isClosed) throw closedError();
    return (this.#socket ??= this.#open());
  }

  use<T>(work: (socket: DatagramSocket) => Promise<T>): Promise<T> {
    const result = this.#last.then(async () => {
      const socket = this.open();
      try {
        return await work(socket);
      } catch (error) {
        // Its answers may still come, or its dump go on, which lets no other begin.
        if (!this.#isKept) this.#drop();
        else if (!this.#isClosed) socket.drain();
        throw error;
      }
    });
    this.#last = result.catch(() => undefined);
    return result;
  }

  close(): void {
    this.#isClosed = true;
    this.#drop();
  }

  #drop(): void {
    this.#socket?.close();
    this.#socket = undefined;
  }
}

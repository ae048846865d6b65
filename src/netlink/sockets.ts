/** The sockets of a process: for each protocol one for each purpose, opened when it is first needed, and those for watches. */
import { NetlinkChannel, type Purpose, Turns } from './channel.ts';
import {
  closedError,
  type DatagramSocket,
  type MessageFilter,
  NetlinkSocket,
  type SocketOptions,
} from './socket.ts';
import { type Watch, Watches, type WatchHandler } from './watch.ts';

export type { Watch, WatchHandler } from './watch.ts';

export interface WatchOptions {
  /**
   * Not what this object's own transactions change. The kernel says which socket a change of nf_tables comes from; of links
   * it does not.
   */
  readonly othersOnly?: boolean;
  /** Messages that the kernel leaves out. */
  readonly filter?: MessageFilter | undefined;
}

export class NetlinkSockets {
  readonly #options: SocketOptions;
  readonly #sockets = new Map<string, SharedSocket>();
  readonly #channels = new Map<number, NetlinkChannel>();
  readonly #watches = new Watches();
  #isClosed = false;

  constructor(options: SocketOptions = {}) {
    this.#options = options;
  }

  /** One for each protocol. */
  channel(protocol: number): NetlinkChannel {
    let channel = this.#channels.get(protocol);
    if (!channel) {
      channel = new NetlinkChannel((purpose, work) => this.#use(protocol, purpose, work));
      this.#channels.set(protocol, channel);
    }
    return channel;
  }

  async watch(
    protocol: number,
    groups: readonly number[],
    handler: WatchHandler,
    { othersOnly = false, filter }: WatchOptions = {},
  ): Promise<Watch> {
    if (this.#isClosed) throw closedError();
    const own = othersOnly ? [this.#socket(protocol, 'commit').socket().portId] : [];
    const complete = (wanted: MessageFilter): MessageFilter => ({
      ...wanted,
      notFrom: [...wanted.notFrom, ...own],
    });
    const first = filter ?? (othersOnly ? { notFrom: [] } : undefined);
    const watch = this.#watches.open(protocol, groups, handler, first && complete(first));
    return {
      setFilter: async (replacement) => {
        watch.socket.setFilter(complete(replacement));
        watch.receive();
      },
      close: async () => watch.close(),
    };
  }

  /** What is under way fails. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const socket of this.#sockets.values()) socket.close();
    await this.#watches.close();
  }

  async #use<T>(
    protocol: number,
    purpose: Purpose,
    work: (socket: DatagramSocket) => Promise<T>,
  ): Promise<T> {
    return this.#socket(protocol, purpose).use(work);
  }

  #socket(protocol: number, purpose: Purpose): SharedSocket {
    if (this.#isClosed) throw closedError();
    const key = `${protocol} ${purpose}`;
    let socket = this.#sockets.get(key);
    if (!socket) {
      // The kernel knows by its socket who owns a table and whose a change is: that one stays.
      socket = new SharedSocket(() => NetlinkSocket.open(protocol, this.#options), purpose === 'commit');
      this.#sockets.set(key, socket);
    }
    return socket;
  }
}

/** A socket with one user at a time, in order. */
class SharedSocket {
  readonly #open: () => NetlinkSocket;
  readonly #isKept: boolean;
  readonly #turns = new Turns();
  #socket: NetlinkSocket | undefined;
  #isClosed = false;

  /** `isKept`: also after a failure. */
  constructor(open: () => NetlinkSocket, isKept: boolean) {
    this.#open = open;
    this.#isKept = isKept;
  }

  socket(): NetlinkSocket {
    if (this.#isClosed) throw closedError();
    return (this.#socket ??= this.#open());
  }

  use<T>(work: (socket: DatagramSocket) => Promise<T>): Promise<T> {
    return this.#turns.take(async () => {
      const socket = this.socket();
      try {
        return await work(socket);
      } catch (error) {
        // Its answers may still come, or its dump go on, which lets no other begin.
        if (!this.#isKept) this.#close();
        else if (!this.#isClosed) socket.drain();
        throw error;
      }
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#close();
  }

  #close(): void {
    this.#socket?.close();
    this.#socket = undefined;
  }
}

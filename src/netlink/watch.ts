/**
 * Notifications of the kernel. One `poll` on libuv's pool waits for all sockets, and for an event by which this thread ends the
 * wait. Node waits at its exit for a call that is under way, so the event ends that one, too.
 */
import { isJunctionError } from '../errors.ts';
import { countFault } from '../faults.ts';
import { libc } from '../system/libc.ts';
import { decodeMessages, type Message, NLMSG_OVERRUN } from './codec.ts';
import { netlinkFailed, NetlinkSocket, poll } from './socket.ts';

export interface WatchHandler {
  messages(messages: readonly Message[]): void;
  /** Some messages are missing: everything has to be read again. */
  lost(): void;
}

export interface Watch {
  /** From now on nothing that these senders cause, who replace earlier ones. Earlier notifications have been passed on then. */
  ignore(senders: readonly number[]): Promise<void>;
  close(): Promise<void>;
}

const EFD_CLOEXEC = 0o2000000;
const EFD_NONBLOCK = 0o4000;
const EVENT_BYTES = 8;
/** For one watch; then others have their turn, and other work. */
const MAX_TURN_MS = 10;
const LOSS_PAUSE_MS = 1000;

/** While one is open, the process does not end by itself. */
export class Watches {
  readonly #open = new Set<OpenWatch>();
  #event: number | undefined;
  #polling: Promise<void> | undefined;
  readonly #wake = (): void => {
    const one = new Uint8Array(new BigUint64Array([1n]).buffer);
    if (this.#event !== undefined) libc().write(this.#event, one, one.length);
  };

  /** `own`: the port ids of sockets whose changes are not reported. */
  open(
    protocol: number,
    groups: readonly number[],
    handler: WatchHandler,
    own: readonly number[],
  ): OpenWatch {
    const socket = NetlinkSocket.open(protocol);
    const watch = new OpenWatch(socket, handler, own, () => {
      this.#open.delete(watch);
      this.#wake();
    });
    try {
      if (own.length > 0) socket.setFilter(own);
      for (const group of groups) socket.join(group);
    } catch (error) {
      socket.close();
      throw error;
    }
    this.#open.add(watch);
    this.#wake();
    this.#polling ??= this.#poll();
    return watch;
  }

  async close(): Promise<void> {
    await Promise.all(Array.from(this.#open, (watch) => watch.close()));
    await this.#polling;
  }

  async #poll(): Promise<void> {
    const event = openEvent();
    this.#event = event;
    // First, because one that throws keeps the later ones from being called.
    process.prependListener('exit', this.#wake);
    while (this.#open.size > 0) {
      const ready = await poll([event, ...Array.from(this.#open, ({ socket }) => socket.descriptor)]);
      if (ready.has(event)) libc().read(event, new Uint8Array(EVENT_BYTES), EVENT_BYTES);
      for (const watch of this.#open) if (ready.has(watch.socket.descriptor)) watch.receive();
    }
    process.off('exit', this.#wake);
    this.#event = undefined;
    this.#polling = undefined;
    libc().close(event);
  }
}

class OpenWatch implements Watch {
  readonly socket: NetlinkSocket;
  readonly #handler: WatchHandler;
  readonly #own: readonly number[];
  readonly #onClose: () => void;
  /** Since the last loss that the handler was notified of. */
  #pause: NodeJS.Timeout | undefined;
  #hasLostMore = false;

  constructor(socket: NetlinkSocket, handler: WatchHandler, own: readonly number[], onClose: () => void) {
    this.socket = socket;
    this.#handler = handler;
    this.#own = own;
    this.#onClose = onClose;
  }

  async ignore(senders: readonly number[]): Promise<void> {
    this.socket.setFilter([...this.#own, ...senders]);
    this.receive();
  }

  async close(): Promise<void> {
    clearTimeout(this.#pause);
    this.socket.close();
    this.#onClose();
  }

  /** Passes on what the kernel has sent so far. */
  receive(): void {
    const until = performance.now() + MAX_TURN_MS;
    try {
      while (performance.now() < until) {
        const datagram = this.socket.take();
        if (!datagram) return;
        this.#take(datagram);
      }
    } catch (error) {
      if (!isJunctionError(error)) throw error;
      countFault('netlink_overrun', error.message);
      // The handler reads everything again, so the rest is not passed on.
      this.socket.drain();
      this.#lost();
    }
  }

  /** No message may end the process, or the watch. */
  #take(datagram: Uint8Array): void {
    try {
      const messages = decodeMessages(datagram);
      this.#handler.messages(messages);
      if (!messages.some(({ type }) => type === NLMSG_OVERRUN)) return;
      countFault('netlink_overrun', 'the kernel says so');
    } catch (error) {
      countFault(
        'netlink_malformed',
        isJunctionError(error, 'NETLINK_MALFORMED') ? error.message : stackOf(error),
      );
    }
    this.#lost();
  }

  /**
   * The handler reads everything again, which is a lot of work: at once for the first loss, and for those that follow it at
   * most once a second, the last of them included.
   */
  #lost(): void {
    this.#hasLostMore = this.#pause !== undefined;
    if (this.#hasLostMore) return;
    this.#pause = setTimeout(() => {
      this.#pause = undefined;
      if (this.#hasLostMore) this.#lost();
    }, LOSS_PAUSE_MS).unref();
    this.#handler.lost();
  }
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

function openEvent(): number {
  const { eventfd, errno } = libc();
  const descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (descriptor < 0) throw netlinkFailed('cannot open an event descriptor', errno());
  return descriptor;
}

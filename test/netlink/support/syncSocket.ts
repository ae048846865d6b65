/** Waits in the calling thread: for readers in tests and guests. */
import {
  type Change,
  type ChangeOutcome,
  Exchange,
  type NetlinkReply,
  type NetlinkRequest,
  Sequence,
  outcomeOf,
} from '../../../src/netlink/request.ts';
import { NetlinkSocket } from '../../../src/netlink/socket.ts';

const TIMEOUT_MS = 5000;

export class SyncSocket {
  readonly socket: NetlinkSocket;
  readonly sequence = new Sequence();

  private constructor(socket: NetlinkSocket) {
    this.socket = socket;
  }

  static open(protocol: number): SyncSocket {
    return new SyncSocket(NetlinkSocket.open(protocol));
  }

  request(request: NetlinkRequest): NetlinkReply {
    const exchange = new Exchange(this.sequence);
    const number = exchange.add(request);
    this.#perform(exchange);
    return exchange.replyTo(number);
  }

  /** Outcomes in the order of the changes. */
  apply(changes: readonly Change[]): readonly ChangeOutcome[] {
    return changes.map((change) => {
      const exchange = new Exchange(this.sequence);
      const number = exchange.add(change);
      this.#perform(exchange);
      return outcomeOf(change, exchange.errnoOf(number));
    });
  }

  #perform(exchange: Exchange): void {
    this.socket.sendNow(exchange.bytes);
    while (!exchange.take(this.#receive()));
  }

  close(): void {
    this.socket.close();
  }

  #receive(): Uint8Array {
    for (const until = Date.now() + TIMEOUT_MS; Date.now() < until; ) {
      const datagram = this.socket.take();
      if (datagram) return datagram;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
    throw new Error('the kernel does not answer');
  }
}

/** Waits in the calling thread: for readers in tests and guests. */
import {
  endsAnswer,
  type Job,
  type NetlinkReply,
  type NetlinkRequest,
  requestJob,
  Sequence,
} from '../../../src/netlink/request.ts';
import { decodeMessages } from '../../../src/netlink/codec.ts';
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
    const [reply] = this.perform(requestJob([request], this.sequence));
    if (!reply) throw new Error('no reply');
    return reply;
  }

  perform<Result>({ bytes, exchanges, take, result }: Job<Result>): Result {
    let offset = 0;
    for (const { bytes: length, last, begin } of exchanges) {
      this.socket.sendNow(bytes.subarray(offset, offset + length));
      offset += length;
      for (let isEnded = false; !isEnded; ) {
        const datagram = this.#receive();
        isEnded = endsAnswer(datagram, last, begin);
        take(decodeMessages(datagram));
      }
    }
    return result();
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

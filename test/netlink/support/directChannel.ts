/** A channel that has one socket for everything. */
import { NetlinkChannel } from '../../../src/netlink/channel.ts';
import { Sequence } from '../../../src/netlink/request.ts';
import type { DatagramSocket } from '../../../src/netlink/socket.ts';

export function directChannel(socket: DatagramSocket, sequence = new Sequence()): NetlinkChannel {
  let last: Promise<unknown> = Promise.resolve();
  return new NetlinkChannel((_, work) => {
    const result = last.then(() => work(socket));
    last = result.catch(() => undefined);
    return result;
  }, sequence);
}

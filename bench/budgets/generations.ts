/** Prints the time of each generation of nf_tables in this network namespace, until it is ended. */
import { decodeMessages } from '../../src/netlink/codec.ts';
import { NEW_GENERATION, NFNLGRP_NFTABLES } from '../../src/netlink/nftables/message.ts';
import { NETLINK_NETFILTER, NetlinkSocket, poll } from '../../src/netlink/socket.ts';
import { monotonicMs } from '../nftables/messages.ts';

const port = NetlinkSocket.open(NETLINK_NETFILTER);
port.join(NFNLGRP_NFTABLES);
process.stdout.write('ready\n');
for (;;) {
  await poll([port.descriptor]);
  const at = monotonicMs();
  for (let datagram = port.take(); datagram; datagram = port.take())
    if (decodeMessages(datagram).some(({ type }) => type === NEW_GENERATION)) process.stdout.write(`${at}\n`);
}

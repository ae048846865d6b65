/** Prints the time of each generation of nf_tables in this network namespace, until it is ended. */
import { decodeMessages } from '../../src/netlink/codec.ts';
import { NEW_GENERATION, NFNLGRP_NFTABLES } from '../../src/netlink/nftables/message.ts';
import { KernelPort } from '../../src/netlink/port.ts';
import { NETLINK_NETFILTER } from '../../src/netlink/socket.ts';
import { monotonicMs } from '../nftables/messages.ts';

const HOUR_MS = 3_600_000;

const port = KernelPort.open(NETLINK_NETFILTER, { timeoutMs: HOUR_MS });
port.join(NFNLGRP_NFTABLES);
process.stdout.write('ready\n');
for (;;) {
  const datagram = port.receive();
  const at = monotonicMs();
  if (decodeMessages(datagram).some(({ type }) => type === NEW_GENERATION)) process.stdout.write(`${at}\n`);
}

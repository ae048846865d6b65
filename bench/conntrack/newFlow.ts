/** Flows written straight into the kernel's table. Numbers from linux/netfilter/nfnetlink_conntrack.h. */
import type { Ip } from '../../src/model/ip.ts';
import { type Change, EXISTS } from '../../src/netlink/batch.ts';
import { type MessageWriter, NLM_F_CREATE, NLM_F_EXCL } from '../../src/netlink/codec.ts';
import { addressFamily, ipBytes } from '../../src/netlink/inet.ts';
import { u16be, u32be, u8 } from '../../src/netlink/kinds.ts';
import { NFNL_SUBSYS_CTNETLINK, nfnlRequest } from '../../src/netlink/nfnetlink.ts';

const IPCTNL_MSG_CT_NEW = 0;
const CTA_TUPLE_ORIG = 1;
const CTA_TUPLE_REPLY = 2;
const CTA_TIMEOUT = 7;
const CTA_TUPLE_IP = 1;
const CTA_TUPLE_PROTO = 2;
const CTA_IP_V4_SRC = 1;
const CTA_IP_V4_DST = 2;
const CTA_PROTO_NUM = 1;
const CTA_PROTO_SRC_PORT = 2;
const CTA_PROTO_DST_PORT = 3;
const UDP = 17;
const TIMEOUT_SECONDS = 3600;

export interface Side {
  readonly ip: Ip;
  readonly port: number;
}

/** Of datagrams that `client` sends to `dialled`, and that `answerer` answers. */
export function newFlow(client: Side, dialled: Side, answerer: Side): Change {
  const flags = NLM_F_CREATE | NLM_F_EXCL;
  return {
    ...nfnlRequest(NFNL_SUBSYS_CTNETLINK, IPCTNL_MSG_CT_NEW, flags, addressFamily('IPv4'), (writer) => {
      writer
        .nested(CTA_TUPLE_ORIG, (tuple) => writeTuple(tuple, client, dialled))
        .nested(CTA_TUPLE_REPLY, (tuple) => writeTuple(tuple, answerer, client));
      u32be.write(writer, CTA_TIMEOUT, TIMEOUT_SECONDS);
    }),
    expected: EXISTS,
  };
}

function writeTuple(writer: MessageWriter, from: Side, to: Side): void {
  writer
    .nested(CTA_TUPLE_IP, (ips) =>
      ips.attribute(CTA_IP_V4_SRC, ipBytes(from.ip)).attribute(CTA_IP_V4_DST, ipBytes(to.ip)),
    )
    .nested(CTA_TUPLE_PROTO, (ports) => {
      u8.write(ports, CTA_PROTO_NUM, UDP);
      u16be.write(ports, CTA_PROTO_SRC_PORT, from.port);
      u16be.write(ports, CTA_PROTO_DST_PORT, to.port);
    });
}

/** The kernel's table of flows: asked for some of them, told to forget one. Numbers as in conntrackFlow.ts. */
import { constants } from 'node:os';
import { type Family, parseBytes } from '../model/ip.ts';
import type { DatagramProtocol, FlowQuestion } from '../plan/flows.ts';
import { applyChanges, type Change, type ChangeOutcome } from './batch.ts';
import { NLM_F_DUMP } from './codec.ts';
import {
  CTA_ID,
  CTA_IP_V4_DST,
  CTA_PROTO_DST_PORT,
  CTA_PROTO_NUM,
  CTA_TUPLE_IP,
  CTA_TUPLE_ORIG,
  CTA_TUPLE_PROTO,
  decodeFlow,
  type KernelFlow,
  PROTOCOL_NUMBERS,
  type WantsFlow,
} from './conntrackFlow.ts';
import { NFNL_SUBSYS_CTNETLINK, NFPROTO_IPV4, NFPROTO_IPV6, nfgenmsg, nfnlType } from './nfnetlink.ts';
import { NETLINK_NETFILTER, type NetlinkEnd, type NetlinkRequest, NetlinkSocket } from './socket.ts';

const IPCTNL_MSG_CT_GET = 1;
const IPCTNL_MSG_CT_DELETE = 2;
const CTA_FILTER = 25;
const CTA_FILTER_ORIG_FLAGS = 1;
const CTA_FILTER_REPLY_FLAGS = 2;
/** Which parts of the original tuple must be equal: net/netfilter/nf_internals.h, CTA_FILTER_F_*. */
const FILTER_IP_DST = 1 << 1;
const FILTER_PROTO_NUM = 1 << 3;
const FILTER_PROTO_DST_PORT = 1 << 5;

const ABSENT: Change['expected'] = new Map([[constants.errno.ENOENT, 'absent']]);
const FAMILY_NUMBERS: Readonly<Record<Family, number>> = { IPv4: NFPROTO_IPV4, IPv6: NFPROTO_IPV6 };

/** What a dump is narrowed to inside the kernel. */
export interface DumpFilter {
  readonly protocol: DatagramProtocol;
  readonly address?: FlowQuestion['address'];
  readonly port?: number;
}

/**
 * Kernels before 5.8 do not know the filter, ignore it, and hand out every flow of the family: whoever reads the
 * answer has to look again.
 */
export function getFlows(family: Family, filter: DumpFilter): NetlinkRequest {
  const { protocol, address, port } = filter;
  // For IPv6 the kernel compares the wrong way round, from 5.8 on and still in 6.18: it would leave out the very
  // address that is asked for.
  const destination = address === undefined || family === 'IPv6' ? undefined : parseBytes(address);
  const flags =
    FILTER_PROTO_NUM | (destination ? FILTER_IP_DST : 0) | (port === undefined ? 0 : FILTER_PROTO_DST_PORT);
  return {
    type: nfnlType(NFNL_SUBSYS_CTNETLINK, IPCTNL_MSG_CT_GET),
    flags: NLM_F_DUMP,
    payload: (writer) => {
      writer.raw(nfgenmsg(FAMILY_NUMBERS[family]));
      writer.nested(CTA_TUPLE_ORIG, (tuple) => {
        if (destination) tuple.nested(CTA_TUPLE_IP, (ip) => ip.attribute(CTA_IP_V4_DST, destination));
        tuple.nested(CTA_TUPLE_PROTO, (proto) => {
          proto.u8(CTA_PROTO_NUM, PROTOCOL_NUMBERS[protocol]);
          if (port !== undefined) proto.u16be(CTA_PROTO_DST_PORT, port);
        });
      });
      writer.nested(CTA_FILTER, (nest) => {
        nest.u32(CTA_FILTER_ORIG_FLAGS, flags).u32(CTA_FILTER_REPLY_FLAGS, 0);
      });
    },
  };
}

/** With its number, so that a younger flow with the same addresses and ports is not hit. */
export function deleteFlow(family: Family, { original, id }: KernelFlow): Change {
  return {
    type: nfnlType(NFNL_SUBSYS_CTNETLINK, IPCTNL_MSG_CT_DELETE),
    flags: 0,
    payload: (writer) =>
      writer
        .raw(nfgenmsg(FAMILY_NUMBERS[family]))
        .nested(CTA_TUPLE_ORIG, (tuple) => tuple.raw(original))
        .u32be(CTA_ID, id),
    expected: ABSENT,
  };
}

/** To be opened in the network namespace whose flows are meant. */
export class ConntrackTable {
  readonly #family: Family;
  readonly #reading = NetlinkSocket.open(NETLINK_NETFILTER);
  /** A socket of its own: the other is in the midst of a dump. */
  readonly #removing: NetlinkSocket;

  constructor(family: Family) {
    this.#family = family;
    try {
      this.#removing = NetlinkSocket.open(NETLINK_NETFILTER);
    } catch (error) {
      this.#reading.close();
      throw error;
    }
  }

  /** A few at a time, as the kernel hands them out. They may be removed meanwhile. */
  *flows(filter: DumpFilter, wants: WantsFlow): Generator<readonly KernelFlow[], NetlinkEnd> {
    const batches = this.#reading.batches(getFlows(this.#family, filter));
    for (;;) {
      const step = batches.next();
      if (step.done) return step.value;
      yield step.value.flatMap(({ payload }) => decodeFlow(payload, wants) ?? []);
    }
  }

  /** Outcomes in the order of the flows; one that has gone by itself is `absent`. */
  remove(flows: readonly KernelFlow[]): readonly ChangeOutcome[] {
    return applyChanges(
      this.#removing,
      flows.map((flow) => deleteFlow(this.#family, flow)),
    );
  }

  close(): void {
    this.#reading.close();
    this.#removing.close();
  }
}

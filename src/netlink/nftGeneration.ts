/**
 * The generation of nf_tables: a number that the kernel raises with every change of any rule, whoever made it.
 * While it stands still, nobody has been at our rules. Numbers from linux/netfilter/nf_tables.h.
 */
import { isJunctionError } from '../errors.ts';
import { decodeAttributes, decodeU32be } from './codec.ts';
import { NFGENMSG_BYTES, NFNL_SUBSYS_NFTABLES, NFPROTO_UNSPEC, nfgenmsg, nfnlType } from './nfnetlink.ts';
import { NETLINK_NETFILTER, type NetlinkRequest, NetlinkSocket } from './socket.ts';

const NFT_MSG_GETGEN = 16;
const NFTA_GEN_ID = 1;

/** `undefined` where the kernel does not tell. */
export function readNftGeneration(): number | undefined {
  let socket: NetlinkSocket | undefined;
  try {
    socket = NetlinkSocket.open(NETLINK_NETFILTER);
    const reply = socket.request(getGeneration());
    return reply.kind === 'answered' ? decodeGeneration(reply.messages[0]?.payload) : undefined;
  } catch (error) {
    if (isJunctionError(error)) return undefined;
    throw error;
  } finally {
    socket?.close();
  }
}

export function getGeneration(): NetlinkRequest {
  return {
    type: nfnlType(NFNL_SUBSYS_NFTABLES, NFT_MSG_GETGEN),
    flags: 0,
    payload: (writer) => writer.raw(nfgenmsg(NFPROTO_UNSPEC)),
  };
}

export function decodeGeneration(payload: Uint8Array | undefined): number | undefined {
  if (!payload) return undefined;
  const id = decodeAttributes(payload.subarray(NFGENMSG_BYTES)).find(({ type }) => type === NFTA_GEN_ID);
  return id && decodeU32be(id.value);
}

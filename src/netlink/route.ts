/** Where the kernel would send a packet. Numbers from linux/rtnetlink.h. */
import { type Ip, familyOf } from '../model/ip.ts';
import { malformed } from './codec.ts';
import { addressFamily, ipBytes } from './inet.ts';
import type { NetlinkRequest } from './socket.ts';

const RTM_GETROUTE = 26;
const RTA_DST = 1;
const RTN_LOCAL = 2;
/** struct rtmsg: family, two prefix lengths, type of service, table, protocol, scope, type, flags. */
const RTMSG_BYTES = 12;
const TYPE_OFFSET = 7;

export function getRoute(to: Ip): NetlinkRequest {
  const bytes = ipBytes(to);
  const header = new Uint8Array(RTMSG_BYTES);
  header.set([addressFamily(familyOf(to)), bytes.length * 8]);
  return {
    type: RTM_GETROUTE,
    flags: 0,
    payload: (writer) => writer.raw(header).attribute(RTA_DST, bytes),
  };
}

/** Whether the packet is for this machine itself. */
export function decodeIsLocal(payload: Uint8Array): boolean {
  if (payload.length < RTMSG_BYTES) throw malformed(`a route of ${payload.length} bytes`);
  return payload[TYPE_OFFSET] === RTN_LOCAL;
}

/** Sets and virtual servers as the kernel has them. */
import { constants } from 'node:os';
import type { KernelSet, ServerAttributes } from '../../backends/ipvs/kernelDoor.ts';
import { entryKey, SET_IDS, setName } from '../../backends/ipvs/sets.ts';
import { type Family, familyOf } from '../../model/ip.ts';
import type { NetlinkChannel } from '../netlink/channel.ts';
import { type DumpReply, messagesOf } from '../netlink/dump.ts';
import { decodeSet, decodeSetHeader, listRequest } from '../netlink/ipsetList.ts';
import { isIpsetType } from '../netlink/ipsetEntry.ts';
import { decodeService, getServices, IP_VS_SVC_F_HASHED } from '../netlink/ipvsService.ts';

/** Those of our names, by name. */
export async function readSets(
  netfilter: NetlinkChannel,
  family: Family,
): Promise<ReadonlyMap<string, KernelSet>> {
  const names = SET_IDS.map((id) => setName(id, family));
  const replies = await netfilter.dumpAll(names.map((name) => listRequest(name, 0)));
  return new Map(
    replies.flatMap((reply, index) => {
      const set = decodeKernelSet(reply);
      return set ? [[names[index] ?? '', set] as const] : [];
    }),
  );
}

/** Everybody's. */
export async function readServers(
  generic: NetlinkChannel,
  ipvs: number,
  family: Family,
): Promise<readonly ServerAttributes[]> {
  const [reply] = await generic.dumpAll([getServices(ipvs)]);
  return (
    messagesOf(reply, 'the virtual servers')
      .flatMap(({ payload }) => decodeService(payload) ?? [])
      .filter(({ ip }) => familyOf(ip) === family)
      // The kernel's own note that the server is in its table.
      .map((server) => ({ ...server, flags: server.flags & ~IP_VS_SVC_F_HASHED }))
  );
}

function decodeKernelSet(reply: DumpReply): KernelSet | undefined {
  if (reply.kind === 'refused' && reply.errno === constants.errno.ENOENT) return undefined;
  const messages = messagesOf(reply, 'the sets');
  const header = decodeSetHeader(messages);
  if (!header) return undefined;
  const capacity = header.maxElements ?? Number.POSITIVE_INFINITY;
  if (!isIpsetType(header.type)) return { type: header.type, capacity, entries: new Map() };
  const entries = decodeSet(messages)?.entries ?? [];
  return { type: header.type, capacity, entries: new Map(entries.map((entry) => [entryKey(entry), entry])) };
}

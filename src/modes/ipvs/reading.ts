/** Sets and virtual servers as the kernel has them. */
import { constants } from 'node:os';
import type { KernelSet, ServerAttributes } from './rules/client.ts';
import { entryKey, SET_IDS, type SetEntry, setName } from './rules/sets.ts';
import { type Family, familyOf } from '../../model/ip.ts';
import { TimeSlice, runSliced } from '../../time/timeSlice.ts';
import { systemClock } from '../../time/systemClock.ts';
import { type DumpReply, messagesOf, type NetlinkChannel } from '../../netlink/channel.ts';
import { decodeSetHeader, decodingSet, listRequest } from '../../netlink/ipset.ts';
import { isIpsetType } from '../../netlink/ipsetEntry.ts';
import { decodeService, getServices, IP_VS_SVC_F_HASHED } from '../../netlink/ipvs.ts';

/** So many take some tens of microseconds. */
const STEP = 32;

/** Those of our names, by name. */
export async function readSets(
  netfilter: NetlinkChannel,
  family: Family,
): Promise<ReadonlyMap<string, KernelSet>> {
  const names = SET_IDS.map((id) => setName(id, family));
  const replies = await netfilter.dumpAll(names.map((name) => listRequest(name, 0)));
  const timeSlice = new TimeSlice(systemClock);
  const sets = new Map<string, KernelSet>();
  for (const [index, reply] of replies.entries()) {
    const set = await runSliced(decodingKernelSet(reply), timeSlice);
    if (set) sets.set(names[index] ?? '', set);
  }
  return sets;
}

/** Everybody's. */
export async function readServers(
  generic: NetlinkChannel,
  ipvs: number,
  family: Family,
): Promise<readonly ServerAttributes[]> {
  const [reply] = await generic.dumpAll([getServices(ipvs)]);
  return runSliced(decodingServers(reply, family), new TimeSlice(systemClock));
}

function* decodingServers(
  reply: DumpReply | undefined,
  family: Family,
): Generator<void, readonly ServerAttributes[]> {
  const servers: ServerAttributes[] = [];
  for (const { payload } of messagesOf(reply, 'the virtual servers')) {
    const server = decodeService(payload);
    // Without the kernel's own note that the server is in its table.
    if (server && familyOf(server.ip) === family)
      servers.push({ ...server, flags: server.flags & ~IP_VS_SVC_F_HASHED });
    if (servers.length % STEP === 0) yield;
  }
  return servers;
}

function* decodingKernelSet(reply: DumpReply): Generator<void, KernelSet | undefined> {
  if (reply.kind === 'refused' && reply.errno === constants.errno.ENOENT) return undefined;
  const messages = messagesOf(reply, 'the sets');
  const header = decodeSetHeader(messages);
  if (!header) return undefined;
  const capacity = header.maxElements ?? Number.POSITIVE_INFINITY;
  if (!isIpsetType(header.type)) return { type: header.type, capacity, entries: new Map() };
  const entries = new Map<string, SetEntry>();
  for (const entry of (yield* decodingSet(messages))?.entries ?? []) {
    entries.set(entryKey(entry), entry);
    if (entries.size % STEP === 0) yield;
  }
  return { type: header.type, capacity, entries };
}

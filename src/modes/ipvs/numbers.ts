/** Numbers that differ from kernel to kernel, asked once. */
import { constants } from 'node:os';
import { JunctionError } from '../../errors.ts';
import type { Family } from '../../model/ip.ts';
import { decodeFamilyId, getFamily } from '../../netlink/genetlink.ts';
import { IPSET_TYPES, type IpsetType } from '../../netlink/ipsetEntry.ts';
import { decodeSupport, typeRequest } from '../../netlink/ipset.ts';
import type { Numbers } from './changes.ts';
import type { IpvsChannels } from './client.ts';

export async function findNumbers(
  { generic, netfilter }: Pick<IpvsChannels, 'generic' | 'netfilter'>,
  family: Family,
): Promise<Numbers> {
  const reply = await generic.request(getFamily('IPVS'));
  const [message] = reply.kind === 'answered' ? reply.messages : [];
  if (!message) throw noIpvs(reply);
  const revisions = new Map<IpsetType, number>();
  for (const type of IPSET_TYPES) {
    const support = decodeSupport(type, await netfilter.request(typeRequest(type, family)));
    if (support.state === 'absent')
      throw new JunctionError('IPVS_UNAVAILABLE', support.reason, { hint: `modprobe ${support.module}` });
    revisions.set(type, support.revision);
  }
  return { ipvs: decodeFamilyId(message.payload), revisions };
}

function noIpvs(reply: {
  readonly kind: string;
  readonly errno?: number;
  readonly name?: string;
}): JunctionError {
  if (reply.errno === constants.errno.ENOENT)
    return new JunctionError('IPVS_UNAVAILABLE', "can't use the IPVS proxier: the kernel has no IPVS", {
      hint: 'Load its module on the node: modprobe ip_vs',
    });
  return new JunctionError('NETLINK_FAILED', `netlink: cannot look up IPVS: ${reply.name ?? 'no answer'}`);
}

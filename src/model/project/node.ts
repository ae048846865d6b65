/** Raw Node → `Node`. */
import type { Cidr, Ip } from '../ip.ts';
import type { Node } from '../objects.ts';
import { fits, label, LABEL_VALUE, readName, SUBDOMAIN } from './names.ts';
import { type Cursor, project, type Projection, readText } from '../../text/cursor.ts';
import { NO_CIDRS, NO_IPS, readCidrLeniently, readEach, readIpLeniently } from './addresses.ts';
import { quote } from '../../text/printable.ts';

export const ZONE = 'topology.kubernetes.io/zone';

export function projectNode(raw: unknown): Projection<Node> {
  return project(raw, (root) => {
    const metadata = root.map('metadata');
    return {
      name: readName(metadata.field('name'), SUBDOMAIN),
      ips: readNodeIps(root.map('status').maps('addresses')),
      podCIDRs: readPodCidrs(root.map('spec')),
      zone: readZone(label(metadata, ZONE)),
      eligible: isEligible(metadata, root.map('spec')),
    };
  });
}

function readZone(at: Cursor): string | undefined {
  const text = readText(at);
  if (text === '' || fits(LABEL_VALUE, text)) return text || undefined;
  at.warn(`${quote(text)} is not a valid name; it counts as none`, LABEL_VALUE.expected);
  return undefined;
}

/** The cluster autoscaler marks nodes that it is about to delete. */
export const DOOMED = 'ToBeDeletedByClusterAutoscaler';

function isEligible(metadata: Cursor, spec: Cursor): boolean {
  const isDoomed = spec.maps('taints').some((taint) => taint.field('key').value === DOOMED);
  return metadata.field('deletionTimestamp').missing && !isDoomed;
}

function readNodeIps(addresses: readonly Cursor[]): readonly Ip[] {
  const ofType = (type: string): readonly Cursor[] =>
    addresses.filter((at) => at.field('type').value === type).map((at) => at.field('address'));
  return readEach([...ofType('InternalIP'), ...ofType('ExternalIP')], NO_IPS, readIpLeniently);
}

function readPodCidrs(spec: Cursor): readonly Cidr[] {
  const list = spec.list('podCIDRs');
  const single = spec.field('podCIDR');
  const items = list.length > 0 || single.missing || single.value === '' ? list : [single];
  return readEach(items, NO_CIDRS, readCidrLeniently);
}

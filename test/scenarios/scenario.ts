/** A scenario: a cluster, the node's settings, and a table of packets. The expectations come from the specification. */
import { ADDRESSES } from '../../lab/topology.ts';
import { type Cidr, FAMILIES, type Family, type Ip, parseCidr, parseIp } from '../../src/model/ip.ts';
import { objectKey } from '../../src/model/objects.ts';
import type { Host } from '../../src/plan/decide.ts';
import type { DetectLocal, ViewSettings } from '../../src/plan/view.ts';
import type { KernelWriter } from '../../src/proxy/proxier.ts';
import { Proxier } from '../../src/proxy/proxier.ts';
import { type Manifests, parseManifests } from '../../src/sources/manifests/source.ts';
import { type KubernetesObject, node1, printManifests } from './objects.ts';
import { parsePackets, type Row } from './packets.ts';

export interface ScenarioSettings {
  readonly masqueradeAll?: boolean;
  /** `none`: an empty cluster CIDR. Unset: the lab's pod network. */
  readonly detectLocal?: DetectLocal | 'none';
  readonly nodePortAddresses?: readonly string[];
  readonly localhostNodePorts?: boolean;
  /** Of node1. */
  readonly zone?: string;
}

export interface Scenario {
  readonly name: string;
  readonly manifests: Manifests;
  readonly settings: ViewSettings;
  readonly rows: readonly Row[];
  /** As it was written. */
  readonly told: {
    readonly objects: readonly KubernetesObject[];
    readonly packets: string;
    readonly settings: ScenarioSettings;
  };
}

export function scenario(
  name: string,
  objects: readonly KubernetesObject[],
  packets: string,
  settings: ScenarioSettings = {},
): Scenario {
  const manifests = parseManifests(printManifests([...objects, node1(settings.zone)]), name);
  const [problem] = manifests.problems;
  if (problem) throw new Error(`scenario ${name}: ${JSON.stringify(problem)}`);
  const told = { objects, packets, settings };
  return { name, manifests, settings: viewSettings(settings), rows: parsePackets(packets), told };
}

function viewSettings(settings: ScenarioSettings): ViewSettings {
  const { detectLocal } = settings;
  return {
    nodeName: 'node1',
    bindAddress: undefined,
    detectLocal:
      detectLocal === 'none' ? { mode: 'ClusterCIDR', cidrs: [] } : (detectLocal ?? { ...POD_NETWORK }),
    masqueradeAll: settings.masqueradeAll ?? false,
    nodePortAddresses: (settings.nodePortAddresses ?? []).map(cidr),
    localhostNodePorts: settings.localhostNodePorts ?? true,
  };
}

export function cidr(text: string): Cidr {
  const parsed = parseCidr(text);
  if (parsed === undefined) throw new Error(`not a CIDR: ${text}`);
  return parsed;
}

export function ip(text: string): Ip {
  const parsed = parseIp(text);
  if (parsed === undefined) throw new Error(`not an address: ${text}`);
  return parsed;
}

export const POD_NETWORK: DetectLocal = {
  mode: 'ClusterCIDR',
  cidrs: [cidr('10.244.0.0/16'), cidr('fd00:244::/32')],
};

/** Everything that node1 calls its own; the kernel's interfaces would say the same. */
export function node1Addresses(family: Family): readonly Ip[] {
  return [...ADDRESSES.node1[family], ip(family === 'IPv4' ? '127.0.0.1' : '::1')];
}

export const NODE1: Host = { addresses: FAMILIES.flatMap(node1Addresses) };

export function proxyOf(family: Family, { manifests, settings }: Scenario, writer: KernelWriter): Proxier {
  const proxy = new Proxier({ family, settings, writer });
  for (const service of manifests.services)
    proxy.onService(objectKey(service.namespace, service.name), service);
  for (const slice of manifests.slices) proxy.onEndpointSlice(objectKey(slice.namespace, slice.name), slice);
  proxy.onNode(manifests.nodes.find(({ name }) => name === settings.nodeName));
  proxy.onSynced();
  return proxy;
}

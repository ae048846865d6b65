/** Clusters of any size, made up. */
import { type Ip, parseCidr, parseIp } from '../src/model/ip.ts';
import { type EndpointSlice, objectKey, type Service } from '../src/model/objects.ts';
import type { Plan } from '../src/plan/types.ts';
import type { ViewSettings } from '../src/plan/view.ts';
import { Proxier } from '../src/proxy/proxier.ts';

export interface Sizes {
  readonly services: number;
  readonly endpoints: number;
}

export const VIEW: ViewSettings = {
  nodeName: 'node1',
  bindAddress: undefined,
  detectLocal: { mode: 'ClusterCIDR', cidrs: [known(parseCidr('10.0.0.0/8'))] },
  masqueradeAll: false,
  nodePortAddresses: [],
  localhostNodePorts: true,
};

export function makeService(index: number): Service {
  return {
    namespace: `team-${index % 100}`,
    name: `service-${index}`,
    type: 'ClusterIP',
    createdAt: undefined,
    clusterIPs: { IPv4: address(172, 16, index) },
    ports: [{ name: 'http', protocol: 'TCP', port: 80, nodePort: 0 }],
    externalIPs: [],
    loadBalancerIPs: [],
    loadBalancerSourceRanges: [],
    affinitySeconds: undefined,
    externalTrafficPolicy: 'Cluster',
    internalTrafficPolicy: 'Cluster',
    healthCheckNodePort: 0,
  };
}

/** `generation` gives the last endpoint another address, as when a pod was replaced. */
export function makeSlice(index: number, endpoints: number, generation = 0): EndpointSlice {
  return {
    namespace: `team-${index % 100}`,
    name: `service-${index}-1`,
    service: `service-${index}`,
    family: 'IPv4',
    ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
    endpoints: Array.from({ length: endpoints }, (_, number) => {
      const isReplaced = number === endpoints - 1 && generation > 0;
      return {
        ip: isReplaced ? address(11, generation % 200, index) : address(10, number, index),
        nodeName: number === 0 ? 'node1' : `node${number + 1}`,
        ready: true,
        serving: true,
        terminating: false,
        zoneHints: [],
        nodeHints: [],
      };
    }),
    triggerTime: undefined,
  };
}

/** All of a cluster's objects at once, as when the first list is complete. */
export function fill(
  proxy: Pick<Proxier, 'onService' | 'onEndpointSlice' | 'onSynced'>,
  { services, endpoints }: Sizes,
): void {
  for (let index = 0; index < services; index++) {
    const service = makeService(index);
    const slice = makeSlice(index, endpoints);
    proxy.onService(objectKey(service.namespace, service.name), service);
    proxy.onEndpointSlice(objectKey(slice.namespace, slice.name), slice);
  }
  proxy.onSynced();
}

/** The plan alone, which nobody writes. */
export function plannedCluster(sizes: Sizes): Plan {
  const proxy = new Proxier({
    family: 'IPv4',
    settings: VIEW,
    writer: {
      sync: () => Promise.reject(new Error('this plan is not written anywhere')),
      requestFull: () => {},
    },
  });
  fill(proxy, sizes);
  proxy.replan();
  return proxy.plan;
}

function address(first: number, second: number, index: number): Ip {
  return known(parseIp(`${first}.${second + (index >> 16)}.${(index >> 8) & 255}.${index & 255}`));
}

function known<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('not an address');
  return value;
}

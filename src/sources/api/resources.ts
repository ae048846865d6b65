/** What is watched, how each of it is asked for, and the slim values that are kept of it. */
import { type Cidr, parseCidr } from '../../model/ip.ts';
import type { EndpointSlice, Node, Service } from '../../model/objects.ts';
import { PackedSlice } from '../../model/packedSlice.ts';
import { projectEndpointSlice } from '../../model/project/endpointSlice.ts';
import { projectNode } from '../../model/project/node.ts';
import { projectService } from '../../model/project/service.ts';
import { readName, SUBDOMAIN } from '../../model/project/names.ts';
import { mapProjection, project, type Projection, readText } from '../../text/cursor.ts';
import { quote } from '../../text/printable.ts';
import type { Interner } from './interner.ts';
import { straightEndpointSlice } from './protobuf/straightEndpointSlice.ts';
import type { StraightRead } from './protobuf/straightReader.ts';
import { straightService } from './protobuf/straightService.ts';

export interface Resource<T> {
  /** As in paths: `services`. */
  readonly name: string;
  /** `Service` */
  readonly kind: string;
  readonly path: string;
  readonly selectors: Readonly<Record<string, string>>;
  /** Servers may not have it; then it counts as empty. */
  readonly optional?: boolean;
  readonly project: (raw: unknown) => Projection<T>;
  /** From protobuf, without a raw object between. Nothing: it is not in order, and `project` says why. */
  readonly readStraight?: StraightRead<T>;
}

export function services(interner: Interner): Resource<Service> {
  return {
    name: 'services',
    kind: 'Service',
    path: '/api/v1/services',
    selectors: {
      labelSelector: '!service.kubernetes.io/service-proxy-name',
      fieldSelector: 'spec.clusterIP!=None',
    },
    project: (raw) => mapProjection(projectService(raw), (value) => slimService(value, interner)),
    readStraight: straightService(interner),
  };
}

export function endpointSlices(interner: Interner): Resource<EndpointSlice> {
  return {
    name: 'endpointslices',
    kind: 'EndpointSlice',
    path: '/apis/discovery.k8s.io/v1/endpointslices',
    selectors: { labelSelector: '!service.kubernetes.io/headless' },
    project: (raw) => mapProjection(projectEndpointSlice(raw), (value) => slimEndpointSlice(value, interner)),
    readStraight: straightEndpointSlice(interner),
  };
}

export function oneNode(name: string): Resource<Node> {
  return {
    name: 'nodes',
    kind: 'Node',
    path: '/api/v1/nodes',
    selectors: { fieldSelector: `metadata.name=${name}` },
    project: projectNode,
  };
}

/** The ranges that cluster IPs come from. */
export const SERVICE_CIDRS: Resource<readonly Cidr[]> = {
  name: 'servicecidrs',
  kind: 'ServiceCIDR',
  path: '/apis/networking.k8s.io/v1/servicecidrs',
  selectors: {},
  optional: true,
  project: projectServiceCidr,
};

function projectServiceCidr(raw: unknown): Projection<readonly Cidr[]> {
  return project(raw, (root) => {
    readName(root.map('metadata').field('name'), SUBDOMAIN);
    return root
      .map('spec')
      .list('cidrs')
      .flatMap((at) => {
        const text = readText(at);
        const cidr = parseCidr(text);
        if (cidr === undefined) at.warn(`${quote(text)} is not a CIDR`, 'a CIDR such as 10.96.0.0/16');
        return cidr ?? [];
      });
  });
}

function slimService(value: Service, interner: Interner): Service {
  const ports = value.ports.map((port) => ({ ...port, name: interner.text(port.name) }));
  return { ...value, namespace: interner.text(value.namespace), ports: interner.servicePorts(ports) };
}

/** `service` stays as it is: nearly each is another, and sharing would keep the names of services that were deleted. */
function slimEndpointSlice(value: EndpointSlice, interner: Interner): EndpointSlice {
  const namespace = interner.text(value.namespace);
  const slice = { ...value, namespace, ports: interner.slicePorts(value.ports) };
  return PackedSlice.of(slice, (state) => interner.state(state));
}

/** What is watched, and how each of it is asked for. */
import type { EndpointSlice, Node, Service } from '../../model/objects.ts';
import type { Projection } from '../../model/problem.ts';
import { projectEndpointSlice, projectNode, projectService } from '../../model/project/index.ts';
import type { Interner } from './interner.ts';
import { projectServiceCidr, type ServiceCidr } from './serviceCidr.ts';
import { slimEndpointSlice, slimService } from './slim.ts';

export interface Resource<T> {
  /** As in paths: `services`. */
  readonly name: string;
  /** `Service` */
  readonly kind: string;
  readonly path: string;
  readonly selectors: Readonly<Record<string, string>>;
  /** Servers may not have it; then it counts as empty. */
  readonly optional: boolean;
  readonly project: (raw: unknown) => Projection<T>;
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
    optional: false,
    project: (raw) => mapValue(projectService(raw), (value) => slimService(value, interner)),
  };
}

export function endpointSlices(interner: Interner): Resource<EndpointSlice> {
  return {
    name: 'endpointslices',
    kind: 'EndpointSlice',
    path: '/apis/discovery.k8s.io/v1/endpointslices',
    selectors: { labelSelector: '!service.kubernetes.io/headless' },
    optional: false,
    project: (raw) => mapValue(projectEndpointSlice(raw), (value) => slimEndpointSlice(value, interner)),
  };
}

export function oneNode(name: string): Resource<Node> {
  return {
    name: 'nodes',
    kind: 'Node',
    path: '/api/v1/nodes',
    selectors: { fieldSelector: `metadata.name=${name}` },
    optional: false,
    project: projectNode,
  };
}

export function serviceCidrs(): Resource<ServiceCidr> {
  return {
    name: 'servicecidrs',
    kind: 'ServiceCIDR',
    path: '/apis/networking.k8s.io/v1/servicecidrs',
    selectors: {},
    optional: true,
    project: projectServiceCidr,
  };
}

function mapValue<T>(projection: Projection<T>, map: (value: T) => T): Projection<T> {
  return projection.kind === 'object' ? { ...projection, value: map(projection.value) } : projection;
}

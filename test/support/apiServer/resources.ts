/** The resources that the server serves. */
export interface ServedResource {
  readonly name: string;
  readonly kind: string;
  readonly apiVersion: string;
  readonly path: string;
}

export const RESOURCES: readonly ServedResource[] = [
  { name: 'services', kind: 'Service', apiVersion: 'v1', path: '/api/v1/services' },
  { name: 'nodes', kind: 'Node', apiVersion: 'v1', path: '/api/v1/nodes' },
  {
    name: 'endpointslices',
    kind: 'EndpointSlice',
    apiVersion: 'discovery.k8s.io/v1',
    path: '/apis/discovery.k8s.io/v1/endpointslices',
  },
  {
    name: 'servicecidrs',
    kind: 'ServiceCIDR',
    apiVersion: 'networking.k8s.io/v1',
    path: '/apis/networking.k8s.io/v1/servicecidrs',
  },
];

export type Kind = 'Service' | 'Node' | 'EndpointSlice' | 'ServiceCIDR';

export function resourceOfKind(kind: string): ServedResource {
  const resource = RESOURCES.find((each) => each.kind === kind);
  if (resource === undefined) throw new Error(`the test API server has no ${kind}`);
  return resource;
}

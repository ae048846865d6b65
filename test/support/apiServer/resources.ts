/** The resources that the server serves. */
export interface ServedResource {
  readonly name: string;
  readonly kind: string;
  readonly apiVersion: string;
  readonly path: string;
  /** What an object of this kind is made of besides its metadata, when it has nothing: bookmarks are such objects. */
  readonly zero: Readonly<Record<string, unknown>>;
}

const NODE_INFO = {
  machineID: '',
  systemUUID: '',
  bootID: '',
  kernelVersion: '',
  osImage: '',
  containerRuntimeVersion: '',
  kubeletVersion: '',
  kubeProxyVersion: '',
  operatingSystem: '',
  architecture: '',
};

export const RESOURCES: readonly ServedResource[] = [
  {
    name: 'services',
    kind: 'Service',
    apiVersion: 'v1',
    path: '/api/v1/services',
    zero: { spec: {}, status: { loadBalancer: {} } },
  },
  {
    name: 'nodes',
    kind: 'Node',
    apiVersion: 'v1',
    path: '/api/v1/nodes',
    zero: { spec: {}, status: { daemonEndpoints: { kubeletEndpoint: { Port: 0 } }, nodeInfo: NODE_INFO } },
  },
  {
    name: 'endpointslices',
    kind: 'EndpointSlice',
    apiVersion: 'discovery.k8s.io/v1',
    path: '/apis/discovery.k8s.io/v1/endpointslices',
    zero: { addressType: '', endpoints: null, ports: null },
  },
  {
    name: 'servicecidrs',
    kind: 'ServiceCIDR',
    apiVersion: 'networking.k8s.io/v1',
    path: '/apis/networking.k8s.io/v1/servicecidrs',
    zero: { spec: {}, status: {} },
  },
  {
    name: 'pods',
    kind: 'Pod',
    apiVersion: 'v1',
    path: '/api/v1/pods',
    zero: { spec: { containers: null }, status: {} },
  },
];

export type Kind = 'Service' | 'Node' | 'EndpointSlice' | 'ServiceCIDR' | 'Pod';

export function resourceOfKind(kind: string): ServedResource {
  const resource = RESOURCES.find((each) => each.kind === kind);
  if (resource === undefined) throw new Error(`the test API server has no ${kind}`);
  return resource;
}

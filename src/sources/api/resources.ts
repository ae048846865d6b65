/** What is watched, how each of it is asked for, and the slim values that are kept of it. */
import { type Cidr, parseCidr } from '../../model/ip.ts';
import type { EndpointSlice, Node, Service, SliceEndpoint } from '../../model/objects.ts';
import { projectEndpointSlice } from '../../model/project/endpointSlice.ts';
import { projectNode } from '../../model/project/node.ts';
import { projectService } from '../../model/project/service.ts';
import { readName, SUBDOMAIN } from '../../model/project/names.ts';
import { mapProjection, project, type Projection, readText } from '../../text/cursor.ts';
import { quote } from '../../text/printable.ts';

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
  };
}

export function endpointSlices(interner: Interner): Resource<EndpointSlice> {
  return {
    name: 'endpointslices',
    kind: 'EndpointSlice',
    path: '/apis/discovery.k8s.io/v1/endpointslices',
    selectors: { labelSelector: '!service.kubernetes.io/headless' },
    project: (raw) => mapProjection(projectEndpointSlice(raw), (value) => slimEndpointSlice(value, interner)),
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
  const id = ports.map(({ name, protocol, port, nodePort }) => `${name} ${protocol} ${port} ${nodePort}`);
  return {
    ...value,
    namespace: interner.text(value.namespace),
    ports: interner.list(`service ${id.join()}`, ports),
  };
}

/** `service` stays as it is: nearly each is another, and sharing would keep the names of services that were deleted. */
function slimEndpointSlice(value: EndpointSlice, interner: Interner): EndpointSlice {
  const id = value.ports.map(({ name, protocol, port }) => `${name} ${protocol} ${port}`);
  return {
    ...value,
    namespace: interner.text(value.namespace),
    ports: interner.list(`slice ${id.join()}`, value.ports),
    endpoints: value.endpoints.map((endpoint) => slimEndpoint(endpoint, interner)),
  };
}

function slimEndpoint(endpoint: SliceEndpoint, interner: Interner): SliceEndpoint {
  return {
    ip: endpoint.ip,
    nodeName: endpoint.nodeName === undefined ? undefined : interner.text(endpoint.nodeName),
    ready: endpoint.ready,
    serving: endpoint.serving,
    terminating: endpoint.terminating,
    zoneHints: slimNames(endpoint.zoneHints, interner),
    nodeHints: slimNames(endpoint.nodeHints, interner),
    ...(endpoint.pod !== undefined && { pod: endpoint.pod }),
    ...(endpoint.zone !== undefined && { zone: interner.text(endpoint.zone) }),
  };
}

function slimNames(names: readonly string[], interner: Interner): readonly string[] {
  return names.length === 0 ? names : interner.list(`names ${names.join()}`, names);
}

const MOST_VALUES = 50_000;
/** Longer ones are rarely repeated. */
const LONGEST = 300;

/**
 * One copy of each value that many objects repeat: namespaces, node names, zones, lists of ports.
 *
 * Bounded: a cluster that makes up new names all the time gives up sharing, not memory.
 */
export class Interner {
  readonly #texts = new Map<string, string>();
  readonly #lists = new Map<string, readonly unknown[]>();

  text(value: string): string {
    return this.#share(this.#texts, value, value);
  }

  /** Two lists with one `id` have the same content. */
  list<T>(id: string, value: readonly T[]): readonly T[] {
    return this.#share(this.#lists, id, value) as readonly T[];
  }

  /** Starting over forgets what went out of use; what is in use comes back with the next objects. */
  #share<T>(values: Map<string, T>, id: string, value: T): T {
    if (id.length > LONGEST) return value;
    const known = values.get(id);
    if (known !== undefined) return known;
    if (values.size >= MOST_VALUES) values.clear();
    values.set(id, value);
    return value;
  }
}

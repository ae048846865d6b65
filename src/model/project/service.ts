/** Raw Service → `Service`. */
import type { Service, ServiceType, TrafficPolicy } from '../objects.ts';
import type { Projection } from '../problem.ts';
import { NO_CIDRS, NO_IPS, readEach, readOrdinaryIp } from './addresses.ts';
import { readClusterIPs } from './clusterIps.ts';
import { type Cursor, Ignored, project } from './cursor.ts';
import { hasLabel, readMetadata } from './metadata.ts';
import { LABEL } from './names.ts';
import { quote } from './quote.ts';
import { readChoiceOr, readInteger, readOptionalPort, readText, readTime } from './read.ts';
import { MOST_PORTS, readServicePorts } from './servicePorts.ts';
import { readSourceRanges } from './sourceRanges.ts';

const OTHER_PROXY = 'service.kubernetes.io/service-proxy-name';
const TYPES: readonly (ServiceType | 'ExternalName')[] = [
  'ClusterIP',
  'NodePort',
  'LoadBalancer',
  'ExternalName',
];
const POLICIES: readonly TrafficPolicy[] = ['Cluster', 'Local'];
/** What the API server fills in. */
const DEFAULT_AFFINITY_SECONDS = 10_800;

export function projectService(raw: unknown): Projection<Service> {
  return project(raw, readService);
}

function readService(root: Cursor): Service | Ignored {
  const metadata = root.map('metadata');
  const spec = root.map('spec');
  const { namespace, name } = readMetadata(metadata, LABEL);
  const type = readChoiceOr(spec.field('type'), TYPES, 'ClusterIP');

  if (hasLabel(metadata, OTHER_PROXY)) return new Ignored('it is for another proxy');
  if (type === 'ExternalName') return new Ignored('it is an ExternalName');
  const clusterIP = readText(spec.field('clusterIP'));
  if (clusterIP === 'None') return new Ignored('it is headless');
  if (clusterIP === '') return new Ignored('it has no cluster IP');

  const clusterIPs = readClusterIPs(spec);
  const sourceRanges = readSourceRanges(spec);
  const service: Service = {
    namespace,
    name,
    type,
    createdAt: readTime(metadata.field('creationTimestamp')),
    clusterIPs,
    ports: readServicePorts(spec),
    externalIPs: readEach(spec.list('externalIPs'), NO_IPS, readOrdinaryIp),
    loadBalancerIPs: sourceRanges === undefined ? NO_IPS : readLoadBalancerIPs(root),
    loadBalancerSourceRanges: sourceRanges ?? NO_CIDRS,
    affinitySeconds: readAffinity(spec),
    externalTrafficPolicy: readChoiceOr(spec.field('externalTrafficPolicy'), POLICIES, 'Cluster'),
    internalTrafficPolicy: readChoiceOr(spec.field('internalTrafficPolicy'), POLICIES, 'Cluster'),
    healthCheckNodePort:
      spec.field('healthCheckNodePort').attempt('there is no health check', readOptionalPort) ?? 0,
  };
  const unread = readUnread(root, spec);
  if (Object.values(unread).some((count) => count > 0)) return servedOf({ ...service, unread });
  return servedOf(service);
}

function servedOf(service: Service): Service | Ignored {
  return Object.keys(service.clusterIPs).length > 0 ? service : new Ignored('it has no cluster IP');
}

function readUnread(root: Cursor, spec: Cursor): Required<Service>['unread'] {
  return {
    ports: spec.field('ports').countBeyond(MOST_PORTS),
    externalIPs: spec.field('externalIPs').countBeyond(),
    loadBalancerIPs: root.field('status').field('loadBalancer').field('ingress').countBeyond(),
    sourceRanges: spec.field('loadBalancerSourceRanges').countBeyond(),
  };
}

function readLoadBalancerIPs(root: Cursor): Service['loadBalancerIPs'] {
  return readEach(root.map('status').map('loadBalancer').maps('ingress'), NO_IPS, (ingress) => {
    const mode = ingress.field('ipMode');
    if (mode.value === 'Proxy') return undefined;
    if (!mode.missing && mode.value !== 'VIP') {
      mode.warn(`${quote(mode.value)} is not known`, 'VIP or Proxy');
      return undefined;
    }
    return readOrdinaryIp(ingress.field('ip'));
  });
}

function readAffinity(spec: Cursor): number | undefined {
  const affinity = readChoiceOr(spec.field('sessionAffinity'), ['None', 'ClientIP'], 'None');
  if (affinity === 'None') return undefined;
  const seconds = spec
    .field('sessionAffinityConfig')
    .attempt(`it counts as ${DEFAULT_AFFINITY_SECONDS} seconds`, (config) =>
      readInteger(config.map('clientIP').field('timeoutSeconds'), 1, 86_400, DEFAULT_AFFINITY_SECONDS),
    );
  return seconds ?? DEFAULT_AFFINITY_SECONDS;
}

/** Raw Service → `Service`. */
import {
  PROTOCOLS,
  type Service,
  type ServicePortSpec,
  type ServiceType,
  type TrafficPolicy,
} from '../objects.ts';
import { hasLabel, LABEL, readMetadata, readOptionalName } from './names.ts';
import { type Cidr, FAMILIES, type Family, familyOf, type Ip, parseIp } from '../ip.ts';
import { PORT_LEFT_OUT } from './endpointSlice.ts';
import {
  type Cursor,
  Ignored,
  orList,
  project,
  type Projection,
  readChoice,
  readChoiceOr,
  readInteger,
  readOptionalPort,
  readPort,
  readText,
  readTime,
} from '../../text/cursor.ts';
import {
  LINK_LOCAL,
  NO_CIDRS,
  NO_IPS,
  readCidrLeniently,
  readEach,
  readOrdinaryIp,
  specialAddress,
} from './addresses.ts';
import { quote } from '../../text/printable.ts';

export const OTHER_PROXY = 'service.kubernetes.io/service-proxy-name';
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
  const unread = readUnread(root, spec);
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
    ...(Object.values(unread).some((count) => count > 0) && { unread }),
  };
  return Object.keys(clusterIPs).length > 0 ? service : new Ignored('it has no cluster IP');
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

/**
 * With `ipFamilies`, the entry of `clusterIPs` at the same index; without, `clusterIP` alone. A manifest may give
 * `clusterIP` alone in both cases: the API server would have copied it into the list.
 *
 * A service of which no cluster IP can be read is refused: it has nothing that it could be served at.
 */
function readClusterIPs(spec: Cursor): Service['clusterIPs'] {
  const families = readFamilies(spec);
  const list = spec.list('clusterIPs');
  const addresses = families.length === 0 || list.length === 0 ? [spec.field('clusterIP')] : list;
  const found: Partial<Record<Family, Ip>> = {};
  for (const [index, at] of addresses.entries()) {
    const ip = at.attempt('it is left out', (part) => readClusterIP(part, families[index]));
    if (ip === undefined) continue;
    const family = familyOf(ip);
    if (families.length === 0 || families[index] === family) found[family] ??= ip;
  }
  if (Object.keys(found).length === 0) addresses.forEach((at, index) => readClusterIP(at, families[index]));
  return found;
}

type FamilyEntry = Family | 'unknown';

/** The first entry of a family counts. */
function readFamilies(spec: Cursor): readonly FamilyEntry[] {
  return spec.list('ipFamilies').map((item) => {
    const family = item.attempt('the cluster IP at this index is left out', (at) => {
      if (at.missing || at.value === '') at.refuse('is empty', orList(FAMILIES));
      return readChoice(at, FAMILIES, 'IPv4');
    });
    return family ?? 'unknown';
  });
}

function readClusterIP(at: Cursor, family: FamilyEntry | undefined): Ip | undefined {
  const text = readText(at);
  const ip = parseIp(text);
  if (ip === undefined) {
    at.refuse(`${quote(text)} is not an IP address`, 'an IP address or None');
    return undefined;
  }
  const special = specialAddress(ip);
  // A cluster may have its services' addresses in the link-local range; the other special ranges are the machine's.
  if (special !== undefined && special !== LINK_LOCAL) {
    at.refuse(`${ip} is ${special}`, 'an address that no machine has by itself');
  } else if (family === 'unknown') {
    at.refuse(`${ip} has no family in ipFamilies`, orList(FAMILIES));
  } else if (family !== undefined && familyOf(ip) !== family) {
    at.refuse(`${ip} is not ${family}`, `an ${family} address, as ipFamilies says`);
  }
  return ip;
}

/** Twice what a Service may have (see plan/capacity.ts), because some may have to be left out. */
export const MOST_PORTS = 2000;

/** A service of which no port can be read is refused: what it served before stays. */
function readServicePorts(spec: Cursor): readonly ServicePortSpec[] {
  const list = spec.field('ports');
  if (list.missing || (Array.isArray(list.value) && list.value.length === 0)) {
    list.refuse('is empty', 'at least one port');
  }
  const seen = new Map<string, Cursor>();
  const items = spec.maps('ports', MOST_PORTS);
  const ports = items.flatMap((item) => {
    const port = item.attempt(PORT_LEFT_OUT, (at) => readServicePort(at, seen));
    if (port === undefined) return [];
    for (const { claim } of claimsOf(port)) seen.set(claim, item);
    return [port];
  });
  if (ports.length === 0) for (const item of items) readServicePort(item, seen);
  return ports;
}

function readServicePort(at: Cursor, seen: ReadonlyMap<string, Cursor>): ServicePortSpec {
  const port: ServicePortSpec = {
    name: readOptionalName(at.field('name'), LABEL),
    protocol: readChoice(at.field('protocol'), PROTOCOLS, 'TCP'),
    port: readPort(at.field('port')),
    nodePort: readOptionalPort(at.field('nodePort')),
  };
  refuseRepetitions(at, port, seen);
  return port;
}

/** Two ports with one name are one key; two with one number would fight for the same packets. */
function refuseRepetitions(at: Cursor, port: ServicePortSpec, seen: ReadonlyMap<string, Cursor>): void {
  for (const { key, claim } of claimsOf(port)) {
    const field = at.field(key);
    const isStandIn = (field.value ?? '') !== port[key];
    const holder = isStandIn ? undefined : seen.get(claim);
    if (holder === undefined) continue;
    field.refuse(
      `${quote(port[key])} is taken by ${holder.label}`,
      `one of its own for each ${port.protocol} port`,
    );
  }
}

function claimsOf(port: ServicePortSpec): readonly { key: 'name' | 'port' | 'nodePort'; claim: string }[] {
  return (['name', 'port', 'nodePort'] as const)
    .filter((key) => port[key] !== 0)
    .map((key) => ({ key, claim: `${key} ${port[key]} ${port.protocol}` }));
}

/**
 * Ranges that cannot be read are left out, as upstream does. `undefined`: ranges are given and none could be read.
 * Upstream then lets everybody in, which is not what somebody wrote who wanted to restrict it.
 */
function readSourceRanges(spec: Cursor): readonly Cidr[] | undefined {
  const items = spec.list('loadBalancerSourceRanges');
  const ranges = readEach(items, NO_CIDRS, readCidrLeniently);
  const written = items.some((at) => typeof at.value === 'string' && at.value.trim() !== '');
  if (!written || ranges.length > 0) return ranges;
  spec
    .field('loadBalancerSourceRanges')
    .warn(
      'has no valid range; the load-balancer addresses are not served',
      'at least one CIDR such as 192.0.2.0/24',
    );
  return undefined;
}

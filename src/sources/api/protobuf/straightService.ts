/** Services that are in order, straight into slim values. Those with addresses of load balancers go the other way. */
import type { Family, Ip } from '../../../model/ip.ts';
import type { Service, ServicePortSpec, ServiceType, TrafficPolicy } from '../../../model/objects.ts';
import { NO_CIDRS, NO_IPS } from '../../../model/project/addresses.ts';
import type { Interner } from '../interner.ts';
import { isLabel } from './names.ts';
import { bytesTag, fieldSet, type StraightRead, StraightReader, varintTag } from './straightReader.ts';

const METADATA = bytesTag(1);
const SPEC = bytesTag(2);
const STATUS = bytesTag(3);
const SERVICE_FIELDS = fieldSet(1, 2, 3);

const PORTS = bytesTag(1);
const CLUSTER_IP = bytesTag(3);
const TYPE = bytesTag(4);
const SESSION_AFFINITY = bytesTag(7);
const EXTERNAL_POLICY = bytesTag(11);
const HEALTH_CHECK_PORT = varintTag(12);
const CLUSTER_IPS = bytesTag(18);
const IP_FAMILIES = bytesTag(19);
const INTERNAL_POLICY = bytesTag(22);
/** External IPs (5), source ranges (9) and the configuration of affinity (14) are read in the other way. */
const SPEC_FIELDS = fieldSet(1, 3, 4, 5, 7, 9, 11, 12, 14, 18, 19, 22);

const PORT_NAME = bytesTag(1);
const PORT_PROTOCOL = bytesTag(2);
const PORT_NUMBER = varintTag(3);
const PORT_NODE_PORT = varintTag(5);
const PORT_FIELDS = fieldSet(1, 2, 3, 5);

const LOAD_BALANCER = bytesTag(1);

/** Each port is compared with those before it; with more of them a service is read in the other way. */
const MOST_PORTS = 32;

export function straightService(interner: Interner): StraightRead<Service> {
  const reader = new StraightReader();
  const { wire } = reader;
  let type: ServiceType;
  let clusterIP: string;
  let ips: Ip[];
  let families: string[];
  let ports: ServicePortSpec[];
  let externalTrafficPolicy: TrafficPolicy;
  let internalTrafficPolicy: TrafficPolicy;
  let healthCheckNodePort: number;

  function readService(): Service {
    type = 'ClusterIP';
    clusterIP = '';
    ips = [];
    families = [];
    ports = [];
    externalTrafficPolicy = 'Cluster';
    internalTrafficPolicy = 'Cluster';
    healthCheckNodePort = 0;
    while (wire.at < wire.end) {
      const tag = wire.tag();
      if (tag === METADATA) reader.metadata(isLabel);
      else if (tag === SPEC) readSpec();
      else if (tag === STATUS) readStatus();
      else reader.other(tag, SERVICE_FIELDS);
    }
    if (ports.length === 0 || ports.length > MOST_PORTS || hasRepetitions(ports)) reader.isInOrder = false;
    return {
      namespace: interner.text(reader.namespace),
      name: reader.name,
      type,
      createdAt: reader.createdAt,
      clusterIPs: clusterIPs(),
      ports: interner.servicePorts(ports),
      externalIPs: NO_IPS,
      loadBalancerIPs: NO_IPS,
      loadBalancerSourceRanges: NO_CIDRS,
      affinitySeconds: undefined,
      externalTrafficPolicy,
      internalTrafficPolicy,
      healthCheckNodePort,
    };
  }

  /** One of each family that is named, as the API server gives them. */
  function clusterIPs(): Service['clusterIPs'] {
    const isWhole = families.length > 0 && families.length === ips.length && clusterIP === ips[0];
    if (!isWhole) reader.isInOrder = false;
    const [only] = ips;
    if (ips.length === 1 && families[0] === 'IPv4' && only?.includes(':') === false) return { IPv4: only };
    const found: Partial<Record<Family, Ip>> = {};
    for (const [index, ip] of ips.entries()) {
      const family = ip.includes(':') ? 'IPv6' : 'IPv4';
      if (families[index] !== family || found[family] !== undefined) reader.isInOrder = false;
      found[family] = ip;
    }
    return found;
  }

  function readSpec(): void {
    const outer = wire.enter();
    while (wire.at < wire.end) {
      const tag = wire.tag();
      if (tag === PORTS) ports.push(readPort());
      else if (tag === CLUSTER_IP) clusterIP = wire.text();
      else if (tag === TYPE) type = readType();
      else if (tag === SESSION_AFFINITY) readAffinity();
      else if (tag === EXTERNAL_POLICY) externalTrafficPolicy = readPolicy();
      else if (tag === HEALTH_CHECK_PORT) healthCheckNodePort = reader.port();
      else if (tag === CLUSTER_IPS) ips.push(reader.ip());
      else if (tag === IP_FAMILIES) families.push(wire.sharedText());
      else if (tag === INTERNAL_POLICY) internalTrafficPolicy = readPolicy();
      else reader.other(tag, SPEC_FIELDS);
    }
    wire.end = outer;
  }

  function readType(): ServiceType {
    const text = wire.sharedText();
    if (text === 'ClusterIP' || text === 'NodePort' || text === 'LoadBalancer') return text;
    if (text !== '') reader.isInOrder = false;
    return 'ClusterIP';
  }

  function readPolicy(): TrafficPolicy {
    const text = wire.sharedText();
    if (text !== 'Local' && text !== 'Cluster' && text !== '') reader.isInOrder = false;
    return text === 'Local' ? 'Local' : 'Cluster';
  }

  function readAffinity(): void {
    const text = wire.sharedText();
    if (text !== 'None' && text !== '') reader.isInOrder = false;
  }

  function readPort(): ServicePortSpec {
    let name = '';
    let protocol: ServicePortSpec['protocol'] = 'TCP';
    let port = 0;
    let nodePort = 0;
    const outer = wire.enter();
    while (wire.at < wire.end) {
      const tag = wire.tag();
      if (tag === PORT_NAME) {
        const end = wire.valueEnd();
        if (end > wire.at && !isLabel(wire.bytes, wire.at, end)) reader.isInOrder = false;
        name = interner.text(wire.sharedTextTo(end));
      } else if (tag === PORT_PROTOCOL) protocol = reader.protocol();
      else if (tag === PORT_NUMBER) port = reader.port();
      else if (tag === PORT_NODE_PORT) nodePort = reader.port();
      else reader.other(tag, PORT_FIELDS);
    }
    wire.end = outer;
    if (port === 0) reader.isInOrder = false;
    return { name, protocol, port, nodePort };
  }

  /** Of a service without a load balancer: a message with an empty one in it. */
  function readStatus(): void {
    const outer = wire.enter();
    while (wire.at < wire.end) {
      const tag = wire.tag();
      if (tag !== LOAD_BALANCER) {
        reader.other(tag, SERVICE_FIELDS & fieldSet(1));
        continue;
      }
      const end = wire.valueEnd();
      if (end > wire.at) reader.isInOrder = false;
      wire.at = end;
    }
    wire.end = outer;
  }

  return (bytes, from, end) => reader.read(bytes, readService, from, end);
}

function hasRepetitions(ports: readonly ServicePortSpec[]): boolean {
  if (ports.length === 1) return false;
  return ports.some((one, index) =>
    ports
      .slice(0, index)
      .some(
        (other) =>
          other.protocol === one.protocol &&
          (other.name === one.name ||
            other.port === one.port ||
            (other.nodePort === one.nodePort && one.nodePort !== 0)),
      ),
  );
}

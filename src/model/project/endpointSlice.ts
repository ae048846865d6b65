/** Raw EndpointSlice and Endpoints → `EndpointSlice`. */
import { FAMILIES, type Family, familyOf, type Ip } from '../ip.ts';
import { type EndpointSlice, PROTOCOLS, type SliceEndpoint, type SlicePort } from '../objects.ts';
import {
  fits,
  hasLabel,
  HEADLESS,
  label,
  LABEL,
  LABEL_VALUE,
  type Metadata,
  readMetadata,
  readOptionalName,
  readTriggerTime,
  SUBDOMAIN,
} from './names.ts';
import {
  type Cursor,
  Ignored,
  project,
  type Projection,
  readChoice,
  readFlag,
  readOptionalPort,
  readPort,
  readText,
} from '../../text/cursor.ts';
import { readOrdinaryIp } from './addresses.ts';

export const SERVICE_NAME = 'kubernetes.io/service-name';
const ADDRESS_TYPES: readonly (Family | 'FQDN')[] = ['IPv4', 'IPv6', 'FQDN'];
const NO_HINTS: readonly string[] = [];
const NO_ENDPOINTS: readonly SliceEndpoint[] = [];
export const PORT_LEFT_OUT = 'this port is left out';
const ENDPOINT_LEFT_OUT = 'this endpoint is left out';

export function projectEndpointSlice(raw: unknown): Projection<EndpointSlice> {
  return project(raw, readEndpointSlice);
}

function readEndpointSlice(root: Cursor): EndpointSlice | Ignored {
  const metadata = root.map('metadata');
  const { namespace, name } = readMetadata(metadata, SUBDOMAIN);
  const addressType = readAddressType(root.field('addressType'));

  if (hasLabel(metadata, HEADLESS)) return new Ignored('its service is headless');
  if (addressType === 'FQDN') return new Ignored('its addresses are host names');
  const service = readText(label(metadata, SERVICE_NAME));
  if (service === '') return new Ignored(`it has no label ${SERVICE_NAME}`);
  // A label may be `Web_2.x`. Such a slice belongs to no service, and no longer to its former one.
  if (!fits(LABEL, service)) return new Ignored(`no service can have the name in its label ${SERVICE_NAME}`);

  return {
    namespace,
    name,
    service,
    family: addressType,
    ports: readPorts(root),
    endpoints: readEndpoints(root, addressType),
    triggerTime: readTriggerTime(metadata),
  };
}

/** The API server takes 20,000; a Service that is served has 1,000 (see plan/capacity.ts). */
const MOST_SLICE_PORTS = 2000;

function readAddressType(at: Cursor): Family | 'FQDN' {
  if (at.missing || at.value === '') at.refuse('is missing', 'IPv4 or IPv6');
  return readChoice(at, ADDRESS_TYPES, 'IPv4');
}

function readPorts(root: Cursor): readonly SlicePort[] {
  const ports: SlicePort[] = [];
  const list = root.field('ports');
  if (list.countBeyond(MOST_SLICE_PORTS) > 0)
    list.warn(
      `has more than ${MOST_SLICE_PORTS} entries; the first of them are used`,
      'the ports of a Service',
    );
  for (const at of root.maps('ports', MOST_SLICE_PORTS)) {
    // The API server checks neither the range of the number nor that there is one.
    const port = at.attempt(PORT_LEFT_OUT, (part) => readSlicePort(part, readOptionalPort));
    if (port === undefined) continue;
    const name = at.field('name');
    const number = at.field('port');
    // No number is Kubernetes' word for "all ports"; a service port cannot mean that.
    if (port.port === 0)
      number.warn(`is ${number.missing ? 'missing' : '0'}`, 'a whole number from 1 to 65535');
    else if (name.missing) name.warn('is missing', 'the name of the service port, "" for one without a name');
    else ports.push(port);
  }
  return ports;
}

function readSlicePort(at: Cursor, readNumber: (at: Cursor) => number): SlicePort {
  return {
    name: readOptionalName(at.field('name'), LABEL),
    protocol: readChoice(at.field('protocol'), PROTOCOLS, 'TCP'),
    port: readNumber(at.field('port')),
  };
}

function readEndpoints(root: Cursor, family: Family): readonly SliceEndpoint[] {
  const items = root.maps('endpoints');
  if (items.length === 0) return NO_ENDPOINTS;
  const endpoints: SliceEndpoint[] = [];
  for (const item of items) {
    const endpoint = item.attempt(ENDPOINT_LEFT_OUT, (at) => readEndpoint(at, family));
    if (endpoint !== undefined) endpoints.push(endpoint);
  }
  return endpoints;
}

function readEndpoint(at: Cursor, family: Family): SliceEndpoint | undefined {
  const conditions = at.map('conditions');
  const hints = at.map('hints');
  const ip = readAddress(at, family);
  const pod = readPod(at);
  const zone = readZone(at);
  const endpoint = {
    nodeName: readNodeName(at.field('nodeName')),
    ready: readFlag(conditions.field('ready'), true),
    serving: readFlag(conditions.field('serving'), true),
    terminating: readFlag(conditions.field('terminating'), false),
    zoneHints: readHints(hints, 'forZones'),
    nodeHints: readHints(hints, 'forNodes'),
    ...(pod !== undefined && { pod }),
    ...(zone !== undefined && { zone }),
  };
  return ip === undefined ? undefined : { ip, ...endpoint };
}

/** A name that no node can have is that of another node. */
function readNodeName(at: Cursor): string | undefined {
  return at.attempt('it counts as none', (part) => readOptionalName(part, SUBDOMAIN)) || undefined;
}

/** Nothing depends on it, so nothing is said of one that is no name. */
function readPod(at: Cursor): string | undefined {
  const { value } = at.field('targetRef');
  if (typeof value !== 'object' || value === null || !('kind' in value) || value.kind !== 'Pod')
    return undefined;
  return 'name' in value && typeof value.name === 'string' && fits(SUBDOMAIN, value.name)
    ? value.name
    : undefined;
}

/** The same: a zone is the value of a label, and what cannot be one is left out. */
function readZone(at: Cursor): string | undefined {
  const { value } = at.field('zone');
  return typeof value === 'string' && fits(LABEL_VALUE, value) ? value : undefined;
}

/** The first address counts; nobody has ever said what others would mean. */
function readAddress(at: Cursor, family: Family): Ip | undefined {
  const first = at.list('addresses')[0];
  if (first === undefined || first.missing) {
    at.field('addresses').warn('is empty', `one ${family} address`);
    return undefined;
  }
  return readEndpointIp(first, family);
}

function readEndpointIp(at: Cursor, family: Family | undefined): Ip | undefined {
  if (at.missing || at.value === '') {
    at.warn('is empty', 'an IP address');
    return undefined;
  }
  const ip = readOrdinaryIp(at);
  if (ip === undefined || family === undefined || familyOf(ip) === family) return ip;
  at.warn(`${ip} is not ${family}`, `an ${family} address, as addressType says`);
  return undefined;
}

/**
 * Hints are only compared, so they need not be names; an empty one is valid. One that cannot be this node's or zone's
 * still counts as a hint.
 */
function readHints(hints: Cursor, key: string): readonly string[] {
  if (hints.missing) return NO_HINTS;
  const names = hints.maps(key).map((at) => readText(at.field('name')));
  return names.length === 0 ? NO_HINTS : names;
}

const SKIP_MIRROR = 'endpointslice.kubernetes.io/skip-mirror';

/**
 * Raw Endpoints, the API before EndpointSlice → one `EndpointSlice` for each subset and family. The control
 * plane of a cluster copies these into slices; a manifest has no control plane.
 */
export function projectEndpoints(raw: unknown): Projection<readonly EndpointSlice[]> {
  return project(raw, readSubsets);
}

function readSubsets(root: Cursor): readonly EndpointSlice[] | Ignored {
  const metadata = root.map('metadata');
  const identity = readMetadata(metadata, SUBDOMAIN);

  if (hasLabel(metadata, HEADLESS)) return new Ignored('its service is headless');
  if (label(metadata, SKIP_MIRROR).value === 'true') return new Ignored('it has EndpointSlices of its own');
  // Endpoints once served as locks too, with names that no service can have.
  if (identity.name !== '' && !fits(LABEL, identity.name)) return new Ignored('no service can have its name');

  const triggerTime = readTriggerTime(metadata);
  return root.maps('subsets').flatMap((subset, index) => readSubset(subset, index, identity, triggerTime));
}

function readSubset(
  subset: Cursor,
  index: number,
  { namespace, name }: Metadata,
  triggerTime: number | undefined,
): readonly EndpointSlice[] {
  const ports = subset
    .maps('ports')
    .flatMap((at) => at.attempt(PORT_LEFT_OUT, (part) => readSlicePort(part, readPort)) ?? []);
  const all = [
    ...readAddresses(subset, 'addresses', true),
    ...readAddresses(subset, 'notReadyAddresses', false),
  ];
  return FAMILIES.flatMap((family) => {
    const endpoints = all.filter(({ ip }) => familyOf(ip) === family);
    if (endpoints.length === 0) return [];
    const sliceName = `endpoints-${name}-${index}-${family.toLowerCase()}`;
    return [{ namespace, name: sliceName, service: name, family, ports, endpoints, triggerTime }];
  });
}

function readAddresses(subset: Cursor, key: string, ready: boolean): readonly SliceEndpoint[] {
  return subset.maps(key).flatMap((at) => {
    const nodeName = readNodeName(at.field('nodeName'));
    const pod = readPod(at);
    const ip = at.field('ip').attempt(ENDPOINT_LEFT_OUT, (part) => readEndpointIp(part, undefined));
    if (ip === undefined) return [];
    const conditions = { ready, serving: ready, terminating: false };
    const hints = { zoneHints: NO_HINTS, nodeHints: NO_HINTS };
    return [{ ip, nodeName, ...conditions, ...hints, ...(pod !== undefined && { pod }) }];
  });
}

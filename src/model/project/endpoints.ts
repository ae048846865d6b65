/**
 * Raw Endpoints, the API before EndpointSlice → one `EndpointSlice` for each subset and family.
 *
 * A cluster's own control plane mirrors these into slices; a manifest has no control plane.
 */
import { FAMILIES, familyOf } from '../ip.ts';
import { type EndpointSlice, PROTOCOLS, type SliceEndpoint, type SlicePort } from '../objects.ts';
import type { Projection } from '../problem.ts';
import { type Cursor, Ignored, project } from './cursor.ts';
import { ENDPOINT_LEFT_OUT, NO_HINTS, PORT_LEFT_OUT, readEndpointIp, readNodeName } from './endpointSlice.ts';
import { HEADLESS, hasLabel, label, type Metadata, readMetadata, readTriggerTime } from './metadata.ts';
import { fits, LABEL, readOptionalName, SUBDOMAIN } from './names.ts';
import { readChoice, readPort } from './read.ts';

const SKIP_MIRROR = 'endpointslice.kubernetes.io/skip-mirror';

export function projectEndpoints(raw: unknown): Projection<readonly EndpointSlice[]> {
  return project(raw, readEndpoints);
}

function readEndpoints(root: Cursor): readonly EndpointSlice[] | Ignored {
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
  const ports = subset.maps('ports').flatMap((at) => at.attempt(PORT_LEFT_OUT, readSubsetPort) ?? []);
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

function readSubsetPort(at: Cursor): SlicePort {
  return {
    name: readOptionalName(at.field('name'), LABEL),
    protocol: readChoice(at.field('protocol'), PROTOCOLS, 'TCP'),
    port: readPort(at.field('port')),
  };
}

function readAddresses(subset: Cursor, key: string, ready: boolean): readonly SliceEndpoint[] {
  return subset.maps(key).flatMap((at) => {
    const nodeName = readNodeName(at.field('nodeName'));
    const ip = at.field('ip').attempt(ENDPOINT_LEFT_OUT, (part) => readEndpointIp(part, undefined));
    if (ip === undefined) return [];
    return [
      { ip, nodeName, ready, serving: ready, terminating: false, zoneHints: NO_HINTS, nodeHints: NO_HINTS },
    ];
  });
}

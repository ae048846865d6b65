/** What the plan of a service is made from: its objects, and the fields of them that decide. */
import {
  type EndpointSlice,
  type ObjectKey,
  objectKey,
  type Service,
  type SliceEndpoint,
} from '../model/objects.ts';
import {
  endpointSliceToKubernetes,
  serviceOfPorts,
  serviceToKubernetes,
} from '../model/project/toKubernetes.ts';
import { isExternallyAccessible } from '../model/serviceTracker.ts';
import { group } from './finding.ts';
import { servicePortsOf } from './resolve.ts';
import type { Subject } from './subject.ts';
import type { DecidingField, ServiceObjects } from './types.ts';

const MOST_SLICES = 20;
/** Of all slices together. */
const MOST_ENDPOINTS = 100;
/** Fields of endpoints, of which a service may have thousands; the rows of `endpoints` have all. */
const MOST_ENDPOINT_FIELDS = 20;
const MOST_PORT_FIELDS = 20;
const MOST_ITEMS = 10;
const ALL_READ = { ports: 0, externalIPs: 0, loadBalancerIPs: 0, sourceRanges: 0 };

type FieldText = Pick<DecidingField, 'object' | 'field' | 'value'> & {
  /** What Kubernetes fills in where the field is not written. */
  readonly isDefault?: boolean;
};

export async function serviceObjects(subject: Subject, service: ObjectKey): Promise<ServiceObjects> {
  const found = await servicePortsOf(subject, { service });
  const ports = found.map(({ port }) => port);
  const whole = serviceOfPorts(ports);
  if (!whole) throw new Error(`${service} has no ports`);
  const slices = subject.families.flatMap((family) => family.slicesOf(service));
  const { shown, unlisted } = cut(slices);
  const texts = [
    ...serviceFields(service, whole, ports.some(isExternallyAccessible)),
    ...slices.slice(0, MOST_SLICES).flatMap(sliceFields),
    ...endpointFields(slices, MOST_ENDPOINT_FIELDS),
  ];
  const fields: DecidingField[] = [];
  for (const text of texts) {
    fields.push(placed(subject, text));
    const pause = subject.pause?.();
    if (pause) await pause;
  }
  return {
    service: serviceToKubernetes({ ...whole, unread: ALL_READ }),
    endpointSlices: shown.map(endpointSliceToKubernetes),
    ...(unlisted.endpoints + unlisted.endpointSlices > 0 && { unlisted }),
    fields,
  };
}

function cut(slices: readonly EndpointSlice[]) {
  let room = MOST_ENDPOINTS;
  const shown = slices.slice(0, MOST_SLICES).map((slice) => {
    const endpoints = slice.endpoints.slice(0, room);
    room -= endpoints.length;
    return { ...slice, endpoints };
  });
  const all = slices.reduce((sum, { endpoints }) => sum + endpoints.length, 0);
  const unlisted = {
    endpointSlices: slices.length - shown.length,
    endpoints: all - (MOST_ENDPOINTS - room),
  };
  return { shown, unlisted };
}

function* serviceFields(key: ObjectKey, service: Service, isExternal: boolean): Generator<FieldText> {
  const object = `Service ${key}`;
  const text = (field: string, value: string, byDefault?: string): FieldText => ({
    object,
    field,
    value,
    isDefault: value === byDefault,
  });
  const clusterIPs = Object.values(service.clusterIPs);
  const { externalIPs, loadBalancerIPs, loadBalancerSourceRanges: ranges, affinitySeconds } = service;
  yield text('spec.type', service.type, 'ClusterIP');
  if (clusterIPs.length === 1) yield text('spec.clusterIP', clusterIPs[0] ?? '');
  else yield text('spec.clusterIPs', flowList(clusterIPs));
  for (const [index, { name, protocol, port, nodePort }] of service.ports
    .slice(0, MOST_PORT_FIELDS)
    .entries()) {
    const value = flowMap({ name: name || undefined, protocol, port, nodePort: nodePort || undefined });
    yield text(`spec.ports[${index}]`, value);
  }
  if (externalIPs.length > 0) yield text('spec.externalIPs', flowList(externalIPs));
  if (loadBalancerIPs.length > 0) yield text('status.loadBalancer.ingress', flowList(loadBalancerIPs));
  if (ranges.length > 0) yield text('spec.loadBalancerSourceRanges', flowList(ranges));
  yield text('spec.internalTrafficPolicy', service.internalTrafficPolicy, 'Cluster');
  if (isExternal) yield text('spec.externalTrafficPolicy', service.externalTrafficPolicy, 'Cluster');
  if (service.healthCheckNodePort !== 0)
    yield text('spec.healthCheckNodePort', String(service.healthCheckNodePort));
  yield text('spec.sessionAffinity', affinitySeconds === undefined ? 'None' : 'ClientIP', 'None');
  if (affinitySeconds !== undefined)
    yield text('spec.sessionAffinityConfig.clientIP.timeoutSeconds', String(affinitySeconds), '10800');
}

function nameOf({ namespace, name }: EndpointSlice): string {
  return `EndpointSlice ${objectKey(namespace, name)}`;
}

function sliceFields(slice: EndpointSlice): readonly FieldText[] {
  return slice.ports.slice(0, MOST_PORT_FIELDS).map(({ name, protocol, port }, index) => ({
    object: nameOf(slice),
    field: `ports[${index}]`,
    value: flowMap({ name: name || undefined, protocol, port }),
  }));
}

/** Of those that are not ready, or that have hints. */
function endpointFields(slices: readonly EndpointSlice[], most: number): readonly FieldText[] {
  const fields: FieldText[] = [];
  for (const slice of slices)
    for (const [index, endpoint] of slice.endpoints.entries()) {
      if (fields.length === most) return fields;
      const conditions = conditionsOf(endpoint);
      const hints = hintsOf(endpoint);
      if (conditions === undefined && hints === undefined) continue;
      const value = flowMap({ addresses: flowList([endpoint.ip]), conditions, hints });
      fields.push({ object: nameOf(slice), field: `endpoints[${index}]`, value });
    }
  return fields;
}

function conditionsOf({ ready, serving, terminating }: SliceEndpoint): string | undefined {
  if (ready && !terminating) return undefined;
  return flowMap({ ready, serving, terminating });
}

function hintsOf({ zoneHints, nodeHints }: SliceEndpoint): string | undefined {
  if (zoneHints.length + nodeHints.length === 0) return undefined;
  return flowMap({
    forZones: zoneHints.length > 0 ? flowList(zoneHints) : undefined,
    forNodes: nodeHints.length > 0 ? flowList(nodeHints) : undefined,
  });
}

/** A default is written nowhere. */
function placed(subject: Pick<Subject, 'locate'>, { isDefault, ...text }: FieldText): DecidingField {
  const where = isDefault === true ? undefined : subject.locate?.(text.object);
  return where === undefined ? text : { ...text, where };
}

/** `{name: http, port: 80}`, as YAML has it in one line. */
function flowMap(values: Readonly<Record<string, string | number | boolean | undefined>>): string {
  const entries = Object.entries(values).filter(([, value]) => value !== undefined);
  return `{${entries.map(([name, value]) => `${name}: ${value}`).join(', ')}}`;
}

function flowList(items: readonly string[]): string {
  const more = items.length > MOST_ITEMS ? [`… ${group(items.length - MOST_ITEMS)} more`] : [];
  return `[${[...items.slice(0, MOST_ITEMS), ...more].join(', ')}]`;
}

/** Which object a raw value is, as far as that is known even when the rest of it is wrong. */
import { objectKey } from '../objects.ts';
import { fits, LABEL, SUBDOMAIN } from './names.ts';
import { isMap, ownField } from '../../text/cursor.ts';

export type ObjectKind = 'Service' | 'EndpointSlice' | 'Endpoints' | 'Node';

const API_VERSIONS: Readonly<Record<ObjectKind, string>> = {
  Service: 'v1',
  EndpointSlice: 'discovery.k8s.io/v1',
  Endpoints: 'v1',
  Node: 'v1',
};

export const KINDS = Object.keys(API_VERSIONS) as readonly ObjectKind[];

/** The kind that we read, if it is one. Knative has a Service too: the API group tells them apart. */
export function kindOf(raw: unknown): ObjectKind | undefined {
  const name = ownField(raw, 'kind');
  const kind = KINDS.find((known) => known === name);
  if (kind === undefined) return undefined;
  const version = ownField(raw, 'apiVersion') ?? API_VERSIONS[kind];
  return version === API_VERSIONS[kind] ? kind : undefined;
}

/** The one version in which it is served. */
export function apiVersionOf(kind: ObjectKind): string {
  return API_VERSIONS[kind];
}

/** `shop/web`, or a node's name. Nothing when the object does not say, or says it in a way that cannot be. */
export function nameOf(kind: ObjectKind, raw: unknown): string | undefined {
  const metadata = ownField(raw, 'metadata');
  if (!isMap(metadata)) return undefined;
  const name = ownField(metadata, 'name');
  if (typeof name !== 'string' || !fits(kind === 'Service' ? LABEL : SUBDOMAIN, name)) return undefined;
  if (kind === 'Node') return name;
  const namespace = ownField(metadata, 'namespace') ?? '';
  if (namespace === '') return objectKey('default', name);
  return typeof namespace === 'string' && fits(LABEL, namespace) ? objectKey(namespace, name) : undefined;
}

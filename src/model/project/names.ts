/**
 * Which object a raw value is, and its `metadata`: names, checked as the API server checks them, labels and times.
 *
 * They end up in rules, comments and file names, so nothing passes here that needs quoting there.
 */
import { type Cursor, isMap, ownField, readText, readTime } from '../../text/cursor.ts';
import { quote } from '../../text/printable.ts';
import { objectKey } from '../objects.ts';

interface NameRule {
  readonly most: number;
  readonly pattern: RegExp;
  readonly expected: string;
}

export const LABEL: NameRule = {
  most: 63,
  pattern: /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/,
  expected: 'at most 63 lower-case letters, digits and "-", with a letter or digit at both ends',
};

export const SUBDOMAIN: NameRule = {
  most: 253,
  pattern: /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/,
  expected: 'at most 253 lower-case letters, digits, "-" and ".", with a letter or digit around each "."',
};

/** The value of a Kubernetes label. */
export const LABEL_VALUE: NameRule = {
  most: 63,
  pattern: /^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$/,
  expected: 'at most 63 letters, digits, "-", "_" and ".", with a letter or digit at both ends',
};

export function fits(rule: NameRule, name: string): boolean {
  return name.length <= rule.most && rule.pattern.test(name);
}

export function readName(at: Cursor, rule: NameRule): string {
  if (at.missing || at.value === '') {
    at.refuse(at.missing ? 'is missing' : 'is empty', rule.expected);
    return '';
  }
  return readOptionalName(at, rule);
}

/** Missing or empty reads as ''. */
export function readOptionalName(at: Cursor, rule: NameRule): string {
  const name = readText(at);
  if (name === '' || fits(rule, name)) return name;
  const what =
    name.length > rule.most ? `has ${name.length} characters` : `${quote(name)} is not a valid name`;
  at.refuse(what, rule.expected);
  return '';
}

export interface Metadata {
  readonly namespace: string;
  readonly name: string;
}

/** A manifest may leave the namespace out, as it may for kubectl. */
export function readMetadata(metadata: Cursor, nameRule: NameRule): Metadata {
  return {
    namespace: readOptionalName(metadata.field('namespace'), LABEL) || 'default',
    name: readName(metadata.field('name'), nameRule),
  };
}

export function label(metadata: Cursor, name: string): Cursor {
  return metadata.map('labels').field(name);
}

/** A selector looks at the name alone, so an empty value counts. */
export function hasLabel(metadata: Cursor, name: string): boolean {
  return label(metadata, name).value !== undefined;
}

export const TRIGGER_TIME = 'endpoints.kubernetes.io/last-change-trigger-time';
export const HEADLESS = 'service.kubernetes.io/headless';

export function readTriggerTime(metadata: Cursor): number | undefined {
  return readTime(metadata.map('annotations').field(TRIGGER_TIME));
}

/* Which object a raw value is, as far as that is known even when the rest of it is wrong. */

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

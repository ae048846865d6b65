/** Names for completion at a shell: namespaces, services, endpoints of a service, nodes. */
import type { FamilySubject, Subject } from '../../explain/subject.ts';
import { RefusedQuestion } from './routes.ts';

const KINDS = ['services', 'namespaces', 'nodes', 'endpoints'] as const;
/** No shell shows more. */
const MOST_NAMES = 2000;
/** Of services that have such an endpoint. */
const MOST_BY_ENDPOINT = 1000;

/** Sorted, and not all of very many. */
export async function namesOf(subject: Subject, query: URLSearchParams): Promise<readonly string[]> {
  const kind = KINDS.find((each) => each === query.get('kind'));
  const prefix = query.get('prefix') ?? '';
  if (kind === undefined)
    throw new RefusedQuestion(400, 'parameter', `kind must be one of ${KINDS.join(', ')}`);
  const endpoint = query.get('endpoint');
  if (endpoint !== null) return servicesWith(subject, kind, prefix, endpoint);
  const names = new Set<string>();
  for (const family of subject.families)
    for (const some of allNames(kind, family, servicesAsked(family, query))) {
      for (const name of some) if (name.startsWith(prefix)) names.add(name);
      const waiting = subject.pause?.();
      if (waiting) await waiting;
    }
  return [...names].sort().slice(0, MOST_NAMES);
}

/** Of all services each endpoint is looked at: an index would cost each sync, and this question is rare. */
async function servicesWith(
  subject: Subject,
  kind: string,
  prefix: string,
  endpoint: string,
): Promise<readonly string[]> {
  if (kind !== 'services' || endpoint === '')
    throw new RefusedQuestion(400, 'parameter', 'endpoint is the beginning of an address, for kind=services');
  const names = new Set<string>();
  for (const family of subject.families)
    for (const service of family.services()) {
      if (names.size === MOST_BY_ENDPOINT) return [...names].sort();
      if (service.startsWith(prefix) && hasEndpoint(family, service, endpoint)) names.add(service);
      const waiting = subject.pause?.();
      if (waiting) await waiting;
    }
  return [...names].sort();
}

function hasEndpoint(family: FamilySubject, service: string, start: string): boolean {
  return family.slicesOf(service).some(({ endpoints }) => endpoints.some(({ ip }) => ip.startsWith(start)));
}

/** One, those of a namespace, or all. */
function servicesAsked(family: FamilySubject, query: URLSearchParams): Iterable<string> {
  const service = query.get('service');
  const namespace = query.get('namespace');
  if (service !== null) return [service];
  return namespace === null ? family.services() : inNamespace(family, namespace);
}

function* inNamespace(family: FamilySubject, namespace: string): Iterable<string> {
  for (const key of family.services()) if (key.startsWith(`${namespace}/`)) yield key;
}

/** Service by service. */
function* allNames(
  kind: (typeof KINDS)[number],
  family: FamilySubject,
  services: Iterable<string>,
): Iterable<readonly string[]> {
  for (const key of services) {
    if (kind === 'services') yield [key];
    else if (kind === 'namespaces') yield [key.slice(0, key.indexOf('/'))];
    else {
      const endpoints = family.slicesOf(key).flatMap((slice) => slice.endpoints);
      yield kind === 'nodes'
        ? endpoints.flatMap(({ nodeName }) => nodeName ?? [])
        : endpoints.map(({ ip, pod }) => pod ?? ip);
    }
  }
}

/** Findings are made here, so that all of them name their fields and cures alike. */
import type { ObjectKey } from '../model/objects.ts';
import type { Subject } from './subject.ts';
import type { FieldReference, Finding } from './types.ts';

/** `spec.externalTrafficPolicy` of a Service, and where that object is written. */
export function serviceField(
  subject: Pick<Subject, 'locate'>,
  service: ObjectKey,
  field: string,
): FieldReference {
  const object = `Service ${service}`;
  const where = subject.locate?.(object);
  return { object, field, ...(where !== undefined && { where }) };
}

/** `kubectl -n shop`, with what follows. */
export function kubectl(service: ObjectKey, command: (name: string) => string): string {
  const [namespace = '', name = ''] = service.split('/');
  return `kubectl -n ${namespace} ${command(name)}`;
}

export function patchService(service: ObjectKey, spec: Readonly<Record<string, unknown>>): string {
  return kubectl(service, (name) => `patch service ${name} -p '${JSON.stringify({ spec })}'`);
}

export function listSlices(service: ObjectKey): string {
  return kubectl(service, (name) => `get endpointslices -l kubernetes.io/service-name=${name}`);
}

type Details = Omit<Finding, 'code' | 'severity' | 'text'>;

export function errorFinding(code: string, text: string, details: Details = {}): Finding {
  return { code, severity: 'error', text, ...details };
}

export function warning(code: string, text: string, details: Details = {}): Finding {
  return { code, severity: 'warning', text, ...details };
}

export function info(code: string, text: string, details: Details = {}): Finding {
  return { code, severity: 'info', text, ...details };
}

/** `1 endpoint`, `3 endpoints`, `1,204 packets` */
export function countOf(count: number, noun: string): string {
  return `${group(count)} ${noun}${count === 1 ? '' : 's'}`;
}

/** `1,204` */
export function group(count: number): string {
  return String(count).replaceAll(/\B(?=(?:\d{3})+$)/g, ',');
}

/** How many of a list a line names. */
const MOST_LISTED = 6;

export function listed(items: readonly string[], most = MOST_LISTED): string {
  if (items.length <= most) return items.join(', ');
  return `${items.slice(0, most).join(', ')} and ${group(items.length - most)} more`;
}

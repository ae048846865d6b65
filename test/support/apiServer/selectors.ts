/** Label and field selectors. */
import { badRequest } from './status.ts';
import type { Entry } from './store.ts';

export type Selector = (entry: Entry) => boolean;

const KEY = '[A-Za-z0-9][A-Za-z0-9./_-]*';
const PRESENCE = new RegExp(`^(!?)\\s*(${KEY})$`);
const EQUALITY = new RegExp(`^(${KEY})\\s*(=|==|!=)\\s*([A-Za-z0-9._-]*)$`);
const FIELD = /^([A-Za-z.]+)(=|==|!=)(.*)$/;
const FIELDS: Readonly<Record<string, readonly string[]>> = {
  services: ['metadata.name', 'metadata.namespace', 'spec.clusterIP', 'spec.type'],
  nodes: ['metadata.name'],
  endpointslices: ['metadata.name', 'metadata.namespace'],
  servicecidrs: ['metadata.name'],
  pods: ['metadata.name', 'metadata.namespace', 'spec.nodeName'],
};

/** Nothing when all objects are asked for. */
export function readSelectors(resource: string, query: ReadonlyMap<string, string>): Selector | undefined {
  const labels = parts(query.get('labelSelector')).map(labelSelector);
  const fields = parts(query.get('fieldSelector')).map((part) => fieldSelector(resource, part));
  const all = [...labels, ...fields];
  return all.length === 0 ? undefined : (entry) => all.every((selector) => selector(entry));
}

function parts(text: string | undefined): readonly string[] {
  return text === undefined || text === '' ? [] : text.split(',').map((part) => part.trim());
}

function labelSelector(part: string): Selector {
  const [, not, present] = PRESENCE.exec(part) ?? [];
  if (present !== undefined) return ({ labels }) => Object.hasOwn(labels, present) === (not === '');
  const [, key, operator, value] = EQUALITY.exec(part) ?? [];
  if (key === undefined) throw badRequest(`unable to parse requirement: ${part}`);
  return ({ labels }) => (labels[key] === value) === (operator !== '!=');
}

function fieldSelector(resource: string, part: string): Selector {
  const [, name = '', operator = '', value = ''] = FIELD.exec(part) ?? [];
  if (!FIELDS[resource]?.includes(name)) throw badRequest(`field label not supported: ${name || part}`);
  return (entry) => (entry.fields[name] === value) === (operator !== '!=');
}

/** The few selectors that a service proxy uses. Anything else is refused, so that a mistake shows. */
import { badRequest } from './status.ts';
import type { Entry } from './store.ts';

export type Selector = (entry: Entry) => boolean;

const ABSENT_LABEL = /^!([A-Za-z0-9./-]+)$/;
const FIELD = /^([A-Za-z.]+)(=|==|!=)(.*)$/;
const FIELDS: Readonly<Record<string, readonly string[]>> = {
  services: ['metadata.name', 'spec.clusterIP'],
  nodes: ['metadata.name'],
  endpointslices: ['metadata.name'],
  servicecidrs: ['metadata.name'],
};

export function readSelectors(resource: string, query: ReadonlyMap<string, string>): Selector {
  const labels = parts(query.get('labelSelector')).map(labelSelector);
  const fields = parts(query.get('fieldSelector')).map((part) => fieldSelector(resource, part));
  const all = [...labels, ...fields];
  return (entry) => all.every((selector) => selector(entry));
}

function parts(text: string | undefined): readonly string[] {
  return text === undefined || text === '' ? [] : text.split(',');
}

function labelSelector(part: string): Selector {
  const name = ABSENT_LABEL.exec(part)?.[1];
  if (name === undefined) throw badRequest(`unable to parse requirement: ${part}`);
  return (entry) => !entry.labels.includes(name);
}

function fieldSelector(resource: string, part: string): Selector {
  const [, name = '', operator = '', value = ''] = FIELD.exec(part) ?? [];
  if (!FIELDS[resource]?.includes(name)) throw badRequest(`field label not supported: ${name || part}`);
  return (entry) => (entry.fields[name] === value) === (operator !== '!=');
}

/**
 * `services` as a table: cells of a row, in the order of the columns. The API sends it with tabs between them
 * (`/v1/services?format=table`): of thirty thousand services it is a third of the JSON, and nothing has to be parsed.
 */
import { rowsOf, serviceKeys } from './rows.ts';
import type { Subject } from './subject.ts';
import type { ServiceRow } from './types.ts';

export const SERVICE_COLUMNS = [
  'SERVICE',
  'TYPE',
  'CLUSTER IP',
  'OTHER IPS',
  'PORTS',
  'READY',
  'POLICY',
  'AFFINITY',
  'STATE',
] as const;

/** Without the line end. */
export function serviceLine(row: ServiceRow): string {
  return serviceCells(row).join('\t');
}

export function serviceCells(row: ServiceRow): readonly string[] {
  const { service, type, endpoints, affinitySeconds, state, detail } = row;
  const { ready, all, local } = endpoints;
  return [
    service,
    type,
    joined(row.clusterIPs),
    otherIPs(row),
    joined(row.ports),
    `${ready}/${all}${local > 0 ? ` (${local} here)` : ''}`,
    policyOf(row),
    affinitySeconds === undefined ? '' : `${affinitySeconds}s`,
    detail === undefined ? state : `${state}: ${oneCell(detail)}`,
  ];
}

function otherIPs({ externalIPs, loadBalancerIPs }: ServiceRow): string {
  if (externalIPs.length === 0) return joined(loadBalancerIPs);
  return joined([...loadBalancerIPs, ...externalIPs]);
}

function policyOf({ externalTrafficPolicy, internalTrafficPolicy }: ServiceRow): string {
  if (externalTrafficPolicy !== 'Local') return internalTrafficPolicy === 'Local' ? 'internal Local' : '';
  return internalTrafficPolicy === 'Local' ? 'external Local, internal Local' : 'external Local';
}

/** Most have one. */
function joined(texts: readonly string[]): string {
  return texts.length === 1 ? (texts[0] ?? '') : texts.join(',');
}

/** What the kernel said may have anything in it. */
function oneCell(text: string): string {
  return text.replaceAll(/[\t\r\n]+/g, ' ');
}

/** The lines of all services by name; a step for each, so that callers can pause. */
export function* serviceLines(subject: Subject, namespace?: string): Generator<string> {
  for (const row of rowsOf(subject, [...serviceKeys(subject, namespace)].sort()))
    yield `${serviceLine(row)}\n`;
}

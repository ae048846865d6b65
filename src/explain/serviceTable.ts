/**
 * `services` as a table: cells of a row, in the order of the columns, with tabs between them. The running proxy sends it so
 * (`/v1/services?format=table`): of thirty thousand services it is a third of the JSON, and nothing has to be parsed.
 */
import type { ObjectKey } from '../model/objects.ts';
import { serviceOfPortId } from '../model/serviceTracker.ts';
import { serviceKeys, serviceRow } from './rows.ts';
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
  'CONN/S',
  'STATE',
] as const;

/** Without the line end. */
export function serviceLine(row: ServiceRow): string {
  const { service, type, endpoints, affinitySeconds, rate, state, detail } = row;
  const { ready, all, local } = endpoints;
  const here = local > 0 ? ` (${local} here)` : '';
  const affinity = affinitySeconds === undefined ? '' : `${affinitySeconds}s`;
  const perSecond = rate === undefined ? '' : rate.toFixed(1);
  const condition = detail === undefined ? state : `${state}: ${oneCell(detail)}`;
  return `${service}\t${type}\t${joined(row.clusterIPs)}\t${otherIPs(row)}\t${joined(row.ports)}\t${ready}/${all}${here}\t${policyOf(row)}\t${affinity}\t${perSecond}\t${condition}`;
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

/**
 * The lines of all services, kept from one question to the next: to count the endpoints of thirty thousand takes 100 ms, and
 * few change in between. A line is 80 bytes.
 */
export class ServiceLines {
  readonly #lines = new Map<ObjectKey, string>();
  #families = '';

  /** `changed`: services that were planned again since the last question. A step for each, so that callers can pause. */
  *of(subject: Subject, changed: Iterable<ObjectKey>, namespace?: string): Generator<string> {
    this.#drop(subject, changed);
    for (const service of serviceKeys(subject, namespace)) {
      const line = this.#lines.get(service) ?? this.#make(subject, service);
      if (line !== undefined) yield line;
    }
  }

  #drop(subject: Subject, changed: Iterable<ObjectKey>): void {
    const families = subject.families.map(({ family }) => family).join();
    if (families !== this.#families) this.#lines.clear();
    this.#families = families;
    for (const service of changed) this.#lines.delete(service);
    for (const { refused } of subject.families)
      for (const id of refused.keys()) this.#lines.delete(serviceOfPortId(id));
  }

  /** Why something is not served may change without it: such a line is made each time. */
  #make(subject: Subject, service: ObjectKey): string | undefined {
    const row = serviceRow(subject, service);
    if (!row) return undefined;
    const line = `${serviceLine(row)}\n`;
    if (row.state === 'ok' && row.rate === undefined) this.#lines.set(service, line);
    return line;
  }
}

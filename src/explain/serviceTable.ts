/**
 * `services` as a table: cells of a row, in the order of the columns, with tabs between them. The running proxy sends it so
 * (`/v1/services?format=table`): of thirty thousand services it is a third of the JSON, and nothing has to be parsed.
 */
import type { ObjectKey } from '../model/objects.ts';
import { serviceOfPortId } from '../model/serviceTracker.ts';
import { flat } from '../model/flat.ts';
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
 * The lines of all services in their order, kept from one question to the next: to count the endpoints of thirty thousand
 * takes 100 ms, and few change in between. A line is 80 bytes.
 */
export class ServiceLines {
  /** Of all services; `undefined` where it has to be made. */
  readonly #lines = new Map<ObjectKey, string | undefined>();
  #order: readonly ObjectKey[] | undefined;
  #families = '';

  /**
   * `changed`: services that were planned again since the last question, or whose rate is another. A step for each, so that callers can pause; some
   * steps are empty.
   */
  *of(subject: Subject, changed: Iterable<ObjectKey>, namespace?: string): Generator<string> {
    this.#update(subject, changed);
    const order = this.#order ?? (yield* sorted(this.#noted(serviceKeys(subject))));
    this.#order ??= order;
    const prefix = namespace === undefined ? '' : `${namespace}/`;
    for (const service of order)
      if (service.startsWith(prefix)) yield this.#lines.get(service) ?? this.#make(subject, service);
  }

  #update(subject: Subject, changed: Iterable<ObjectKey>): void {
    const families = subject.families.map(({ family }) => family).join();
    if (families !== this.#families) this.#clear();
    this.#families = families;
    for (const service of changed) {
      const isServed = subject.families.some((family) => family.portsOf(service).length > 0);
      if (isServed !== this.#lines.has(service)) this.#order = undefined;
      if (isServed) this.#lines.set(service, undefined);
      else this.#lines.delete(service);
    }
    for (const { refused } of subject.families)
      for (const service of Array.from(refused.keys(), serviceOfPortId))
        if (this.#lines.has(service)) this.#lines.set(service, undefined);
  }

  *#noted(services: Iterable<ObjectKey>): Generator<ObjectKey> {
    for (const service of services) {
      if (!this.#lines.has(service)) this.#lines.set(service, undefined);
      yield service;
    }
  }

  #clear(): void {
    this.#lines.clear();
    this.#order = undefined;
  }

  /** Why something is not served may change without it: such a line is made each time. */
  #make(subject: Subject, service: ObjectKey): string {
    const row = serviceRow(subject, service);
    // Deleted since the question began.
    if (!row) return '';
    const line = flat(`${serviceLine(row)}\n`);
    this.#lines.set(service, row.state === 'ok' ? line : undefined);
    return line;
  }
}

/** So many take half a millisecond to sort. */
const RUN = 1000;

/** In steps: to sort thirty thousand names takes 20 ms. */
function* sorted(keys: Iterable<ObjectKey>): Generator<string, readonly ObjectKey[]> {
  const runs: (readonly ObjectKey[])[] = [];
  let run: ObjectKey[] = [];
  for (const key of keys) {
    run.push(key);
    if (run.length < RUN) continue;
    runs.push(run.sort());
    run = [];
    yield '';
  }
  runs.push(run.sort());
  for (;;) {
    const [first = [], second] = runs.splice(0, 2);
    if (!second) return first;
    runs.push(yield* merged(first, second));
  }
}

function* merged(a: readonly ObjectKey[], b: readonly ObjectKey[]): Generator<string, readonly ObjectKey[]> {
  const all: ObjectKey[] = [];
  let [left, right] = [0, 0];
  while (left < a.length || right < b.length) {
    const first = a[left];
    const second = b[right];
    if (first !== undefined && (second === undefined || first < second)) {
      all.push(first);
      left += 1;
    } else if (second !== undefined) {
      all.push(second);
      right += 1;
    }
    if (all.length % RUN === 0) yield '';
  }
  return all;
}

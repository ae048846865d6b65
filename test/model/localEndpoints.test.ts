import { expect, test } from 'vitest';
import { EndpointTracker } from '../../src/model/endpointTracker.ts';
import { LocalEndpoints } from '../../src/model/localEndpoints.ts';
import { ServiceTracker } from '../../src/model/serviceTracker.ts';
import { applyAll, keyOf, service, slice } from '../plan/given.ts';

class Stage {
  readonly #services = new ServiceTracker('IPv4');
  readonly #endpoints = new EndpointTracker('IPv4', 'node-a');
  /** Services whose endpoints were asked for. */
  readonly asked: string[] = [];
  readonly local = new LocalEndpoints({
    portsOf: (key) => this.#services.portsOf(key),
    endpointsOf: (key, limits) => {
      this.asked.push(key);
      return this.#endpoints.endpointsOf(key, limits);
    },
  });

  /** Ports and counts of health checks. */
  tell(...lines: readonly string[]): string {
    for (const line of lines) {
      if (line.startsWith('- ')) this.#services.update(line.slice(2), undefined);
      else if (line.includes(' of ')) this.#endpoints.update(`x/${slice(line).name}`, slice(line));
      else this.#services.update(keyOf(service(line)), service(line));
    }
    const changed = this.local.update([...this.#services.apply().keys(), ...applyAll(this.#endpoints)]);
    const print = (map: ReadonlyMap<string, number>): string =>
      [...map].map((pair) => pair.join('=')).join(' ');
    return `${changed ? 'changed' : 'same'} [${print(this.local.ports)}] [${print(this.local.counts)}]`;
  }
}

const WEB = 'x/web LoadBalancer 10.96.0.1 80 etp=Local hc=345';
const TWO = 'x/web LoadBalancer 10.96.0.1 a:80 b:443 etp=Local hc=345';

test.each([
  [
    WEB,
    'x/1 of web 80 | 10.0.0.1 node-a | 10.0.0.2 node-a | 10.0.0.3 node-a | 10.0.0.4 node-a unready',
    '[x/web=345] [x/web=3]',
  ],
  [TWO, 'x/1 of web a:80 b:443 | 10.0.0.1 node-a', '[x/web=345] [x/web=1]'],
  [WEB, 'x/1 of web 80 | 10.0.0.1 node-a draining | 10.0.0.2 node-a starting', '[x/web=345] []'],
  [WEB, 'x/1 of web 80 | 10.0.0.1 node-a published', '[x/web=345] [x/web=1]'],
  [WEB, 'x/1 of web 80 | 10.0.0.1 node-b | 10.0.0.2', '[x/web=345] []'],
  ['x/web LoadBalancer 10.96.0.1 80 hc=345', 'x/1 of web 80 | 10.0.0.1 node-a', '[] []'],
  ['x/web NodePort 10.96.0.1 80@30000 etp=Local hc=345', 'x/1 of web 80 | 10.0.0.1 node-a', '[] []'],
  ['x/web LoadBalancer 10.96.0.1 80 etp=Local', 'x/1 of web 80 | 10.0.0.1 node-a', '[] []'],
])('%s, %s: %s', (web, endpoints, expected) => {
  expect(new Stage().tell(web, endpoints).replace(/^\w+ /, '')).toBe(expected);
});

test('kept up to date by what changed', () => {
  const stage = new Stage();
  expect(stage.tell('x/plain 10.96.0.9 80', 'x/p of plain 80 | 10.0.0.9 node-a')).toBe('same [] []');
  expect(stage.asked).toEqual([]);
  for (const [line, expected] of [
    [WEB, 'changed [x/web=345] []'],
    ['x/1 of web 80 | 10.0.0.1 node-a', 'changed [x/web=345] [x/web=1]'],
    ['x/1 of web 80 | 10.0.0.2 node-a', 'same [x/web=345] [x/web=1]'],
    ['x/2 of web 80 | 10.0.0.3 node-a', 'changed [x/web=345] [x/web=2]'],
    [WEB.replace('345', '346'), 'changed [x/web=346] [x/web=2]'],
    ['x/2 of web 80', 'changed [x/web=346] [x/web=1]'],
    ['x/1 of web 80 | 10.0.0.2 node-a draining', 'changed [x/web=346] []'],
    ['x/1 of web 80 | 10.0.0.2 node-a', 'changed [x/web=346] [x/web=1]'],
    ['- x/web', 'changed [] []'],
    [WEB, 'changed [x/web=345] [x/web=1]'],
  ] as const)
    expect(stage.tell(line)).toBe(expected);
});

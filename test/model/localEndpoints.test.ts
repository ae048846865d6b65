import { describe, expect, test } from 'vitest';
import { EndpointTracker, mergeSlices } from '../../src/model/endpointTracker.ts';
import { healthCheckPorts, LocalEndpoints, localReadyCount } from '../../src/model/localEndpoints.ts';
import { servicePorts, ServiceTracker } from '../../src/model/serviceTracker.ts';
import { applyAll, keyOf, service, slice } from '../plan/given.ts';

describe('how many are ready here', () => {
  test.each([
    [['x/1 of s 80 | 10.0.0.1 node-a | 10.0.0.2 node-a | 10.0.0.3 node-a | 10.0.0.4 node-a unready'], 3],
    [['x/1 of s a:80 b:443 | 10.0.0.1 node-a'], 1],
    [['x/1 of s a:80 | 10.0.0.1 node-a', 'x/2 of s b:443 | 10.0.0.1 node-a | 10.0.0.2 node-a'], 2],
    [['x/1 of s 80 | 10.0.0.1 node-a draining | 10.0.0.2 node-a starting'], 0],
    [['x/1 of s 80 | 10.0.0.1 node-a published'], 1],
    [['x/1 of s 80 | 10.0.0.1 node-b | 10.0.0.2'], 0],
    [[], 0],
  ])('%j: %d', (slices, expected) => {
    expect(localReadyCount(mergeSlices(slices.map(slice), 'node-a'))).toBe(expected);
  });
});

describe('which health-check node ports there are', () => {
  test.each([
    ['two ports, one entry', 'x/s LoadBalancer 10.96.0.1 a:80 b:81 etp=Local hc=345', [['x/s', 345]]],
    ['the policy is not Local', 'x/s LoadBalancer 10.96.0.1 80 hc=345', []],
    ['no load balancer', 'x/s NodePort 10.96.0.1 80@30000 etp=Local hc=345', []],
    ['none', 'x/s LoadBalancer 10.96.0.1 80 etp=Local', []],
  ])('%s', (_, text, expected) => {
    expect([...healthCheckPorts(servicePorts(service(text), 'IPv4'))]).toEqual(expected);
  });
});

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

test('kept up to date by what changed', () => {
  const stage = new Stage();
  const web = 'x/web LoadBalancer 10.96.0.1 80 etp=Local hc=345';
  expect(stage.tell('x/plain 10.96.0.9 80', 'x/p of plain 80 | 10.0.0.9 node-a')).toBe('same [] []');
  expect(stage.asked).toEqual([]);
  expect(stage.tell(web)).toBe('changed [x/web=345] []');
  expect(stage.tell('x/1 of web 80 | 10.0.0.1 node-a')).toBe('changed [x/web=345] [x/web=1]');
  expect(stage.tell('x/1 of web 80 | 10.0.0.2 node-a')).toBe('same [x/web=345] [x/web=1]');
  expect(stage.tell('x/2 of web 80 | 10.0.0.3 node-a')).toBe('changed [x/web=345] [x/web=2]');
  expect(stage.tell(web.replace('345', '346'))).toBe('changed [x/web=346] [x/web=2]');
  expect(stage.tell('x/1 of web 80 | 10.0.0.2 node-a draining', 'x/2 of web 80')).toBe(
    'changed [x/web=346] []',
  );
  expect(stage.tell('x/1 of web 80 | 10.0.0.2 node-a')).toBe('changed [x/web=346] [x/web=1]');
  expect(stage.tell('- x/web')).toBe('changed [] []');
  expect(stage.tell(web)).toBe('changed [x/web=345] [x/web=1]');
});

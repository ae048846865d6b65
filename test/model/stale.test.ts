import { describe, expect, test } from 'vitest';
import { EndpointTracker } from '../../src/model/endpointTracker.ts';
import { ServiceTracker } from '../../src/model/serviceTracker.ts';
import { detectStaleConnections } from '../../src/model/stale.ts';
import { keyOf, service, slice } from '../plan/given.ts';

interface World {
  readonly services?: readonly string[];
  readonly slices?: readonly string[];
}

/** What is stale when one world follows the other. */
function stale(before: World, after: World): readonly string[] {
  const services = new ServiceTracker('IPv4');
  const endpoints = new EndpointTracker('IPv4', 'node-a');
  const tell = ({ services: given = [], slices = [] }: World, present: boolean): void => {
    for (const one of given.map(service)) services.update(keyOf(one), present ? one : undefined);
    for (const one of slices.map(slice)) endpoints.update(one.namespace, one.name, present ? one : undefined);
  };
  tell(before, true);
  services.apply();
  endpoints.apply();
  tell(before, false);
  tell(after, true);
  const found = detectStaleConnections(services.apply(), endpoints.apply());
  return [
    ...found.endpoints.map((each) => `endpoint ${each.service} ${each.port} ${each.endpoint}`),
    ...found.revivedPorts.map((each) => `port ${each.service} ${each.port}`),
    ...found.clusterIPs.map((each) => `address ${each}`),
  ];
}

const DNS = 'x/dns 10.96.0.10 dns:53/udp';
const ONE = 'x/dns-1 of dns dns:53/udp | 10.0.0.1';

describe('stale after a change', () => {
  const table: readonly (readonly [string, World, World, readonly string[]])[] = [
    ['nothing changed', { services: [DNS], slices: [ONE] }, { services: [DNS], slices: [ONE] }, []],
    [
      'an endpoint left',
      { slices: ['x/dns-1 of dns dns:53/udp | 10.0.0.1 | 10.0.0.2'] },
      { slices: [ONE] },
      ['endpoint x/dns dns/UDP 10.0.0.2:53'],
    ],
    [
      'an endpoint came to others',
      { slices: [ONE] },
      { slices: ['x/dns-1 of dns dns:53/udp | 10.0.0.1 | 10.0.0.2'] },
      [],
    ],
    ['the first endpoint came', {}, { slices: [ONE] }, ['port x/dns dns/UDP']],
    ['the last endpoint left', { slices: [ONE] }, {}, ['endpoint x/dns dns/UDP 10.0.0.1:53']],
    [
      'an endpoint changed its condition',
      { slices: [ONE] },
      { slices: ['x/dns-1 of dns dns:53/udp | 10.0.0.1 draining'] },
      [],
    ],
    ['the service was deleted', { services: [DNS] }, {}, ['address 10.96.0.10']],
    [
      'it moved to another address',
      { services: [DNS] },
      { services: ['x/dns 10.96.0.11 dns:53/udp'] },
      ['address 10.96.0.10'],
    ],
    [
      'its port was renamed',
      { services: [DNS] },
      { services: ['x/dns 10.96.0.10 other:53/udp'] },
      ['address 10.96.0.10'],
    ],
    ['TCP finds out by itself', { services: ['x/web 10.96.0.1 80'] }, {}, []],
    ['SCTP does not', { services: ['x/web 10.96.0.1 80/sctp'] }, {}, ['address 10.96.0.1']],
  ];
  test.each(table)('%s', (_, before, after, expected) => expect(stale(before, after)).toEqual(expected));
});

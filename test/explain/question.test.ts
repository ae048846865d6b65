/** Questions as people type them, and what is said of those that cannot be answered. */
import { describe, expect, test } from 'vitest';
import { parseDestination, parseService, parseSource } from '../../src/explain/question.ts';
import { serviceObjects } from '../../src/explain/objects.ts';
import { explainPackets } from '../../src/explain/packet.ts';
import { explainService } from '../../src/explain/service.ts';
import { endpointRows } from '../../src/explain/rows.ts';
import { service, slice, slice6 } from '../scenarios/objects.ts';
import { ip } from '../scenarios/scenario.ts';
import { clusterOf } from './given.ts';

const address = (ip: string, port: number, protocol = 'TCP') => ({ kind: 'address', ip, port, protocol });
const sender = (ip: string, inInterface?: string) => ({ kind: 'address', ip, inInterface });

test.each([
  [parseSource, 'node', { kind: 'node' }],
  [parseSource, 'outside', { kind: 'outside' }],
  [parseSource, 'fd00:0::1', sender('fd00::1')],
  [parseSource, '[fd00::1]', sender('fd00::1')],
  [parseSource, '10.244.1.11%cni0', sender('10.244.1.11', 'cni0')],
  [parseSource, 'pod/shop/web-1', { kind: 'pod', pod: 'shop/web-1' }],
  [parseDestination, '10.96.0.1:80', address('10.96.0.1', 80)],
  [parseDestination, '10.96.0.1:53/udp', address('10.96.0.1', 53, 'UDP')],
  [parseDestination, '[fd00::1]:80/SCTP', address('fd00::1', 80, 'SCTP')],
  [parseDestination, 'svc/shop/web', { kind: 'service', service: 'shop/web' }],
  [parseDestination, 'service/shop/web:http', { kind: 'service', service: 'shop/web', port: 'http' }],
  [parseDestination, 'svc/shop/web/udp', { kind: 'service', service: 'shop/web', protocol: 'UDP' }],
  [parseDestination, 'svc/shop/tcp', { kind: 'service', service: 'shop/tcp' }],
  [parseService, 'svc/shop/web', { service: 'shop/web' }],
  [parseService, 'svc/web', { service: 'svc/web' }],
  [parseService, 'shop/web:80/tcp', { service: 'shop/web', port: '80', protocol: 'TCP' }],
])('%o %s', (parse, text, expected) => {
  expect(parse(text)).toEqual(expected);
});

test.each([
  [parseSource, 'nodde', '"nodde" is not a source (did you mean node?)'],
  [parseSource, '10.0.0.300', '"10.0.0.300" is not a source'],
  [parseSource, '10.0.0.1%a/b', '"10.0.0.1%a/b" is not a source'],
  [parseSource, 'pod/web-1', '"pod/web-1" does not name a pod with its namespace'],
  [parseSource, '\u001b[31m', '"\\u{1b}[31m" is not a source'],
  [parseDestination, '10.0.0.1', '"10.0.0.1" has no port'],
  [parseDestination, 'fd00::1:80', '"fd00::1:80" has no port'],
  [parseDestination, '10.0.0.1:0', '"10.0.0.1:0": "0" is not a port from 1 to 65535'],
  [parseDestination, 'web:80', '"web:80" is not a destination'],
  [parseDestination, 'svc/web', '"svc/web" does not name a Service with its namespace'],
  [parseDestination, 'svc/shop/web:', '"svc/shop/web:" is not a Service'],
])('%o %s: %s', (parse, text, message) => {
  expect(() => parse(text)).toThrow(expect.objectContaining({ message, code: 'QUESTION_UNANSWERABLE' }));
});

describe('names that are not there', () => {
  const subject = clusterOf(
    [
      service('web', { clusterIP: '10.96.1.1', ports: 'http=80 admin=81' }),
      slice('web', 'http=8080 admin=8081', 'pod-a', 'pod-c'),
      service('six', { clusterIP: 'fd00:96::6' }),
      slice6('six', '80', 'pod-a'),
    ],
    {},
    {
      unserved: (key) =>
        Promise.resolve(key === 'default/db' ? { code: 'headless', reason: 'it is headless' } : undefined),
    },
  );

  test.each([
    [
      'pod/default/pod-b',
      'svc/default/web',
      'no EndpointSlice in the namespace "default" names a pod "pod-b" (did you mean pod-a?)',
    ],
    ['pod/other/pod-a', 'svc/default/web', 'no EndpointSlice in the namespace "other" names a pod "pod-a"'],
    ['node', 'svc/default/wbe', 'there is no Service "default/wbe" (did you mean default/web?)'],
    ['node', 'svc/default/nothing-like-it', 'there is no Service "default/nothing-like-it"'],
    ['node', 'svc/default/web:htp', 'Service default/web has no port "htp" (did you mean http?)'],
    ['node', 'svc/default/web:80/udp', 'Service default/web has no port "80/UDP"'],
    ['node', 'svc/default/db', 'Service default/db is not served by this proxy: it is headless'],
    ['10.244.1.11', 'svc/default/six', '10.244.1.11 has no IPv6 address, and fd00:96::6 is IPv6'],
  ])('from %s to %s', async (from, to, message) => {
    await expect(explainPackets(subject, { from, to })).rejects.toThrow(
      expect.objectContaining({ message, code: 'QUESTION_UNANSWERABLE' }),
    );
  });

  test('a service by itself, its endpoints, its objects', async () => {
    const message = 'there is no Service "default/wbe" (did you mean default/web?)';
    await expect(explainService(subject, { service: 'default/wbe' })).rejects.toThrow(message);
    await expect(endpointRows(subject, 'default/wbe')).rejects.toThrow(message);
    await expect(serviceObjects(subject, 'default/wbe')).rejects.toThrow(message);
  });

  test('an address of a family that is not served', async () => {
    const only4 = { ...subject, families: subject.families.filter(({ family }) => family === 'IPv4') };
    await expect(explainPackets(only4, { from: 'node', to: '[fd00:96::6]:80' })).rejects.toThrow(
      'fd00:96::6 is IPv6, and this proxy serves IPv4',
    );
  });
});

describe('what is asked for by name', () => {
  const subject = clusterOf([
    service('web', { clusterIP: '10.96.1.1 fd00:96::1', ports: 'http=80 dns=53/UDP' }),
    slice('web', 'http=8080 dns=53/UDP', 'pod-a', 'pod-c'),
    slice6('web', 'http=8080 dns=53/UDP', 'pod-a'),
  ]);

  test.each([
    [
      'node',
      'svc/default/web',
      [
        '192.168.100.2 node 10.96.1.1:80/TCP',
        '192.168.100.2 node 10.96.1.1:53/UDP',
        'fd00:100::2 node fd00:96::1:80/TCP',
        'fd00:100::2 node fd00:96::1:53/UDP',
      ],
    ],
    ['10.244.2.11', 'svc/default/web:http', ['10.244.2.11 eth0 10.96.1.1:80/TCP']],
    ['10.244.2.11%cni0', 'svc/default/web:80', ['10.244.2.11 cni0 10.96.1.1:80/TCP']],
    [
      'pod/default/pod-a',
      'svc/default/web:http',
      ['10.244.1.11 eth0 10.96.1.1:80/TCP', 'fd00:244:1::11 eth0 fd00:96::1:80/TCP'],
    ],
    ['pod/default/pod-c', 'svc/default/web/udp', ['10.244.2.11 eth0 10.96.1.1:53/UDP']],
    ['outside', '10.96.1.1:80', ['198.51.100.1 eth0 10.96.1.1:80/TCP']],
    ['192.168.100.2', '10.96.1.1:80', ['192.168.100.2 node 10.96.1.1:80/TCP']],
    ['node', '127.0.0.1:30080', ['127.0.0.1 node 127.0.0.1:30080/TCP']],
    ['node', '192.168.100.2:30080', ['192.168.100.2 node 192.168.100.2:30080/TCP']],
  ])('from %s to %s', async (from, to, expected) => {
    const answers = await explainPackets(subject, { from, to });
    expect(
      answers.map(
        ({ packet: { source, inInterface = 'node', destination, port, protocol } }) =>
          `${source} ${inInterface} ${destination}:${port}/${protocol}`,
      ),
    ).toEqual(expected);
  });

  test('routes and pods that are known say more', async () => {
    const knowing = {
      ...subject,
      interfaceFrom: () => Promise.resolve('veth1'),
      podIps: (pod: string) => Promise.resolve(pod === 'default/other' ? [ip('10.244.1.99')] : undefined),
    };
    const [answer] = await explainPackets(knowing, { from: 'pod/default/other', to: '10.96.1.1:80' });
    expect(answer?.packet).toMatchObject({
      source: '10.244.1.99',
      inInterface: 'veth1',
      sourceName: 'default/other',
    });
  });
});

/** What a service of each kind becomes: entries of sets, virtual servers with their endpoints, addresses. */
import { describe, expect, test } from 'vitest';
import {
  compileVirtualServers,
  type VirtualServerOptions,
} from '../../../../src/modes/ipvs/rules/compile.ts';
import { entryKey, setName } from '../../../../src/modes/ipvs/rules/sets.ts';
import type { Family } from '../../../../src/model/ip.ts';
import { Cluster } from '../../../plan/cluster.ts';
import type { Frontend, Route, ServicePortPlan } from '../../../../src/plan/types.ts';
import { cidr, ip, known, VIEW, VIEW_6 } from '../../../plan/given.ts';
import { printDestination, printServer } from './cluster.ts';

const HERE = '| 10.244.0.1 node-a';
const ELSEWHERE = '| 10.244.1.1 node-b';
const NODE_IP = ip('192.0.2.10');

interface Given {
  readonly family?: Family;
  readonly options?: Partial<VirtualServerOptions>;
}

function compiled(lines: string, { family = 'IPv4', options = {} }: Given = {}): readonly string[] {
  const cluster = new Cluster(family === 'IPv4' ? VIEW : VIEW_6, family).tell(lines);
  cluster.replan();
  const nodeIps = [family === 'IPv4' ? NODE_IP : ip('2001:db8::10')];
  return [...cluster.planner.servicePorts.values()].flatMap((port) => {
    const { members, servers } = compileVirtualServers(port, {
      family,
      scheduler: 'rr',
      nodePortIps: nodeIps,
      nodeIps,
      ...options,
    });
    const silences = servers.flatMap(({ silence }) => silence ?? []);
    return [
      ...[...members, ...silences].map(({ set, entry }) => `${setName(set, family)} ${entryKey(entry)}`),
      ...servers.flatMap((server) => [
        `-A ${printServer(server)}`,
        ...server.destinations.map(({ key }) => `-a ${printDestination(server, key, 1)}`),
      ]),
      ...members.flatMap(({ entry }) => (entry.type === 'hash:ip' ? [`addr ${entry.ip}`] : [])),
    ];
  });
}

const REJECT: Route = { verdict: 'reject' };

function planOf(line: string): ServicePortPlan {
  const cluster = new Cluster().tell(line);
  cluster.replan();
  return known([...cluster.planner.servicePorts.values()][0], line);
}

/** `a/x` with endpoints on this node and elsewhere. */
const both = (service: string, port = '80'): string => `${service}\n a/x-1 of x ${port} ${HERE} ${ELSEWHERE}`;
const elsewhere = (service: string, port = '80'): string => `${service}\n a/x-1 of x ${port} ${ELSEWHERE}`;

const CLUSTER_IP = [
  'KUBE-CLUSTER-IP 10.96.0.1,tcp:80',
  '-A -t 10.96.0.1:80 -s rr',
  'KUBE-IPVS-IPS 10.96.0.1',
  'addr 10.96.0.1',
];
const LOOP_BACK = 'KUBE-LOOP-BACK 10.244.0.1,tcp:80,10.244.0.1';
const destinations = (server: string, ...keys: readonly string[]): readonly string[] =>
  keys.map((key) => `-a ${server} -r ${key} -m -w 1`);
const TWO = ['10.244.0.1:80', '10.244.1.1:80'];
const TO_CLUSTER_IP = [...CLUSTER_IP, LOOP_BACK, ...destinations('-t 10.96.0.1:80', ...TWO)];

function expectWorld(actual: readonly string[], expected: readonly string[]): void {
  expect([...actual].sort()).toEqual([...expected].sort());
}

describe('cluster IP', () => {
  test('with endpoints here and elsewhere', () => {
    expectWorld(compiled(both('a/x 10.96.0.1 80')), TO_CLUSTER_IP);
  });

  test('without endpoints the server is there, and IPVS refuses for it', () => {
    expectWorld(compiled('a/x 10.96.0.1 80'), CLUSTER_IP);
  });

  test('endpoints here that are not ready solve the hairpin too', () => {
    expectWorld(compiled(`a/x 10.96.0.1 80\n a/x-1 of x 80 ${HERE} unready ${ELSEWHERE}`), [
      ...CLUSTER_IP,
      LOOP_BACK,
      ...destinations('-t 10.96.0.1:80', '10.244.1.1:80'),
    ]);
  });

  test('two protocols of one port number are two of everything but the address', () => {
    expectWorld(compiled('a/x 10.96.0.1 d:53/udp t:53\n a/x-1 of x d:53/udp t:53 | 10.244.1.1 node-b'), [
      'KUBE-CLUSTER-IP 10.96.0.1,udp:53',
      'KUBE-CLUSTER-IP 10.96.0.1,tcp:53',
      'KUBE-IPVS-IPS 10.96.0.1',
      'KUBE-IPVS-IPS 10.96.0.1',
      'addr 10.96.0.1',
      'addr 10.96.0.1',
      '-A -u 10.96.0.1:53 -s rr',
      '-A -t 10.96.0.1:53 -s rr',
      ...destinations('-u 10.96.0.1:53', '10.244.1.1:53'),
      ...destinations('-t 10.96.0.1:53', '10.244.1.1:53'),
    ]);
  });

  test('affinity is persistence with its time-out, for the whole client address', () => {
    expect(compiled(both('a/x 10.96.0.1 80 affinity=10800'))).toContain('-A -t 10.96.0.1:80 -s rr -p 10800');
  });

  test('the scheduler mh counts ports too; others do not', () => {
    const mh = compiled('a/x 10.96.0.1 80 affinity=60', { options: { scheduler: 'mh' } });
    expect(mh).toContain('-A -t 10.96.0.1:80 -s mh -p 60 -b mh-port');
    expect(compiled('a/x 10.96.0.1 80', { options: { scheduler: 'sh' } })).toContain(
      '-A -t 10.96.0.1:80 -s sh',
    );
  });
});

describe('internal traffic policy Local', () => {
  test('with an endpoint here: that one only', () => {
    expectWorld(compiled(both('a/x 10.96.0.1 80 itp=Local')), [
      ...CLUSTER_IP,
      LOOP_BACK,
      ...destinations('-t 10.96.0.1:80', '10.244.0.1:80'),
    ]);
  });

  test('without one: nobody, and rules drop in silence', () => {
    expectWorld(compiled(elsewhere('a/x 10.96.0.1 80 itp=Local')), [
      ...CLUSTER_IP,
      'KUBE-NO-LOCAL 10.96.0.1,tcp:80',
    ]);
  });

  test('without one, of a service that is visible outside: the node port has all of them', () => {
    const world = compiled(elsewhere('a/x 10.96.0.1 80@30080 itp=Local'));
    expectWorld(world, [
      ...CLUSTER_IP,
      'KUBE-NO-LOCAL 10.96.0.1,tcp:80',
      'KUBE-NODE-PORT-TCP 30080',
      '-A -t 192.0.2.10:30080 -s rr',
      ...destinations('-t 192.0.2.10:30080', '10.244.1.1:80'),
    ]);
  });
});

describe('external IP', () => {
  const SERVER = [
    'KUBE-IPVS-IPS 198.51.100.1',
    'addr 198.51.100.1',
    '-A -t 198.51.100.1:80 -s rr',
    ...destinations('-t 198.51.100.1:80', ...TWO),
  ];

  test('like a cluster IP, in a set of its own', () => {
    expectWorld(compiled(both('a/x 10.96.0.1 80 ext=198.51.100.1')), [
      ...TO_CLUSTER_IP,
      ...SERVER,
      'KUBE-EXTERNAL-IP 198.51.100.1,tcp:80',
    ]);
  });

  test('of the node itself is served but neither bound nor protected from other ports', () => {
    expectWorld(compiled(both('a/x 10.96.0.1 80 ext=192.0.2.10')), [
      ...TO_CLUSTER_IP,
      'KUBE-EXTERNAL-IP 192.0.2.10,tcp:80',
      '-A -t 192.0.2.10:80 -s rr',
      ...destinations('-t 192.0.2.10:80', ...TWO),
    ]);
  });

  test('with external traffic policy Local: endpoints here, in the set of those who keep the client', () => {
    expectWorld(compiled(both('a/x 10.96.0.1 80 ext=198.51.100.1 etp=Local')), [
      ...TO_CLUSTER_IP,
      'KUBE-EXTERNAL-IP-LOCAL 198.51.100.1,tcp:80',
      'KUBE-IPVS-IPS 198.51.100.1',
      'addr 198.51.100.1',
      '-A -t 198.51.100.1:80 -s rr',
      ...destinations('-t 198.51.100.1:80', '10.244.0.1:80'),
    ]);
  });

  test('with external traffic policy Local and none here: all, for pods; rules drop clients outside', () => {
    expectWorld(compiled(elsewhere('a/x 10.96.0.1 80 ext=198.51.100.1 etp=Local')), [
      ...CLUSTER_IP,
      ...destinations('-t 10.96.0.1:80', '10.244.1.1:80'),
      'KUBE-EXTERNAL-IP-LOCAL 198.51.100.1,tcp:80',
      'KUBE-NO-LOCAL-OUTSIDE 198.51.100.1,tcp:80',
      'KUBE-IPVS-IPS 198.51.100.1',
      'addr 198.51.100.1',
      '-A -t 198.51.100.1:80 -s rr',
      ...destinations('-t 198.51.100.1:80', '10.244.1.1:80'),
    ]);
  });

  test('with external traffic policy Local and no endpoint at all: a refusal, not silence', () => {
    expectWorld(compiled('a/x 10.96.0.1 80 ext=198.51.100.1 etp=Local'), [
      ...CLUSTER_IP,
      'KUBE-EXTERNAL-IP-LOCAL 198.51.100.1,tcp:80',
      'KUBE-IPVS-IPS 198.51.100.1',
      'addr 198.51.100.1',
      '-A -t 198.51.100.1:80 -s rr',
    ]);
  });
});

describe('load balancer', () => {
  const LB = [
    'KUBE-LOAD-BALANCER 203.0.113.1,tcp:80',
    'KUBE-IPVS-IPS 203.0.113.1',
    'addr 203.0.113.1',
    '-A -t 203.0.113.1:80 -s rr',
  ];
  const FIREWALL = 'KUBE-LOAD-BALANCER-FW 203.0.113.1,tcp:80';
  const source = (text: string): string => `KUBE-LOAD-BALANCER-SOURCE-CIDR 203.0.113.1,tcp:80,${text}`;
  const withRanges = (ranges: string): readonly string[] =>
    compiled(`a/x LoadBalancer 10.96.0.1 80 lb=203.0.113.1 ranges=${ranges}`);

  test('open to everybody', () => {
    expectWorld(compiled(both('a/x 10.96.0.1 80 lb=203.0.113.1')), [
      ...TO_CLUSTER_IP,
      ...LB,
      ...destinations('-t 203.0.113.1:80', ...TWO),
    ]);
  });

  test('with external traffic policy Local, and a port for health checks', () => {
    expectWorld(compiled(both('a/x 10.96.0.1 80 lb=203.0.113.1 etp=Local hc=32100')), [
      ...TO_CLUSTER_IP,
      ...LB,
      'KUBE-LOAD-BALANCER-LOCAL 203.0.113.1,tcp:80',
      'KUBE-HEALTH-CHECK-NODE-PORT 32100',
      ...destinations('-t 203.0.113.1:80', '10.244.0.1:80'),
    ]);
  });

  test('for some sources', () => {
    expectWorld(withRanges('9.9.9.0/24,198.18.0.0/15'), [
      ...CLUSTER_IP,
      ...LB,
      FIREWALL,
      source('9.9.9.0/24'),
      source('198.18.0.0/15'),
    ]);
  });

  test('for some sources, of which the node is one: what it dials comes from the address itself', () => {
    expectWorld(withRanges('192.0.2.0/24'), [
      ...CLUSTER_IP,
      ...LB,
      FIREWALL,
      source('192.0.2.0/24'),
      'KUBE-LOAD-BALANCER-SOURCE-IP 203.0.113.1,tcp:80,203.0.113.1',
    ]);
  });

  test('for a single host, which a set lists without its prefix', () => {
    expectWorld(withRanges('9.9.9.9/32'), [...CLUSTER_IP, ...LB, FIREWALL, source('9.9.9.9')]);
  });

  test('for everybody by name: open', () => {
    expectWorld(withRanges('9.9.9.0/24,0.0.0.0/0'), [...CLUSTER_IP, ...LB]);
  });

  test.each([
    ['0.0.0.0/0', ['0.0.0.0/1', '128.0.0.0/1']],
    ['::/0', ['::/1', '8000::/1']],
  ])('a plan with the range %s: two halves, because sets refuse a prefix of no bits', (range, halves) => {
    const family = range.includes(':') ? 'IPv6' : 'IPv4';
    const address = ip(family === 'IPv4' ? '203.0.113.1' : '2001:db8::1');
    const allowedSources = { ranges: [cidr(range)], hosts: [] };
    const routes = { pod: REJECT, node: REJECT, outside: REJECT };
    const frontend: Frontend = { kind: 'loadBalancerIP', address, port: 80, routes, allowedSources };
    const { members } = compileVirtualServers(
      { ...planOf('a/x 10.96.0.1 80'), frontends: [frontend] },
      { family, scheduler: 'rr', nodePortIps: [], nodeIps: [] },
    );
    const entries = members.filter(({ set }) => set === 'loadBalancerSourceCidr');
    expect(entries.map(({ entry }) => entryKey(entry))).toEqual(
      halves.map((half) => `${address},tcp:80,${half}`),
    );
  });

  test('two addresses are two of everything', () => {
    const world = compiled('a/x 10.96.0.1 80 lb=203.0.113.1,203.0.113.2 ranges=9.9.9.0/24');
    const second = [...LB, FIREWALL, source('9.9.9.0/24')].map((line) =>
      line.replaceAll('203.0.113.1', '203.0.113.2'),
    );
    expectWorld(world, [...CLUSTER_IP, ...LB, FIREWALL, source('9.9.9.0/24'), ...second]);
  });
});

describe('node port', () => {
  const two = { options: { nodePortIps: [NODE_IP, ip('192.0.2.11')] } };

  test('on each of the addresses where node ports answer, and on no device', () => {
    expectWorld(compiled('a/x 10.96.0.1 80@30080', two), [
      ...CLUSTER_IP,
      'KUBE-NODE-PORT-TCP 30080',
      '-A -t 192.0.2.10:30080 -s rr',
      '-A -t 192.0.2.11:30080 -s rr',
    ]);
  });

  test('where they answer nowhere, the rules still know it', () => {
    expectWorld(
      compiled('a/x 10.96.0.1 80@30080 hc=32100 lb=203.0.113.1 etp=Local', { options: { nodePortIps: [] } }),
      [
        ...CLUSTER_IP,
        'KUBE-LOAD-BALANCER 203.0.113.1,tcp:80',
        'KUBE-LOAD-BALANCER-LOCAL 203.0.113.1,tcp:80',
        'KUBE-IPVS-IPS 203.0.113.1',
        'addr 203.0.113.1',
        '-A -t 203.0.113.1:80 -s rr',
        'KUBE-NODE-PORT-TCP 30080',
        'KUBE-NODE-PORT-LOCAL-TCP 30080',
        'KUBE-HEALTH-CHECK-NODE-PORT 32100',
      ],
    );
  });

  test.each([
    ['80@30080', ['KUBE-NODE-PORT-TCP 30080']],
    ['80/udp@30080', ['KUBE-NODE-PORT-UDP 30080']],
    [
      '80/sctp@30080',
      ['KUBE-NODE-PORT-SCTP-HASH 192.0.2.10,sctp:30080', 'KUBE-NODE-PORT-SCTP-HASH 192.0.2.11,sctp:30080'],
    ],
    ['80@30080 etp=Local', ['KUBE-NODE-PORT-TCP 30080', 'KUBE-NODE-PORT-LOCAL-TCP 30080']],
    ['80/udp@30080 etp=Local', ['KUBE-NODE-PORT-UDP 30080', 'KUBE-NODE-PORT-LOCAL-UDP 30080']],
    [
      '80/sctp@30080 etp=Local',
      [
        'KUBE-NODE-PORT-SCTP-HASH 192.0.2.10,sctp:30080',
        'KUBE-NODE-PORT-SCTP-HASH 192.0.2.11,sctp:30080',
        'KUBE-NODE-PORT-LOCAL-SCTP-HASH 192.0.2.10,sctp:30080',
        'KUBE-NODE-PORT-LOCAL-SCTP-HASH 192.0.2.11,sctp:30080',
      ],
    ],
  ])('%s', (port, entries) => {
    const world = compiled(`a/x 10.96.0.1 ${port}`, two);
    expectWorld(
      world.filter((line) => line.startsWith('KUBE-NODE-PORT')),
      entries,
    );
  });

  test('with external traffic policy Local and no endpoint here: silence on every address', () => {
    const world = compiled(elsewhere('a/x 10.96.0.1 80@30080 etp=Local'), two);
    expectWorld(
      world.filter((line) => line.startsWith('KUBE-NO-')),
      ['KUBE-NO-LOCAL-OUTSIDE 192.0.2.10,tcp:30080', 'KUBE-NO-LOCAL-OUTSIDE 192.0.2.11,tcp:30080'],
    );
  });
});

describe('IPv6', () => {
  test('everything at once, in sets whose names are cut at 31 bytes', () => {
    const world = compiled(
      `a/x fd00:96::1 80/sctp@30080 lb=2001:db8:1::1 ranges=2001:db8::/64,2001:db8:2::2/128 etp=Local affinity=60 hc=32100
       a/x-1 of x 80/sctp | fd00:244::1 node-a`,
      { family: 'IPv6' },
    );
    const served = destinations('--sctp-service [fd00:96::1]:80', '[fd00:244::1]:80').concat(
      destinations('--sctp-service [2001:db8:1::1]:80', '[fd00:244::1]:80'),
      destinations('--sctp-service [2001:db8::10]:30080', '[fd00:244::1]:80'),
    );
    expectWorld(world, [
      'KUBE-6-LOOP-BACK fd00:244::1,sctp:80,fd00:244::1',
      'KUBE-6-CLUSTER-IP fd00:96::1,sctp:80',
      'KUBE-6-IPVS-IPS fd00:96::1',
      'addr fd00:96::1',
      '-A --sctp-service [fd00:96::1]:80 -s rr -p 60',
      'KUBE-6-LOAD-BALANCER 2001:db8:1::1,sctp:80',
      'KUBE-6-LOAD-BALANCER-LOCAL 2001:db8:1::1,sctp:80',
      'KUBE-6-LOAD-BALANCER-FW 2001:db8:1::1,sctp:80',
      'KUBE-6-LOAD-BALANCER-SOURCE-CID 2001:db8:1::1,sctp:80,2001:db8::/64',
      'KUBE-6-LOAD-BALANCER-SOURCE-CID 2001:db8:1::1,sctp:80,2001:db8:2::2',
      'KUBE-6-LOAD-BALANCER-SOURCE-IP 2001:db8:1::1,sctp:80,2001:db8:1::1',
      'KUBE-6-IPVS-IPS 2001:db8:1::1',
      'addr 2001:db8:1::1',
      '-A --sctp-service [2001:db8:1::1]:80 -s rr -p 60',
      'KUBE-6-NODE-PORT-SCTP-HASH 2001:db8::10,sctp:30080',
      'KUBE-6-NODE-PORT-LOCAL-SCTP-HAS 2001:db8::10,sctp:30080',
      '-A --sctp-service [2001:db8::10]:30080 -s rr -p 60',
      'KUBE-6-HEALTH-CHECK-NODE-PORT 32100',
      ...served,
    ]);
  });
});

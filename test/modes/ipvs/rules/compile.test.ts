/** What a service of each kind becomes: virtual servers with their endpoints, addresses of the device, entries of sets. */
import { describe, expect, test } from 'vitest';
import {
  compileVirtualServers,
  type VirtualServerOptions,
} from '../../../../src/modes/ipvs/rules/compile.ts';
import { entryKey, setName } from '../../../../src/modes/ipvs/rules/sets.ts';
import { FAMILIES, type Family } from '../../../../src/model/ip.ts';
import type { Frontend, Route, ServicePortPlan } from '../../../../src/plan/types.ts';
import { Cluster } from '../../../plan/cluster.ts';
import { cidr, ip, VIEW, VIEW_6 } from '../../../plan/given.ts';
import { printServer } from './cluster.ts';

const HERE = '| 10.244.0.1 node-a';
const ELSEWHERE = '| 10.244.1.1 node-b';
const BOTH = `${HERE} ${ELSEWHERE}`;

/** Each with the service, and its endpoints. */
const SERVICES: readonly (readonly [title: string, service: string, endpoints?: string])[] = [
  ['a cluster IP with endpoints here and elsewhere', '80', BOTH],
  ['without endpoints, IPVS refuses', '80'],
  ['endpoints here that are not ready solve the hairpin too', '80', `${HERE} unready ${ELSEWHERE}`],
  ['two protocols of one port number', 'd:53/udp t:53', ELSEWHERE],
  ['affinity is persistence', '80 affinity=10800', BOTH],
  ['internal traffic policy Local', '80 itp=Local', BOTH],
  ['the same without an endpoint here, but with a node port', '80@30080 itp=Local', ELSEWHERE],
  ['an external IP', '80 ext=198.51.100.1', BOTH],
  ['an external IP that is the node’s: neither bound nor protected', '80 ext=192.0.2.10', BOTH],
  ['an external IP with policy Local', '80 ext=198.51.100.1 etp=Local', BOTH],
  [
    'the same without an endpoint here: silence for clients outside',
    '80 ext=198.51.100.1 etp=Local',
    ELSEWHERE,
  ],
  ['the same without endpoints: a refusal, not silence', '80 ext=198.51.100.1 etp=Local'],
  ['a load balancer open to everybody', '80 lb=203.0.113.1', BOTH],
  ['a load balancer with policy Local and health checks', '80 lb=203.0.113.1 etp=Local hc=32100', BOTH],
  ['two load balancers for some', '80 lb=203.0.113.1,203.0.113.2 ranges=9.9.9.0/24,198.18.0.0/15'],
  ['for the node, which dials from the address itself', '80 lb=203.0.113.1 ranges=192.0.2.0/24'],
  ['for a single host, whose prefix a set does not list', '80 lb=203.0.113.1 ranges=9.9.9.9/32'],
  ['for everybody by name', '80 lb=203.0.113.1 ranges=9.9.9.0/24,0.0.0.0/0'],
  ['a node port with policy Local and no endpoint here', '80@30080 etp=Local', ELSEWHERE],
  ['a node port of UDP', '80/udp@30080 etp=Local'],
  ['a node port of SCTP', '80/sctp@30080 etp=Local'],
];

interface Given {
  readonly family?: Family;
  readonly options?: Partial<VirtualServerOptions>;
}

function planOf(lines: readonly string[], family: Family): readonly ServicePortPlan[] {
  const cluster = new Cluster(family === 'IPv4' ? VIEW : VIEW_6, family).tell(...lines);
  cluster.replan();
  return [...cluster.planner.servicePorts.values()];
}

/** One line for each virtual server, and one for each set. */
function compiled(
  lines: readonly string[],
  { family = 'IPv4', options = {} }: Given = {},
): readonly string[] {
  const nodePortIps = (family === 'IPv4' ? ['192.0.2.10', '192.0.2.11'] : ['2001:db8::10']).map(ip);
  const common = { family, scheduler: 'rr', nodePortIps, nodeIps: nodePortIps.slice(0, 1), ...options };
  return planOf(lines, family).flatMap((port) => {
    const { members, servers } = compileVirtualServers(port, common);
    const bySet = new Map<string, string[]>();
    for (const { set, entry } of [...members, ...servers.flatMap(({ dropEntry }) => dropEntry ?? [])]) {
      const name = setName(set, family);
      bySet.set(name, [...(bySet.get(name) ?? []), entryKey(entry)]);
    }
    return [
      ...servers.map((server) =>
        [printServer(server), '->', ...server.destinations.map(({ key }) => key)].join(' '),
      ),
      ...[...bySet].sort().map(([name, entries]) => `${name} ${entries.join(' ')}`),
    ];
  });
}

test('services of every kind', async () => {
  const blocks = SERVICES.map(([title, service, endpoints]) => {
    const ports = service.split(' ').filter((word) => /^(?:\w:)?\d/.test(word));
    const lines = [`a/x 10.96.0.1 ${service}`];
    if (endpoints) lines.push(`a/x-1 of x ${ports.map((port) => port.split('@')[0]).join(' ')} ${endpoints}`);
    return [`# ${title}`, ...lines, ...compiled(lines).map((line) => `  ${line}`), ''].join('\n');
  });
  await expect(blocks.join('\n')).toMatchFileSnapshot('golden/services.txt');
});

test('IPv6, with names of sets cut at 31 bytes', () => {
  const service =
    'a/x fd00:96::1 80/sctp@30080 lb=2001:db8:1::1 ranges=2001:db8::/64,2001:db8:2::2/128 etp=Local affinity=60 hc=32100';
  expect(compiled([service, 'a/x-1 of x 80/sctp | fd00:244::1 node-a'], { family: 'IPv6' })).toEqual([
    '--sctp-service [fd00:96::1]:80 -s rr -p 60 -> [fd00:244::1]:80',
    '--sctp-service [2001:db8:1::1]:80 -s rr -p 60 -> [fd00:244::1]:80',
    '--sctp-service [2001:db8::10]:30080 -s rr -p 60 -> [fd00:244::1]:80',
    'KUBE-6-CLUSTER-IP fd00:96::1,sctp:80',
    'KUBE-6-HEALTH-CHECK-NODE-PORT 32100',
    'KUBE-6-IPVS-IPS fd00:96::1 2001:db8:1::1',
    'KUBE-6-LOAD-BALANCER 2001:db8:1::1,sctp:80',
    'KUBE-6-LOAD-BALANCER-FW 2001:db8:1::1,sctp:80',
    'KUBE-6-LOAD-BALANCER-LOCAL 2001:db8:1::1,sctp:80',
    'KUBE-6-LOAD-BALANCER-SOURCE-CID 2001:db8:1::1,sctp:80,2001:db8::/64 2001:db8:1::1,sctp:80,2001:db8:2::2',
    'KUBE-6-LOAD-BALANCER-SOURCE-IP 2001:db8:1::1,sctp:80,2001:db8:1::1',
    'KUBE-6-LOOP-BACK fd00:244::1,sctp:80,fd00:244::1',
    'KUBE-6-NODE-PORT-LOCAL-SCTP-HAS 2001:db8::10,sctp:30080',
    'KUBE-6-NODE-PORT-SCTP-HASH 2001:db8::10,sctp:30080',
  ]);
});

test.each([
  ['mh', '80 affinity=60', '-t 10.96.0.1:80 -s mh -p 60 -b mh-port -> '],
  ['sh', '80', '-t 10.96.0.1:80 -s sh -> '],
])('the scheduler %s: mh counts ports too', (scheduler, service, server) => {
  expect(compiled([`a/x 10.96.0.1 ${service}`], { options: { scheduler } })[0]).toBe(server.trim());
});

test('where node ports answer nowhere, the rules still know them', () => {
  const service = 'a/x 10.96.0.1 80@30080 hc=32100 lb=203.0.113.1 etp=Local';
  const lines = compiled([service], { options: { nodePortIps: [] } });
  expect(lines.filter((line) => line.includes('30080'))).toEqual([
    'KUBE-NODE-PORT-LOCAL-TCP 30080',
    'KUBE-NODE-PORT-TCP 30080',
  ]);
});

describe('a plan with a range of no bits, which sets refuse: two halves', () => {
  const halves = { IPv4: ['0.0.0.0/1', '128.0.0.0/1'], IPv6: ['::/1', '8000::/1'] };
  const reject: Route = { verdict: 'reject' };

  test.each(FAMILIES)('%s', (family) => {
    const [plan] = planOf(['a/x 10.96.0.1 80'], 'IPv4');
    const address = ip(family === 'IPv4' ? '203.0.113.1' : '2001:db8::1');
    const frontend: Frontend = {
      kind: 'loadBalancerIP',
      address,
      port: 80,
      routes: { pod: reject, node: reject, outside: reject },
      allowedSources: { ranges: [cidr(family === 'IPv4' ? '0.0.0.0/0' : '::/0')], hosts: [] },
    };
    const { members } = compileVirtualServers(
      { ...(plan as ServicePortPlan), frontends: [frontend] },
      { family, scheduler: 'rr', nodePortIps: [], nodeIps: [] },
    );
    const entries = members.filter(({ set }) => set === 'KUBE-LOAD-BALANCER-SOURCE-CIDR');
    expect(entries.map(({ entry }) => entryKey(entry))).toEqual(
      halves[family].map((half) => `${address},tcp:80,${half}`),
    );
  });
});

/** Packets that no service answers: what comes near is named. */
import { expect, test } from 'vitest';
import { explainPackets } from '../../src/explain/packet.ts';
import type { Subject } from '../../src/explain/subject.ts';
import type { ViewSettings } from '../../src/plan/view.ts';
import { service, slice } from '../scenarios/objects.ts';
import { cidr, ip, NODE1, POD_NETWORK, scenario } from '../scenarios/scenario.ts';
import { subjectOf } from './given.ts';

const OBJECTS = [
  service('web', { clusterIP: '10.96.1.1', ports: 'http=80:30080 dns=53/UDP', type: 'NodePort' }),
  slice('web', 'http=8080 dns=53/UDP', 'pod-a', 'pod-c'),
  service('lb', {
    clusterIP: '10.96.1.2',
    ports: '443:30443',
    type: 'LoadBalancer',
    loadBalancerIPs: ['203.0.113.7'],
    externalIPs: ['203.0.113.5', '203.0.113.6'],
  }),
  slice('lb', '8443', 'pod-b'),
];

const SETTINGS: ViewSettings = {
  nodeName: 'node1',
  bindAddress: undefined,
  detectLocal: POD_NETWORK,
  masqueradeAll: false,
  nodePortAddresses: [],
  localhostNodePorts: true,
};

function given(settings: Partial<ViewSettings> = {}, more: Partial<Subject> = {}): Subject {
  const { manifests } = scenario('near', OBJECTS, '');
  return subjectOf({ manifests, settings: { ...SETTINGS, ...settings }, host: NODE1 }, more);
}

test.each<readonly [string, Partial<ViewSettings>, Partial<Subject>, readonly string[]]>([
  [
    '10.96.1.1:81',
    {},
    {},
    [
      'no-such-service-port: 10.96.1.1 is the cluster IP of default/web, which has no port 81/TCP there: it has 80/TCP (http), 53/UDP (dns)',
    ],
  ],
  [
    '10.96.1.1:53',
    {},
    {},
    [
      'no-such-service-port: 10.96.1.1 is the cluster IP of default/web, which has no port 53/TCP there: it has 80/TCP (http), 53/UDP (dns); ask for 10.96.1.1:53/udp',
    ],
  ],
  [
    '203.0.113.7:80',
    {},
    {},
    [
      'no-such-service-port: 203.0.113.7 is the load-balancer IP of default/lb, which has no port 80/TCP there: it has 443/TCP',
    ],
  ],
  [
    '203.0.113.5:443',
    { allowExternalIPs: false },
    {},
    [
      'external-ips-off: 203.0.113.5 is the external IP of default/lb, but external IPs are not served (--feature-gates AllowServiceExternalIPs=false)',
    ],
  ],
  [
    '203.0.113.6:443',
    { bindsAddresses: true, apiServers: [{ ip: ip('203.0.113.6'), port: 6443 }] },
    { mode: 'iptables' },
    [
      'address-reserved: 203.0.113.6 is the external IP of default/lb, but it is an address of the API server, which no Service may take',
    ],
  ],
  [
    '192.0.2.1:30080',
    { nodePortAddresses: [cidr('192.168.100.0/24')] },
    {},
    [
      'node-port-address: 30080/TCP is a node port of default/web, but --nodeport-addresses 192.168.100.0/24 leaves out 192.0.2.1',
    ],
  ],
  [
    '127.0.0.1:30080',
    { localhostNodePorts: false },
    {},
    [
      'no-loopback-node-ports: 30080/TCP is a node port of default/web, but node ports do not answer on 127.0.0.1',
    ],
  ],
  [
    '127.0.0.1:30080',
    {},
    { mode: 'nftables' },
    [
      'no-loopback-node-ports: 30080/TCP is a node port of default/web, but node ports do not answer on 127.0.0.1 in nftables mode',
    ],
  ],
  [
    '198.18.0.10:30080',
    {},
    {},
    [
      'not-node-address: 30080/TCP is a node port of default/web, but 198.18.0.10 is not an address of this node',
    ],
  ],
  ['10.244.1.11:8080', {}, {}, ['endpoint-address: 10.244.1.11 is an endpoint of default/web (pod pod-a)']],
  ['198.18.0.10:80', {}, {}, []],
])('%s', async (to, settings, more, expected) => {
  const [answer] = await explainPackets(given(settings, more), { from: 'node', to });
  expect(answer?.findings.map(({ code, text }) => `${code}: ${text}`)).toEqual(expected);
  expect(answer).toMatchObject({ verdict: 'passed', endpoints: [], leftOut: [] });
});

test('a health-check node port is the proxy itself', async () => {
  const { manifests } = scenario('near', [], '');
  const [web] = scenario(
    'near',
    [service('web', { clusterIP: '10.96.1.1', type: 'LoadBalancer', externalTrafficPolicy: 'Local' })],
    '',
  ).manifests.services;
  if (!web) throw new Error('no service');
  const subject = subjectOf({
    manifests: { ...manifests, services: [{ ...web, healthCheckNodePort: 32_000 }] },
    settings: SETTINGS,
    host: NODE1,
  });
  const [answer] = await explainPackets(subject, { from: 'outside', to: '192.168.100.2:32000' });
  expect(answer?.findings).toMatchObject([
    { code: 'health-check-port', text: '32000/TCP is the health-check node port of default/web' },
  ]);
});

test('where the mode refuses what no service has, the near miss is named too', async () => {
  for (const mode of ['ipvs', 'nftables'] as const) {
    const [answer] = await explainPackets(given({}, { mode }), { from: 'outside', to: '10.96.1.1:81' });
    expect(answer).toMatchObject({ verdict: 'rejected', findings: [{ code: 'no-such-service-port' }] });
    expect(answer?.deviation).toBe(answer?.reason);
  }
});

test('a cluster IP that no service has is dropped by nftables', async () => {
  const subject = given({}, { mode: 'nftables', serviceCidrs: [cidr('10.96.0.0/16')] });
  const [answer] = await explainPackets(subject, { from: 'outside', to: '10.96.77.7:80' });
  expect(answer).toMatchObject({ verdict: 'dropped', findings: [] });
  expect(answer?.reason).toMatch(/the address is in a ServiceCIDR$/);
});

test('a long search pauses', async () => {
  let pauses = 0;
  const pause = (): Promise<void> => {
    pauses++;
    return Promise.resolve();
  };
  const many = Array.from({ length: 200 }, (_, index) =>
    service(`s${index}`, { clusterIP: `10.97.0.${index}` }),
  );
  const { manifests } = scenario('near', many, '');
  const subject = subjectOf({ manifests, settings: SETTINGS, host: NODE1 }, { pause });
  await explainPackets(subject, { from: 'node', to: '10.97.9.9:80' });
  expect(pauses).toBeGreaterThan(2);
});

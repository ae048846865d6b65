/** Packets that no service answers: what comes near is named. */
import { expect, test } from 'vitest';
import { explainPackets } from '../../src/explain/packet.ts';
import type { Subject } from '../../src/explain/subject.ts';
import type { ViewSettings } from '../../src/plan/view.ts';
import { service, slice } from '../scenarios/objects.ts';
import { cidr, ip, NODE1, POD_NETWORK, scenario } from '../scenarios/scenario.ts';
import { subjectOf } from './given.ts';

const [BALANCED] = scenario(
  'near',
  [service('health', { clusterIP: '10.96.1.3', type: 'LoadBalancer', externalTrafficPolicy: 'Local' })],
  '',
).manifests.services;
const { manifests } = scenario(
  'near',
  [
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
  ],
  '',
);
const services = [...manifests.services, ...(BALANCED ? [{ ...BALANCED, healthCheckNodePort: 32_000 }] : [])];

const SETTINGS: ViewSettings = {
  nodeName: 'node1',
  bindAddress: undefined,
  detectLocal: POD_NETWORK,
  masqueradeAll: false,
  nodePortAddresses: [],
  localhostNodePorts: true,
};

async function ask(to: string, settings: Partial<ViewSettings> = {}, more: Partial<Subject> = {}) {
  const given = {
    manifests: { ...manifests, services },
    settings: { ...SETTINGS, ...settings },
    host: NODE1,
  };
  const [answer] = await explainPackets(subjectOf(given, more), { from: 'node', to });
  const findings = answer?.findings.map(({ code, text }) => `${code}: ${text}`);
  return { answer, text: findings?.join() };
}

const RESERVED = { bindsAddresses: true, apiServers: [{ ip: ip('203.0.113.6'), port: 6443 }] };
const NODE_PORT = '30080/TCP is a node port of default/web, but';

test.for<readonly [string, string, Partial<ViewSettings>?, Partial<Subject>?]>([
  [
    '10.96.1.1:81',
    'no-such-service-port: 10.96.1.1 is the cluster IP of default/web, which has no port 81/TCP there: it has 80/TCP (http), 53/UDP (dns)',
  ],
  [
    '10.96.1.1:53',
    'no-such-service-port: 10.96.1.1 is the cluster IP of default/web, which has no port 53/TCP there: it has 80/TCP (http), 53/UDP (dns); ask for 10.96.1.1:53/udp',
  ],
  [
    '203.0.113.7:80',
    'no-such-service-port: 203.0.113.7 is the load-balancer IP of default/lb, which has no port 80/TCP there: it has 443/TCP',
  ],
  [
    '203.0.113.5:443',
    'external-ips-off: 203.0.113.5 is the external IP of default/lb, but external IPs are not served (--feature-gates AllowServiceExternalIPs=false)',
    { allowExternalIPs: false },
  ],
  [
    '203.0.113.6:443',
    'address-reserved: 203.0.113.6 is the external IP of default/lb, but it is an address of the API server, which no Service may take',
    RESERVED,
  ],
  [
    '192.0.2.1:30080',
    `node-port-address: ${NODE_PORT} --nodeport-addresses 192.168.100.0/24 leaves out 192.0.2.1`,
    { nodePortAddresses: [cidr('192.168.100.0/24')] },
  ],
  [
    '127.0.0.1:30080',
    `no-loopback-node-ports: ${NODE_PORT} node ports do not answer on 127.0.0.1`,
    { localhostNodePorts: false },
  ],
  [
    '127.0.0.1:30080',
    `no-loopback-node-ports: ${NODE_PORT} node ports do not answer on 127.0.0.1 in nftables mode`,
    {},
    { mode: 'nftables' },
  ],
  ['198.18.0.10:30080', `not-node-address: ${NODE_PORT} 198.18.0.10 is not an address of this node`],
  ['10.244.1.11:8080', 'endpoint-address: 10.244.1.11 is an endpoint of default/web (pod pod-a)'],
  ['192.168.100.2:32000', 'health-check-port: 32000/TCP is the health-check node port of default/health'],
  ['198.18.0.10:80', ''],
])('%s: %s', async ([to, expected, settings, more]) => {
  const { answer, text } = await ask(to, settings, more);
  expect(text).toBe(expected);
  expect(answer).toMatchObject({ verdict: 'passed', endpoints: [], leftOut: [] });
});

test('where the mode refuses what no service has, the near miss is named too', async () => {
  for (const mode of ['ipvs', 'nftables'] as const) {
    const { answer } = await ask('10.96.1.1:81', {}, { mode });
    expect(answer).toMatchObject({ verdict: 'rejected', findings: [{ code: 'no-such-service-port' }] });
    expect(answer?.deviation).toBe(answer?.reason);
  }
});

test('a cluster IP that no service has is dropped by nftables', async () => {
  const more = { mode: 'nftables', serviceCidrs: [cidr('10.96.0.0/16')] } as const;
  const { answer } = await ask('10.96.77.7:80', {}, more);
  expect(answer).toMatchObject({ verdict: 'dropped', findings: [] });
  expect(answer?.reason).toMatch(/the address is in a ServiceCIDR$/);
});

test('a long search pauses', async () => {
  let pauses = 0;
  const pause = async (): Promise<void> => void pauses++;
  const many = Array.from({ length: 200 }, (_, index) =>
    service(`s${index}`, { clusterIP: `10.97.0.${index}` }),
  );
  const given = { manifests: scenario('near', many, '').manifests, settings: SETTINGS, host: NODE1 };
  await explainPackets(subjectOf(given, { pause }), { from: 'node', to: '10.97.9.9:80' });
  expect(pauses).toBeGreaterThan(2);
});

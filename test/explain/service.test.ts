/** `explain NS/NAME`: every finding, with consequence and cure; all frontends for all kinds of sources. */
import { describe, expect, test } from 'vitest';
import { explainService } from '../../src/explain/service.ts';
import type { Subject } from '../../src/explain/subject.ts';
import type { Finding, ServiceExplanation } from '../../src/explain/types.ts';
import { UNBOUNDED } from '../../src/plan/capacity.ts';
import { type KubernetesObject, service, type ServiceFields, slice, slice6 } from '../scenarios/objects.ts';
import { clusterOf, NOW, refusing } from './given.ts';
import { ask as askPacket, web } from './packets.ts';

function ask(subject: Subject): Promise<ServiceExplanation> {
  return explainService(subject, { service: 'default/web' });
}

const print = ({ severity, code, text }: Finding): string => `${severity} ${code}: ${text}`;

describe('findings', () => {
  const BALANCED = { type: 'LoadBalancer', loadBalancerIPs: ['203.0.113.10'] } as const;
  const NODE_PORT = { type: 'NodePort', ports: 'http=80:30080' } as const;
  const old = (fields: Partial<ServiceFields>): KubernetesObject =>
    service('old', { clusterIP: '10.96.1.2', created: '2025-01-01T00:00:00Z', ...fields });
  const NEW = '2026-01-01T00:00:00Z';

  test.for<readonly [string, readonly KubernetesObject[], Partial<Subject>?]>([
    ['', web({}, 'pod-a')],
    ['', web({ ...BALANCED, sourceRanges: ['192.168.0.0/16', '10.0.0.0/8'] }, 'pod-a')],
    ['error no-endpoints: no EndpointSlice belongs to default/web: its selector matches no pod', web({})],
    [
      'error no-endpoints: the EndpointSlices of default/web are empty',
      [...web({}), slice('web', 'http=80')],
    ],
    [
      'error none-ready: none of the 2 endpoints of default/web is ready (1 not ready, 1 terminating)',
      web({}, 'pod-a not-ready', 'pod-b terminated'),
    ],
    ['error none-ready: the one endpoint of default/web is not ready', web({}, 'pod-a not-ready')],
    [
      'error no-such-port: no endpoint of default/web has the TCP port http',
      [...web({}), slice('web', 'metrics=1', 'pod-a')],
    ],
    [
      'error other-family: default/web has endpoints of the other address family only',
      [...web({}), slice6('web', 'http=1', 'pod-a')],
    ],
    ['info not-ready: 1 endpoint of 2 of default/web is not ready', web({}, 'pod-a', 'pod-c not-ready')],
    [
      'warning terminating-used: no endpoint is ready: 1 terminating one that still serves is used',
      web({}, 'pod-a terminating'),
    ],
    [
      'warning no-such-port: 2 endpoints of default/web have no TCP port http',
      [...web({}, 'pod-a'), slice('web', 'metrics=1', 'pod-b', 'pod-c')],
    ],
    [
      'warning no-local-endpoints: internalTrafficPolicy is Local, and no endpoint of default/web on node1',
      web({ internalTrafficPolicy: 'Local' }, 'pod-c'),
    ],
    [
      'warning no-local-endpoints: externalTrafficPolicy is Local, and no endpoint of default/web on node1',
      web({ ...NODE_PORT, externalTrafficPolicy: 'Local' }, 'pod-c'),
    ],
    [
      'warning ephemeral-node-port: node port 33000 is in the range from which the kernel gives ports',
      web({ type: 'NodePort', ports: 'http=80:33000' }, 'pod-a'),
    ],
    [
      'warning ephemeral-node-port: node port 30080 ',
      web(NODE_PORT, 'pod-a'),
      { ephemeralPorts: { first: 1024, last: 65_535 } },
    ],
    [
      'warning address-of-node: 192.168.100.2 is an address of this node too',
      web({ externalIPs: ['192.168.100.2'] }, 'pod-a'),
    ],
    [
      'info source-ranges: loadBalancerSourceRanges 192.0.2.0/24 shut out this node (192.168.100.2) and pods',
      web({ ...BALANCED, sourceRanges: ['192.0.2.0/24'] }, 'pod-a'),
    ],
    [
      'info no-load-balancer-ip: the load balancer has no address that a proxy serves',
      web({ type: 'LoadBalancer' }, 'pod-a'),
    ],
    [
      'error address-taken: 203.0.113.5:80/TCP belongs to default/old/TCP',
      [
        ...web({ externalIPs: ['203.0.113.5'], created: NEW }, 'pod-a'),
        old({ externalIPs: ['203.0.113.5'] }),
      ],
    ],
    [
      'error address-taken: node port 30080/TCP belongs to default/old/TCP',
      [...web({ ...NODE_PORT, created: NEW }, 'pod-a'), old({ type: 'NodePort', ports: '80:30080' })],
    ],
  ])('%s', async ([expected, objects, facts]) => {
    const subject = clusterOf(objects, {}, facts);
    const { findings } = await ask(subject);
    const begun = findings.map((each) => print(each).slice(0, expected.length));
    expect(begun).toEqual(expected === '' ? [] : [expected]);
    for (const { severity, consequence, cure, text } of findings) {
      expect(consequence).toMatch(/\.$/);
      if (severity !== 'info') expect(cure).toMatch(/kubectl|sysctl/);
      if (consequence !== 'Connections are refused.') continue;
      expect(await askPacket(subject, 'node')).toMatchObject({ verdict: 'rejected', reason: text });
    }
  });

  test('of the kernel, and of capacity', async () => {
    const subject = clusterOf(web({}, 'pod-a', 'pod-b'), { capacity: { ...UNBOUNDED, endpoints: 1 } });
    const answer = await ask(refusing(subject, 'default/web:http/TCP'));
    expect(answer.findings.map(print)).toEqual([
      'warning beyond-capacity: 2 endpoints are in its slices, of which 1 for each port are used: a Service may have 1 endpoint entries (endpoints × ports)',
      'error refused-by-kernel: the kernel refused default/web:http/TCP',
    ]);
    expect(answer.ports).toMatchObject([{ state: 'refused' }]);
  });

  test.each([
    ['headless', 'warning', /without clusterIP: None/],
    ['external-name', 'warning', /kubectl -n default describe service web/],
    [
      'other-proxy',
      'error',
      /^kubectl -n default label service web service.kubernetes.io\/service-proxy-name-$/,
    ],
    ['other-family', 'error', /PreferDualStack/],
    ['no-cluster-ip', 'error', /kubectl/],
    ['invalid', 'error', /kubectl/],
  ] as const)('a service that is not served: %s', async (code, severity, cure) => {
    const unserved = { code, reason: 'it is so', where: 'web.yaml:4' };
    const answer = await ask(clusterOf([], {}, { unserved: () => Promise.resolve(unserved) }));
    const [finding] = answer.findings;
    expect([answer.type, answer.ports, answer.findings.map(print)]).toEqual([
      undefined,
      [],
      [`${severity} ${code}: Service default/web is not served by this proxy: it is so`],
    ]);
    expect(finding?.cure).toMatch(cure);
    expect(finding?.reference?.where).toBe('web.yaml:4');
  });
});

describe('frontends and sources', () => {
  const subject = clusterOf(
    web(
      {
        clusterIP: '10.96.1.1 fd00:96::1',
        type: 'LoadBalancer',
        externalIPs: ['203.0.113.5'],
        loadBalancerIPs: ['203.0.113.10'],
        sourceRanges: ['192.0.2.0/24'],
        externalTrafficPolicy: 'Local',
      },
      'pod-a',
      'pod-c',
    ),
  );

  test('each with each', async () => {
    const { ports, type } = await ask(subject);
    expect([type, ...ports.map(({ family, state }) => `${family} ${state}`)]).toEqual([
      'LoadBalancer',
      'IPv4 ok',
      'IPv6 no endpoints',
    ]);
    expect(
      ports[0]?.packets.map(({ frontend, source, packet, verdict, endpoints }) =>
        `${frontend?.kind} ${source.class} ${packet.source}: ${verdict} ${endpoints.map((each) => `${each.pod}${each.masquerade ? '*' : ''}`).join(' ')}`.trim(),
      ),
    ).toEqual([
      'clusterIP pod 10.244.0.250: forwarded pod-a pod-c',
      'clusterIP node 192.168.100.2: forwarded pod-a* pod-c*',
      'clusterIP outside 198.51.100.1: forwarded pod-a* pod-c*',
      'externalIP pod 10.244.0.250: forwarded pod-a pod-c',
      'externalIP node 192.168.100.2: forwarded pod-a* pod-c*',
      'externalIP outside 198.51.100.1: forwarded pod-a',
      'loadBalancerIP pod 10.244.0.250: dropped',
      'loadBalancerIP node 192.168.100.2: dropped',
      'loadBalancerIP outside 198.51.100.1: dropped',
      'loadBalancerIP outside 192.0.2.250: forwarded pod-a',
      'nodePort pod 10.244.0.250: forwarded pod-a pod-c',
      'nodePort node 192.168.100.2: forwarded pod-a* pod-c*',
      'nodePort outside 198.51.100.1: forwarded pod-a',
    ]);
  });

  test('one port by its number or name', async () => {
    for (const port of ['80', 'http'])
      expect((await explainService(subject, { service: 'default/web', port })).ports).toHaveLength(2);
    await expect(explainService(subject, { service: 'default/web', port: '81' })).rejects.toThrow(
      'has no port "81"',
    );
  });

  test.each([
    [{ mode: 'BridgeInterface', name: 'eth0' }, 'pod eth0, node node, outside ens1'],
    [{ mode: 'InterfaceNamePrefix', prefix: 'veth' }, 'pod veth0, node node, outside eth0'],
    ['none', 'node node, outside eth0'],
  ] as const)('where pods are told by %j', async (detectLocal, expected) => {
    const { ports } = await ask(clusterOf(web({ ports: 'http=80' }, 'pod-a'), { settings: { detectLocal } }));
    const sources = ports[0]?.packets.map(
      ({ source, packet }) => `${source.class} ${packet.inInterface ?? 'node'}`,
    );
    expect(sources?.join(', ')).toBe(expected);
  });

  test('thousands of addresses are not all walked', async () => {
    const externalIPs = Array.from({ length: 300 }, (_, index) => `203.0.${index >> 8}.${index & 255}`);
    const { ports } = await ask(clusterOf(web({ ports: 'http=80', externalIPs }, 'pod-a')));
    expect([ports[0]?.moreFrontends, ports[0]?.packets.length]).toEqual([301 - 12, 12 * 3]);
  });
});

test('endpoints have their flows, and changes are told', async () => {
  const change = {
    id: 1,
    family: 'IPv4',
    service: 'default/web',
    causes: ['Service default/web added'],
    effects: [],
    seenAt: NOW,
    plannedAt: NOW + 1,
  } as const;
  const connectionsOf = () => ({ connections: 7, countedAt: NOW });
  const facts = { changesOf: () => [change], connectionsOf };
  const { ports, changes } = await ask(clusterOf(web({}, 'pod-a', 'pod-c terminating'), {}, facts));
  expect(changes).toEqual([change]);
  expect(ports[0]?.endpoints).toMatchObject([
    { address: '10.244.1.11:8080', pod: 'pod-a', pools: ['cluster'], connections: 7, ready: true },
    { pod: 'pod-c', pools: [], terminating: true, leftOut: { reason: 'terminating' } },
  ]);
});

/** `explain NS/NAME`: every finding, with consequence and cure; all frontends for all kinds of sources. */
import { describe, expect, test } from 'vitest';
import { explainService } from '../../src/explain/service.ts';
import type { Subject, UnservedService } from '../../src/explain/subject.ts';
import type { Finding, ServiceExplanation } from '../../src/explain/types.ts';
import type { ViewSettings } from '../../src/plan/view.ts';
import { ip, NODE1, scenario } from '../scenarios/scenario.ts';
import { UNBOUNDED } from '../../src/plan/capacity.ts';
import { type KubernetesObject, service, type ServiceFields, slice, slice6 } from '../scenarios/objects.ts';
import { clusterOf, NOW, subjectOf } from './given.ts';

function web(fields: Partial<ServiceFields>, ...endpoints: readonly string[]): readonly KubernetesObject[] {
  return [
    service('web', { clusterIP: '10.96.1.1', ports: 'http=80', ...fields }),
    ...(endpoints.length > 0 ? [slice('web', 'http=8080', ...endpoints)] : []),
  ];
}

function ask(subject: Subject): Promise<ServiceExplanation> {
  return explainService(subject, { service: 'default/web' });
}

function print({ severity, code, text }: Finding): string {
  return `${severity} ${code}: ${text}`;
}

describe('findings', () => {
  const BALANCED = { type: 'LoadBalancer', loadBalancerIPs: ['203.0.113.10'] } as const;
  test.each<readonly [string, readonly KubernetesObject[], readonly string[]]>([
    ['nothing is wrong', web({}, 'pod-a'), []],
    [
      'no slices',
      web({}),
      [
        'error no-endpoints: no EndpointSlice belongs to default/web: its selector matches no pod, or it has none',
      ],
    ],
    [
      'all not ready',
      web({}, 'pod-a not-ready', 'pod-c not-ready'),
      ['error none-ready: none of the 2 endpoints of default/web is ready (2 not ready)'],
    ],
    [
      'one not ready',
      web({}, 'pod-a', 'pod-c not-ready'),
      ['info not-ready: 1 endpoint of 2 of default/web is not ready'],
    ],
    [
      'terminating ones are used',
      web({}, 'pod-a terminating'),
      ['warning terminating-used: no endpoint is ready: 1 terminating one that still serves is used'],
    ],
    [
      'no endpoint has the port',
      [...web({}), slice('web', 'metrics=1', 'pod-a')],
      ['error no-such-port: no endpoint of default/web has the TCP port http'],
    ],
    [
      'some endpoints do not have the port',
      [...web({}, 'pod-a'), slice('web', 'metrics=1', 'pod-b', 'pod-c')],
      ['warning no-such-port: 2 endpoints of default/web have no TCP port http'],
    ],
    [
      'endpoints of the other family',
      [...web({}), slice6('web', 'http=1', 'pod-a')],
      ['error other-family: default/web has endpoints of the other address family only'],
    ],
    [
      'Local, and none here, inside',
      web({ internalTrafficPolicy: 'Local' }, 'pod-c'),
      [
        'warning no-local-endpoints: internalTrafficPolicy is Local, and no endpoint of default/web on node1 can serve',
      ],
    ],
    [
      'Local, and none here, outside',
      web({ type: 'NodePort', ports: 'http=80:30080', externalTrafficPolicy: 'Local' }, 'pod-c'),
      [
        'warning no-local-endpoints: externalTrafficPolicy is Local, and no endpoint of default/web on node1 can serve',
      ],
    ],
    [
      'a node port that programs may get',
      web({ type: 'NodePort', ports: 'http=80:33000' }, 'pod-a'),
      [
        'warning ephemeral-node-port: node port 33000 is in the range from which the kernel gives ports to programs',
      ],
    ],
    [
      'an address of the node',
      web({ externalIPs: ['192.168.100.2'] }, 'pod-a'),
      ['warning address-of-node: 192.168.100.2 is an address of this node too'],
    ],
    [
      'source ranges without the node and pods',
      web({ ...BALANCED, sourceRanges: ['192.0.2.0/24'] }, 'pod-a'),
      [
        'info source-ranges: loadBalancerSourceRanges 192.0.2.0/24 shut out this node (192.168.100.2) and pods (10.244.0.0/16)',
      ],
    ],
    [
      'source ranges with both',
      web({ ...BALANCED, sourceRanges: ['192.168.0.0/16', '10.0.0.0/8'] }, 'pod-a'),
      [],
    ],
    [
      'a load balancer without an address',
      web({ type: 'LoadBalancer' }, 'pod-a'),
      ['info no-load-balancer-ip: the load balancer has no address that a proxy serves'],
    ],
    [
      'hints that do not count',
      web({}, 'pod-a zone=east', 'pod-c'),
      [
        'info hints-ignored: zone hints of the endpoints are ignored: 1 of 2 ready endpoints have none, 10.244.2.11:8080 among them',
      ],
    ],
    [
      'another service has the address',
      [
        ...web({ externalIPs: ['203.0.113.5'], created: '2026-01-01T00:00:00Z' }, 'pod-a'),
        service('old', {
          clusterIP: '10.96.1.2',
          externalIPs: ['203.0.113.5'],
          created: '2025-01-01T00:00:00Z',
        }),
      ],
      ['error address-taken: 203.0.113.5:80/TCP belongs to default/old/TCP'],
    ],
    [
      'another service has the node port',
      [
        ...web({ type: 'NodePort', ports: 'http=80:30080', created: '2026-01-01T00:00:00Z' }, 'pod-a'),
        service('old', {
          clusterIP: '10.96.1.2',
          type: 'NodePort',
          ports: '80:30080',
          created: '2025-01-01T00:00:00Z',
        }),
      ],
      ['error address-taken: node port 30080/TCP belongs to default/old/TCP'],
    ],
  ])('%s', async (_, objects, expected) => {
    const { findings } = await ask(clusterOf(objects));
    expect(findings.map(print)).toEqual(expected);
    for (const { severity, consequence, cure } of findings) {
      expect(consequence).toMatch(/\.$/);
      if (severity !== 'info') expect(cure).toMatch(/kubectl|sysctl/);
    }
  });

  test('of the kernel, and of capacity', async () => {
    const subject = clusterOf(web({}, 'pod-a', 'pod-b'), { capacity: { ...UNBOUNDED, endpoints: 1 } });
    const families = subject.families.map((family) => ({
      ...family,
      refused: new Map([['default/web:http/TCP', 'line 7: no']]),
    }));
    const answer = await ask({ ...subject, families });
    expect(answer.findings.map(print)).toEqual([
      'warning beyond-capacity: 2 endpoints are in its slices, of which 1 for each port are used: a Service may have 1 endpoint entries (endpoints × ports)',
      'error refused-by-kernel: the kernel refused default/web:http/TCP',
    ]);
    expect(answer.ports).toMatchObject([{ state: 'refused' }]);
  });

  test("the range of ports that programs get is the machine's", async () => {
    const objects = web({ type: 'NodePort', ports: 'http=80:30080' }, 'pod-a');
    const codes = async (facts: Partial<Subject>): Promise<readonly string[]> =>
      (await ask(clusterOf(objects, {}, facts))).findings.map(({ code }) => code);
    expect(await codes({})).toEqual([]);
    expect(await codes({ ephemeralPorts: { first: 1024, last: 65_535 } })).toEqual(['ephemeral-node-port']);
  });

  test("external IPs that are switched off, or the API server's", async () => {
    const { manifests, settings } = scenario('web', web({ externalIPs: ['203.0.113.5'] }, 'pod-a'), '');
    const codes = async (more: Partial<ViewSettings>): Promise<readonly string[]> =>
      (await ask(subjectOf({ manifests, settings: { ...settings, ...more }, host: NODE1 }))).findings.map(
        ({ code }) => code,
      );
    expect(await codes({})).toEqual([]);
    expect(await codes({ allowExternalIPs: false })).toEqual(['external-ips-off']);
    const apiServers = [{ ip: ip('203.0.113.5'), port: 6443 }];
    expect(await codes({ bindsAddresses: true, apiServers })).toEqual(['address-reserved']);
  });
});

describe('a service that is not served', () => {
  test.each<readonly [UnservedService, string, RegExp]>([
    [
      { code: 'headless', reason: 'it is headless' },
      'warning headless: Service default/web is not served by this proxy: it is headless',
      /without clusterIP: None/,
    ],
    [
      { code: 'external-name', reason: 'it is an ExternalName' },
      'warning external-name: Service default/web is not served by this proxy: it is an ExternalName',
      /kubectl -n default describe service web/,
    ],
    [
      { code: 'other-proxy', reason: 'it is for another proxy', where: 'web.yaml:4' },
      'error other-proxy: Service default/web is not served by this proxy: it is for another proxy',
      /^kubectl -n default label service web service.kubernetes.io\/service-proxy-name-$/,
    ],
    [
      { code: 'other-family', reason: 'it has no IPv4 address' },
      'error other-family: Service default/web is not served by this proxy: it has no IPv4 address',
      /PreferDualStack/,
    ],
    [
      { code: 'no-cluster-ip', reason: 'it has no cluster IP' },
      'error no-cluster-ip: Service default/web is not served by this proxy: it has no cluster IP',
      /kubectl/,
    ],
    [
      { code: 'invalid', reason: 'spec.ports is empty' },
      'error invalid: Service default/web is not served by this proxy: spec.ports is empty',
      /kubectl/,
    ],
  ])('%o', async (unserved, text, cure) => {
    const answer = await ask(clusterOf([], {}, { unserved: () => Promise.resolve(unserved) }));
    expect(answer).toMatchObject({ service: 'default/web', ports: [] });
    expect(answer.type).toBeUndefined();
    expect(answer.findings.map(print)).toEqual([text]);
    expect(answer.findings[0]?.consequence).toMatch(/\.$/);
    expect(answer.findings[0]?.cure).toMatch(cure);
    expect(answer.findings[0]?.reference?.where).toBe(unserved.where);
  });
});

describe('frontends and sources', () => {
  const subject = clusterOf(
    web(
      {
        clusterIP: '10.96.1.1 fd00:96::1',
        type: 'LoadBalancer',
        ports: 'http=80:30080',
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
    expect(type).toBe('LoadBalancer');
    const [ipv4, ipv6] = ports;
    expect([ipv4?.family, ipv6?.family, ipv4?.state, ipv6?.state]).toEqual([
      'IPv4',
      'IPv6',
      'ok',
      'no endpoints',
    ]);
    expect(
      ipv4?.packets.map(({ frontend, source, packet, verdict, endpoints }) =>
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

  test('by interface, where pods are told by it; and no pods where they are not told', async () => {
    const classes = async (
      detectLocal: NonNullable<Parameters<typeof clusterOf>[1]>['settings'],
    ): Promise<readonly string[]> => {
      const { ports } = await ask(clusterOf(web({}, 'pod-a'), { settings: { ...detectLocal } }));
      return (ports[0]?.packets ?? []).map(
        ({ source, packet }) => `${source.class} ${packet.inInterface ?? 'node'}`,
      );
    };
    expect(await classes({ detectLocal: { mode: 'BridgeInterface', name: 'eth0' } })).toEqual([
      'pod eth0',
      'node node',
      'outside ens1',
    ]);
    expect(await classes({ detectLocal: { mode: 'InterfaceNamePrefix', prefix: 'veth' } })).toEqual([
      'pod veth0',
      'node node',
      'outside eth0',
    ]);
    expect(await classes({ detectLocal: 'none' })).toEqual(['node node', 'outside eth0']);
  });

  test('thousands of addresses are not all walked', async () => {
    const externalIPs = Array.from({ length: 300 }, (_, index) => `203.0.${index >> 8}.${index & 255}`);
    const { ports } = await ask(clusterOf(web({ externalIPs }, 'pod-a')));
    expect(ports[0]?.moreFrontends).toBe(301 - 12);
    expect(ports[0]?.packets).toHaveLength(12 * 3);
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
  const subject = clusterOf(
    web({}, 'pod-a', 'pod-c terminating'),
    {},
    {
      changesOf: () => [change],
      connectionsOf: () => ({ connections: 7, countedAt: NOW }),
    },
  );
  const { ports, changes } = await ask(subject);
  expect(changes).toEqual([change]);
  expect(ports[0]?.endpoints).toMatchObject([
    { address: '10.244.1.11:8080', pod: 'pod-a', pools: ['cluster'], connections: 7, ready: true },
    {
      address: '10.244.2.11:8080',
      pod: 'pod-c',
      pools: [],
      terminating: true,
      leftOut: { reason: 'terminating' },
    },
  ]);
});

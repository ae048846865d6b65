/** What explain says of a packet: each reason for which an endpoint is chosen, masqueraded or left out. */
import { describe, expect, test } from 'vitest';
import { explainPacket, explainPackets } from '../../src/explain/packet.ts';
import { resolvePackets } from '../../src/explain/resolve.ts';
import type { Subject } from '../../src/explain/subject.ts';
import type { PacketExplanation } from '../../src/explain/types.ts';
import { UNBOUNDED } from '../../src/plan/capacity.ts';
import { type KubernetesObject, service, type ServiceFields, slice, slice6 } from '../scenarios/objects.ts';
import type { ScenarioSettings } from '../scenarios/scenario.ts';
import { clusterOf } from './given.ts';

const CLUSTER_IP = '10.96.1.1';

/** One service, `default/web`, with these endpoints. */
function web(fields: Partial<ServiceFields>, ...endpoints: readonly string[]): readonly KubernetesObject[] {
  return [
    service('web', { clusterIP: CLUSTER_IP, ports: 'http=80:30080', ...fields }),
    ...(endpoints.length > 0 ? [slice('web', 'http=8080', ...endpoints)] : []),
  ];
}

async function ask(subject: Subject, from: string, to = `${CLUSTER_IP}:80`): Promise<PacketExplanation> {
  const [answer] = await explainPackets(subject, { from, to });
  if (!answer) throw new Error('no answer');
  return answer;
}

function codesOf({ findings }: PacketExplanation): readonly string[] {
  return findings.map(({ code }) => code);
}

function leftOutOf({ leftOut }: PacketExplanation): readonly string[] {
  return leftOut.map(({ pod, reason, text }) => `${pod ?? '?'} ${reason}: ${text}`);
}

describe('an endpoint is left out', () => {
  interface LeftOutCase {
    readonly name: string;
    readonly objects: readonly KubernetesObject[];
    readonly settings?: ScenarioSettings;
    readonly from?: string;
    readonly to?: string;
    readonly left: readonly string[];
  }
  const cases: readonly LeftOutCase[] = [
    {
      name: 'not ready',
      objects: web({}, 'pod-a', 'pod-b not-ready', 'pod-c serving-only'),
      left: ['pod-b not-ready: not ready', 'pod-c not-ready: not ready'],
    },
    {
      name: 'terminating',
      objects: web({}, 'pod-a', 'pod-b terminating', 'pod-c terminated'),
      left: [
        'pod-b terminating: terminating: used only while no endpoint is ready',
        'pod-c terminating: terminating, and no longer serving',
      ],
    },
    {
      name: 'in another zone',
      objects: web({}, 'pod-a zone=east', 'pod-c zone=west', 'pod-d zone=west zone=north'),
      settings: { zone: 'east' },
      left: [
        'pod-c other-zone: its hint is for zone west, and this node is in zone east',
        'pod-d other-zone: its hint is for zone west, north, and this node is in zone east',
      ],
    },
    {
      name: 'hinted to another node',
      objects: web({}, 'pod-a node=node1', 'pod-c node=node2'),
      left: ['pod-c other-node-hint: its hint is for node node2'],
    },
    {
      name: 'not local, of the cluster IP',
      objects: web({ internalTrafficPolicy: 'Local' }, 'pod-a', 'pod-c', 'pod-d no-node'),
      left: [
        'pod-c not-local: on node2, and the policy is Local',
        'pod-d not-local: on no known node, and the policy is Local',
      ],
    },
    {
      name: 'not local, of a node port',
      objects: web(
        { type: 'NodePort', externalTrafficPolicy: 'Local' },
        'pod-a',
        'pod-b terminating',
        'pod-c',
      ),
      from: 'outside',
      to: '192.168.100.2:30080',
      left: [
        'pod-b terminating: terminating: used only while no endpoint on this node is ready',
        'pod-c not-local: on node2, and the policy is Local',
      ],
    },
    {
      name: 'of a slice without the port',
      objects: [...web({}, 'pod-a'), slice('web', 'metrics=9090', 'pod-a', 'pod-b')],
      left: ['pod-b no-such-port: its EndpointSlice has no TCP port http'],
    },
    {
      name: 'of the other family',
      objects: [...web({}), slice6('web', 'http=8080', 'pod-a')],
      left: ["pod-a wrong-family: its address is IPv6, and the frontend's IPv4"],
    },
  ];

  test.each(cases)('$name', async ({ objects, settings, from = 'node', to, left }) => {
    const answer = await ask(clusterOf(objects, settings && { settings }), from, to);
    expect(leftOutOf(answer)).toEqual(left);
  });

  test('beyond the capacity', async () => {
    const capacity = { ...UNBOUNDED, endpoints: 2 };
    const subject = clusterOf(web({}, 'pod-a', 'pod-b', 'pod-c'), { capacity });
    const answer = await ask(subject, 'node');
    expect(answer.endpoints.map(({ pod }) => pod)).toEqual(['pod-a', 'pod-b']);
    expect(leftOutOf(answer)).toEqual([
      'pod-c beyond-capacity: the service has more endpoints than this mode serves',
    ]);
  });

  test('with its name, node and address', async () => {
    const { leftOut } = await ask(clusterOf(web({}, 'pod-a', 'pod-c not-ready')), 'node');
    expect(leftOut).toMatchObject([
      { address: '10.244.2.11:8080', pod: 'pod-c', node: 'node2', isLocal: false, reason: 'not-ready' },
    ]);
  });
});

describe('an endpoint is chosen', () => {
  test('each with its probability', async () => {
    const { verdict, endpoints, pool } = await ask(
      clusterOf(web({}, 'pod-a', 'pod-b', 'pod-c', 'pod-d')),
      'node',
    );
    expect({ verdict, pool }).toEqual({ verdict: 'forwarded', pool: 'cluster' });
    expect(
      endpoints.map(({ pod, node, isLocal, probability }) => ({ pod, node, isLocal, probability })),
    ).toEqual([
      { pod: 'pod-a', node: 'node1', isLocal: true, probability: 0.25 },
      { pod: 'pod-b', node: 'node1', isLocal: true, probability: 0.25 },
      { pod: 'pod-c', node: 'node2', isLocal: false, probability: 0.25 },
      { pod: 'pod-d', node: 'node2', isLocal: false, probability: 0.25 },
    ]);
  });

  test('a terminating one, where none is ready', async () => {
    const answer = await ask(clusterOf(web({}, 'pod-a terminating', 'pod-c not-ready')), 'node');
    expect(answer.endpoints.map(({ pod }) => pod)).toEqual(['pod-a']);
    expect(answer.findings).toMatchObject([
      {
        code: 'terminating-used',
        severity: 'warning',
        text: 'no endpoint is ready: 1 terminating one that still serves is used',
      },
    ]);
  });

  test('affinity is said', async () => {
    expect(await ask(clusterOf(web({ affinitySeconds: 600 }, 'pod-a')), 'node')).toMatchObject({
      affinitySeconds: 600,
    });
  });
});

describe('hints are ignored', () => {
  test.each<readonly [string, ScenarioSettings, readonly string[], string]>([
    [
      'one has none',
      { zone: 'east' },
      ['pod-a zone=east', 'pod-c'],
      'zone hints of the endpoints are ignored: 1 of 2 ready endpoints have none, 10.244.2.11:8080 among them',
    ],
    [
      'none is for here',
      { zone: 'east' },
      ['pod-a zone=west', 'pod-c zone=west'],
      'zone hints of the endpoints are ignored: none of them is for zone east, where this node is',
    ],
    [
      'the node has no zone',
      {},
      ['pod-a zone=west'],
      'zone hints of the endpoints are ignored: none of them is for no zone (its Node has no label topology.kubernetes.io/zone), where this node is',
    ],
    [
      'one has no node',
      {},
      ['pod-a node=node1', 'pod-c'],
      'node hints of the endpoints are ignored: 1 of 2 ready endpoints have none, 10.244.2.11:8080 among them',
    ],
    [
      'none is for this node',
      {},
      ['pod-a node=node2'],
      'node hints of the endpoints are ignored: none of them is for node1, which is this node',
    ],
  ])('%s', async (_, settings, endpoints, text) => {
    const answer = await ask(clusterOf(web({}, ...endpoints), { settings }), 'node');
    expect(answer.findings).toMatchObject([{ code: 'hints-ignored', severity: 'info', text }]);
  });

  test('not where they count, or where there are none', async () => {
    const settings = { zone: 'east' };
    expect(
      codesOf(await ask(clusterOf(web({}, 'pod-a zone=east', 'pod-c zone=west'), { settings }), 'node')),
    ).toEqual([]);
    expect(codesOf(await ask(clusterOf(web({}, 'pod-a', 'pod-c'), { settings }), 'node'))).toEqual([]);
  });
});

describe('masqueraded or not, and why', () => {
  const LOCAL = { type: 'NodePort', externalTrafficPolicy: 'Local' } as const;
  interface MasqueradeCase {
    readonly from: string;
    readonly to?: string;
    readonly fields?: Partial<ServiceFields>;
    readonly settings?: ScenarioSettings;
    readonly masquerade: boolean;
    readonly why: string;
  }
  const cases: readonly MasqueradeCase[] = [
    { from: 'outside', masquerade: true, why: 'the source is outside the pod network' },
    { from: 'node', masquerade: true, why: 'sent by this node, which is outside the pod network' },
    { from: '10.244.1.12', masquerade: false, why: 'the source is in the pod network' },
    { from: '10.244.1.12', settings: { masqueradeAll: true }, masquerade: true, why: '--masquerade-all' },
    {
      from: 'outside',
      settings: { detectLocal: 'none' },
      masquerade: false,
      why: 'no pod network is configured, so no source is masqueraded',
    },
    {
      from: '10.244.1.11',
      masquerade: true,
      why: 'it dials itself (hairpin), and would answer itself directly',
    },
    {
      from: 'outside',
      to: '192.168.100.2:30080',
      fields: { type: 'NodePort' },
      masquerade: true,
      why: 'externalTrafficPolicy: Cluster: replies have to come back through this node',
    },
    {
      from: 'outside',
      to: '192.168.100.2:30080',
      fields: LOCAL,
      masquerade: false,
      why: "externalTrafficPolicy: Local keeps the client's address",
    },
    {
      from: '10.244.1.12',
      to: '192.168.100.2:30080',
      fields: LOCAL,
      masquerade: false,
      why: "externalTrafficPolicy: Local keeps the pod's address",
    },
    {
      from: 'node',
      to: '192.168.100.2:30080',
      fields: LOCAL,
      masquerade: true,
      why: 'sent by this node itself: replies have to come back to it',
    },
  ];

  test.each(cases)('from $from: $why', async ({ from, to, fields = {}, settings, masquerade, why }) => {
    const { endpoints } = await ask(clusterOf(web(fields, 'pod-a'), settings && { settings }), from, to);
    expect(endpoints).toMatchObject([{ pod: 'pod-a', masquerade, masqueradeReason: why }]);
  });

  test('an endpoint in the network of the node', async () => {
    const { endpoints } = await ask(clusterOf(web({}, 'node1')), 'outside');
    expect(endpoints).toMatchObject([
      {
        masquerade: false,
        masqueradeReason: 'it is in the network of this node, where nothing rewrites the source',
      },
    ]);
  });
});

describe('the source', () => {
  test.each<readonly [string, ScenarioSettings, string, string]>([
    ['10.244.1.12', {}, 'pod', 'in --cluster-cidr 10.244.0.0/16'],
    ['198.18.0.10', {}, 'outside', 'not in --cluster-cidr 10.244.0.0/16, no address of this node'],
    ['node', {}, 'node', 'an address of this node'],
    ['127.0.0.1', {}, 'node', 'a loopback address'],
    [
      '10.244.1.12',
      { detectLocal: { mode: 'NodeCIDR' } },
      'pod',
      'in the podCIDR of this Node, 10.244.1.0/24',
    ],
    [
      '10.244.2.12',
      { detectLocal: { mode: 'NodeCIDR' } },
      'outside',
      'not in the podCIDR of this Node, 10.244.1.0/24, no address of this node',
    ],
    [
      '10.9.9.9%cni0',
      { detectLocal: { mode: 'BridgeInterface', name: 'cni0' } },
      'pod',
      'came in through cni0 (--pod-bridge-interface)',
    ],
    [
      '10.9.9.9%eth1',
      { detectLocal: { mode: 'BridgeInterface', name: 'cni0' } },
      'outside',
      'came in through eth1, not cni0 (--pod-bridge-interface), no address of this node',
    ],
    [
      '10.9.9.9%veth7',
      { detectLocal: { mode: 'InterfaceNamePrefix', prefix: 'veth' } },
      'pod',
      'came in through veth7 (--pod-interface-name-prefix veth)',
    ],
    [
      '10.9.9.9%eth1',
      { detectLocal: { mode: 'InterfaceNamePrefix', prefix: 'veth' } },
      'outside',
      'came in through eth1, not veth… (--pod-interface-name-prefix), no address of this node',
    ],
    [
      '10.9.9.9',
      { detectLocal: 'none' },
      'outside',
      'no --cluster-cidr is set, so no source is known as a pod, no address of this node',
    ],
  ])('%s', async (from, settings, sourceClass, why) => {
    const { source } = await ask(clusterOf(web({}, 'pod-a'), { settings }), from);
    expect(source).toEqual({ class: sourceClass, why });
  });

  test('a pod of another node has its own proxy', async () => {
    const answer = await ask(clusterOf(web({}, 'pod-a', 'pod-c')), 'pod/default/pod-c');
    expect(answer.findings).toMatchObject([
      { code: 'other-node', text: 'the source pod-c is on node2, whose own proxy handles what it sends' },
    ]);
  });
});

describe('refused or dropped', () => {
  const BALANCED = {
    type: 'LoadBalancer',
    loadBalancerIPs: ['203.0.113.10'],
    sourceRanges: ['192.0.2.0/24'],
  } as const;

  test('by source ranges, with the field and where it would go', async () => {
    const subject = clusterOf(
      web(BALANCED, 'pod-a'),
      {},
      { locate: (object, field) => `web.yaml:${object.length + field.length}` },
    );
    const answer = await ask(subject, '198.18.0.10', '203.0.113.10:80');
    expect(answer).toMatchObject({
      verdict: 'dropped',
      reason: 'loadBalancerSourceRanges 192.0.2.0/24 do not contain 198.18.0.10',
      frontend: { kind: 'loadBalancerIP', service: 'default/web', policy: 'externalTrafficPolicy: Cluster' },
      endpoints: [],
      ifAllowed: { condition: 'if allowed', endpoints: [{ pod: 'pod-a', masquerade: true }] },
    });
    expect(answer.findings[0]).toMatchObject({
      code: 'source-not-allowed',
      severity: 'error',
      cure: `kubectl -n default patch service web --type=json -p '[{"op":"add","path":"/spec/loadBalancerSourceRanges/-","value":"198.18.0.10/32"}]'`,
      reference: {
        object: 'Service default/web',
        field: 'spec.loadBalancerSourceRanges',
        where: 'web.yaml:48',
      },
    });
  });

  test('for want of local endpoints', async () => {
    const subject = clusterOf(web({ type: 'NodePort', externalTrafficPolicy: 'Local' }, 'pod-c', 'pod-d'));
    const answer = await ask(subject, 'outside', '192.168.100.2:30080');
    expect(answer).toMatchObject({
      verdict: 'dropped',
      reason: 'externalTrafficPolicy is Local, and no endpoint of default/web on node1 can serve',
      ifAllowed: {
        condition: 'with externalTrafficPolicy: Cluster',
        endpoints: [{ pod: 'pod-c', probability: 0.5, masquerade: true }, { pod: 'pod-d' }],
      },
    });
    expect(answer.findings[0]).toMatchObject({
      code: 'no-local-endpoints',
      evidence: 'ready endpoints are on node2',
      cure: `kubectl -n default patch service web -p '{"spec":{"externalTrafficPolicy":"Cluster"}}'`,
    });
    expect(leftOutOf(answer)).toHaveLength(2);
  });

  test('for want of local endpoints at the cluster IP, which no other frontend needs', async () => {
    const subject = clusterOf(web({ ports: 'http=80', internalTrafficPolicy: 'Local' }, 'pod-c'));
    expect(await ask(subject, '10.244.1.12')).toMatchObject({
      verdict: 'dropped',
      findings: [{ code: 'no-local-endpoints' }],
      ifAllowed: {
        condition: 'with internalTrafficPolicy: Cluster',
        endpoints: [{ pod: 'pod-c', masquerade: false }],
      },
    });
  });

  test.each<readonly [string, readonly KubernetesObject[], string, RegExp]>([
    ['no slices', web({}), 'no-endpoints', /^no EndpointSlice belongs to default\/web/],
    [
      'empty slices',
      [...web({}), slice('web', 'http=80')],
      'no-endpoints',
      /^the EndpointSlices of default\/web are empty/,
    ],
    [
      'none ready',
      web({}, 'pod-a not-ready', 'pod-b terminated'),
      'none-ready',
      /^none of the 2 endpoints of default\/web is ready \(1 not ready, 1 terminating\)$/,
    ],
    [
      'one, not ready',
      web({}, 'pod-a not-ready'),
      'none-ready',
      /^the one endpoint of default\/web is not ready$/,
    ],
    [
      'no such port',
      [...web({}), slice('web', 'other=80', 'pod-a')],
      'no-such-port',
      /^no endpoint of default\/web has the TCP port http$/,
    ],
    [
      'the other family',
      [...web({}), slice6('web', 'http=80', 'pod-a')],
      'other-family',
      /^default\/web has endpoints of the other address family only$/,
    ],
  ])('%s', async (_, objects, code, text) => {
    const answer = await ask(clusterOf(objects), 'node');
    expect(answer.verdict).toBe('rejected');
    expect(answer.findings[0]).toMatchObject({
      code,
      severity: 'error',
      consequence: 'Connections are refused.',
    });
    expect(answer.findings[0]?.text).toMatch(text);
    expect(answer.findings[0]?.cure).toMatch(/kubectl -n default /);
    expect(answer.reason).toMatch(text);
  });

  test('where it would go with another policy, it says why it is masqueraded', async () => {
    const subject = clusterOf(web({ type: 'NodePort', externalTrafficPolicy: 'Local' }, 'pod-c'));
    const { ifAllowed } = await ask(subject, 'outside', '192.168.100.2:30080');
    expect(ifAllowed?.endpoints[0]?.masqueradeReason).toBe(
      'externalTrafficPolicy: Cluster: replies have to come back through this node',
    );
  });

  test('a service that changes between the plan and its inputs is asked for again', async () => {
    const subject = clusterOf(web({}, 'pod-a'));
    const families = subject.families.map((family) => ({ ...family, portsOf: () => [] }));
    await expect(ask({ ...subject, families }, 'node')).rejects.toThrow(
      'Service default/web changes just now',
    );
  });

  test('as the mode does it', async () => {
    const subject = clusterOf(web(BALANCED), { mode: 'nftables' });
    expect(await ask(subject, '198.18.0.10', '203.0.113.10:80')).toMatchObject({
      verdict: 'dropped',
      findings: [{ code: 'source-not-allowed' }, { code: 'no-endpoints' }],
      deviation:
        'in nftables mode source ranges are checked before the refusal for want of endpoints, as with kube-proxy',
    });
  });
});

describe('the frontend', () => {
  test('another service wants it too', async () => {
    const subject = clusterOf([
      service('old', {
        clusterIP: '10.96.1.2',
        externalIPs: ['203.0.113.5'],
        created: '2025-01-01T00:00:00Z',
      }),
      service('new', {
        clusterIP: '10.96.1.3',
        externalIPs: ['203.0.113.5'],
        created: '2026-01-01T00:00:00Z',
      }),
      slice('old', '8080', 'pod-a'),
    ]);
    const answer = await ask(subject, 'outside', '203.0.113.5:80');
    expect(answer.frontend).toMatchObject({ kind: 'externalIP', service: 'default/old' });
    expect(answer.findings).toMatchObject([
      {
        code: 'address-shared',
        text: 'default/new/TCP asked for this address and port too, and did not get it',
      },
    ]);
  });

  test('is an address of the node', async () => {
    const subject = clusterOf(web({ externalIPs: ['192.168.100.2'] }, 'pod-a'));
    expect(codesOf(await ask(subject, 'outside', '192.168.100.2:80'))).toEqual(['address-of-node']);
  });

  test('is refused by the kernel', async () => {
    const subject = clusterOf(web({}, 'pod-a'));
    const families = subject.families.map((family) => ({
      ...family,
      refused: new Map([['default/web:http/TCP', 'ENOSPC']]),
    }));
    expect((await ask({ ...subject, families }, 'node')).findings).toMatchObject([
      { code: 'refused-by-kernel', evidence: 'ENOSPC' },
    ]);
  });
});

test('many endpoints are counted, not listed', async () => {
  const many = Array.from({ length: 12 }, (_, index) =>
    slice('web', `http=${8000 + index}`, 'pod-a', 'pod-b', 'pod-c not-ready'),
  );
  const subject = clusterOf([...web({}), ...many]);
  const all = await ask(subject, 'node');
  expect([all.endpoints.length, all.leftOut.length, all.unlisted]).toEqual([24, 12, undefined]);
  const asked = await resolvePackets(subject, { from: 'node', to: `${CLUSTER_IP}:80` });
  for (const each of asked) {
    const some = await explainPacket(subject, each, { most: 5 });
    expect([some.endpoints.length, some.leftOut.length]).toEqual([5, 5]);
    expect(some.unlisted).toEqual({ endpoints: 19, leftOut: 7 });
    expect(some.endpoints[0]?.probability).toBe(1 / 24);
  }
});

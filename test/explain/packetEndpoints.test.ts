/** What explain says of the endpoints of a packet: each reason for which one is chosen or left out. */
import { describe, expect, test } from 'vitest';
import { explainPacket } from '../../src/explain/packet.ts';
import { resolvePackets } from '../../src/explain/resolve.ts';
import { UNBOUNDED } from '../../src/plan/capacity.ts';
import { type KubernetesObject, slice, slice6 } from '../scenarios/objects.ts';
import type { ScenarioSettings } from '../scenarios/scenario.ts';
import { clusterOf } from './given.ts';
import { ask, CLUSTER_IP, codesOf, leftOutOf, web } from './packets.ts';

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

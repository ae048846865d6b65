/** What explain says of the endpoints of a packet: each reason for which one is chosen or left out. */
import { describe, expect, test } from 'vitest';
import { explainPacket } from '../../src/explain/packet.ts';
import { resolvePackets } from '../../src/explain/resolve.ts';
import { UNBOUNDED } from '../../src/plan/capacity.ts';
import { type KubernetesObject, slice, slice6 } from '../scenarios/objects.ts';
import { clusterOf } from './given.ts';
import { ask, CLUSTER_IP, codesOf, leftOutOf, web } from './packets.ts';

const EAST = { settings: { zone: 'east' } };
const HERE = '192.168.100.2:30080';

describe('left out', () => {
  test.for<readonly [string, readonly KubernetesObject[], Parameters<typeof clusterOf>[1]?, string?]>([
    ['pod-b not-ready: not ready', web({}, 'pod-a', 'pod-b not-ready')],
    ['pod-c not-ready: not ready', web({}, 'pod-a', 'pod-c serving-only')],
    [
      'pod-b terminating: terminating: used only while no endpoint is ready',
      web({}, 'pod-a', 'pod-b terminating'),
    ],
    ['pod-c terminating: terminating, and no longer serving', web({}, 'pod-a', 'pod-c terminated')],
    [
      'pod-d other-zone: its hint is for zone west, north, and this node is in zone east',
      web({}, 'pod-a zone=east', 'pod-d zone=west zone=north'),
      EAST,
    ],
    ['pod-c other-node-hint: its hint is for node node2', web({}, 'pod-a node=node1', 'pod-c node=node2')],
    [
      'pod-c not-local: on node2, and the policy is Local',
      web({ internalTrafficPolicy: 'Local' }, 'pod-a', 'pod-c'),
    ],
    [
      'pod-d not-local: on no known node, and the policy is Local',
      web({ internalTrafficPolicy: 'Local' }, 'pod-a', 'pod-d no-node'),
    ],
    [
      'pod-b terminating: terminating: used only while no endpoint on this node is ready',
      web({ type: 'NodePort', externalTrafficPolicy: 'Local' }, 'pod-a', 'pod-b terminating'),
      {},
      HERE,
    ],
    [
      'pod-b no-such-port: its EndpointSlice has no TCP port http',
      [...web({}, 'pod-a'), slice('web', 'metrics=9090', 'pod-a', 'pod-b')],
    ],
    [
      "pod-a wrong-family: its address is IPv6, and the frontend's IPv4",
      [...web({}), slice6('web', 'http=8080', 'pod-a')],
    ],
    [
      'pod-c beyond-capacity: the service has more endpoints than this mode serves',
      web({}, 'pod-a', 'pod-b', 'pod-c'),
      { capacity: { ...UNBOUNDED, endpoints: 2 } },
    ],
  ])('%s', async ([left, objects, options, to]) => {
    const answer = await ask(clusterOf(objects, options), to === undefined ? 'node' : 'outside', to);
    expect(leftOutOf(answer)).toEqual([left]);
  });

  test('with its name, node and address', async () => {
    const { leftOut } = await ask(clusterOf(web({}, 'pod-a', 'pod-c not-ready')), 'node');
    expect(leftOut).toMatchObject([
      { address: '10.244.2.11:8080', pod: 'pod-c', node: 'node2', isLocal: false, reason: 'not-ready' },
    ]);
  });
});

test('chosen, each with its probability; affinity is said', async () => {
  const answer = await ask(clusterOf(web({ affinitySeconds: 600 }, 'pod-a', 'pod-c')), 'node');
  expect(answer).toMatchObject({
    verdict: 'forwarded',
    pool: 'cluster',
    affinitySeconds: 600,
    endpoints: [
      { pod: 'pod-a', node: 'node1', isLocal: true, probability: 0.5 },
      { pod: 'pod-c', node: 'node2', isLocal: false, probability: 0.5 },
    ],
  });
});

describe('hints are ignored', () => {
  test.for<readonly [string, readonly string[], typeof EAST?]>([
    [
      'zone hints of the endpoints are ignored: 1 of 2 ready endpoints have none, 10.244.2.11:8080 among them',
      ['pod-a zone=east', 'pod-c'],
      EAST,
    ],
    [
      'zone hints of the endpoints are ignored: none of them is for zone east, where this node is',
      ['pod-a zone=west', 'pod-c zone=west'],
      EAST,
    ],
    [
      'zone hints of the endpoints are ignored: none of them is for no zone (its Node has no label topology.kubernetes.io/zone), where this node is',
      ['pod-a zone=west'],
    ],
    [
      'node hints of the endpoints are ignored: none of them is for node1, which is this node',
      ['pod-a node=node2'],
    ],
  ])('%s', async ([text, endpoints, options]) => {
    const answer = await ask(clusterOf(web({}, ...endpoints), options), 'node');
    expect(answer.findings).toMatchObject([{ code: 'hints-ignored', severity: 'info', text }]);
  });

  test('not where they count', async () => {
    const subject = clusterOf(web({}, 'pod-a zone=east', 'pod-c zone=west'), EAST);
    expect(codesOf(await ask(subject, 'node'))).toEqual([]);
  });
});

test('many endpoints are counted, not listed', async () => {
  const many = Array.from({ length: 12 }, (_, index) =>
    slice('web', `http=${8000 + index}`, 'pod-a', 'pod-b', 'pod-c not-ready'),
  );
  const subject = clusterOf([...web({}), ...many]);
  const all = await ask(subject, 'node');
  expect([all.endpoints.length, all.leftOut.length, all.unlisted]).toEqual([24, 12, undefined]);
  for (const each of await resolvePackets(subject, { from: 'node', to: `${CLUSTER_IP}:80` })) {
    const some = await explainPacket(subject, each, { most: 5 });
    expect([some.endpoints.length, some.leftOut.length]).toEqual([5, 5]);
    expect(some.unlisted).toEqual({ endpoints: 19, leftOut: 7 });
    expect(some.endpoints[0]?.probability).toBe(1 / 24);
  }
});

/** What explain says of the source of a packet: its class, and whether it is masqueraded. */
import { describe, expect, test } from 'vitest';
import type { ServiceFields } from '../scenarios/objects.ts';
import type { ScenarioSettings } from '../scenarios/scenario.ts';
import { clusterOf } from './given.ts';
import { ask, web } from './packets.ts';

describe('the source', () => {
  const NODE_CIDR = { mode: 'NodeCIDR' } as const;
  const BRIDGE = { mode: 'BridgeInterface', name: 'cni0' } as const;
  const PREFIX = { mode: 'InterfaceNamePrefix', prefix: 'veth' } as const;
  const OTHER = 'no address of this node';
  test.each<readonly [string, ScenarioSettings['detectLocal'], string]>([
    ['10.244.1.12', undefined, 'pod: in --cluster-cidr 10.244.0.0/16'],
    ['198.18.0.10', undefined, `outside: not in --cluster-cidr 10.244.0.0/16, ${OTHER}`],
    ['node', undefined, 'node: an address of this node'],
    ['127.0.0.1', undefined, 'node: a loopback address'],
    ['10.244.1.12', NODE_CIDR, 'pod: in the podCIDR of this Node, 10.244.1.0/24'],
    ['10.244.2.12', NODE_CIDR, `outside: not in the podCIDR of this Node, 10.244.1.0/24, ${OTHER}`],
    ['10.9.9.9%cni0', BRIDGE, 'pod: came in through cni0 (--pod-bridge-interface)'],
    ['10.9.9.9%eth1', BRIDGE, `outside: came in through eth1, not cni0 (--pod-bridge-interface), ${OTHER}`],
    ['10.9.9.9%veth7', PREFIX, 'pod: came in through veth7 (--pod-interface-name-prefix veth)'],
    [
      '10.9.9.9%eth1',
      PREFIX,
      `outside: came in through eth1, not veth… (--pod-interface-name-prefix), ${OTHER}`,
    ],
    ['10.9.9.9', 'none', `outside: no --cluster-cidr is set, so no source is known as a pod, ${OTHER}`],
  ])('%s, pods by %j', async (from, detectLocal, expected) => {
    const settings = detectLocal && { detectLocal };
    const { source } = await ask(clusterOf(web({}, 'pod-a'), settings && { settings }), from);
    expect(`${source.class}: ${source.why}`).toBe(expected);
  });

  test('a pod of another node has its own proxy', async () => {
    const answer = await ask(clusterOf(web({}, 'pod-a', 'pod-c')), 'pod/default/pod-c');
    expect(answer.findings).toMatchObject([
      { code: 'other-node', text: 'the source pod-c is on node2, whose own proxy handles what it sends' },
    ]);
  });
});

describe('masqueraded or not, and why', () => {
  const NODE_PORT = { type: 'NodePort' } as const;
  const LOCAL = { type: 'NodePort', externalTrafficPolicy: 'Local' } as const;
  test.for<readonly [boolean, string, string, Partial<ServiceFields>?, ScenarioSettings?]>([
    [true, 'outside', 'the source is outside the pod network'],
    [true, 'node', 'sent by this node, which is outside the pod network'],
    [false, '10.244.1.12', 'the source is in the pod network'],
    [true, '10.244.1.12', '--masquerade-all', {}, { masqueradeAll: true }],
    [
      false,
      'outside',
      'no pod network is configured, so no source is masqueraded',
      {},
      { detectLocal: 'none' },
    ],
    [true, '10.244.1.11', 'it dials itself (hairpin), and would answer itself directly'],
    [
      true,
      'outside',
      'externalTrafficPolicy: Cluster: replies have to come back through this node',
      NODE_PORT,
    ],
    [false, 'outside', "externalTrafficPolicy: Local keeps the client's address", LOCAL],
    [false, '10.244.1.12', "externalTrafficPolicy: Local keeps the pod's address", LOCAL],
    [true, 'node', 'sent by this node itself: replies have to come back to it', LOCAL],
  ])('%s: from %s: %s', async ([masquerade, from, why, fields = {}, settings = {}]) => {
    const to = 'type' in fields ? '192.168.100.2:30080' : undefined;
    const { endpoints } = await ask(clusterOf(web(fields, 'pod-a'), { settings }), from, to);
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

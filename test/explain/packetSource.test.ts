/** What explain says of the source of a packet: its class, and whether it is masqueraded. */
import { describe, expect, test } from 'vitest';
import type { ServiceFields } from '../scenarios/objects.ts';
import type { ScenarioSettings } from '../scenarios/scenario.ts';
import { clusterOf } from './given.ts';
import { ask, web } from './packets.ts';

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

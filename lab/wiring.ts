/** The `ip -batch` scripts that turn empty namespaces into the lab's network. */
import {
  ADDRESSES,
  addressOf,
  FAR_NETWORK,
  type HostName,
  hostBits,
  networkBits,
  type NodeName,
  perFamily,
  POD_CIDRS,
  type PodName,
  type PodRouting,
  PODS_OF,
} from './topology.ts';

export type Pids = Readonly<Record<HostName, number>>;

/** Makes all links of a node and of its pods. node1 also makes its links to node2 and to the client. */
export function linkScript(node: NodeName, pids: Pids): string {
  return script([
    'link set lo up',
    // Snooping would hold back neighbour discovery until there is a querier, and here there is none.
    'link add cni0 type bridge forward_delay 0 mcast_snooping 0',
    'link set cni0 up',
    ...PODS_OF[node].flatMap((pod) => [
      `link add ${pod} type veth peer name eth0 netns ${pids[pod]}`,
      `link set ${pod} master cni0 up`,
      // A pod that reaches itself through a service: its frame goes back out of the port that it came in by.
      `link set ${pod} type bridge_slave hairpin on`,
    ]),
    ...(node === 'node1'
      ? [
          `link add eth0 type veth peer name eth0 netns ${pids.node2}`,
          `link add eth1 type veth peer name eth0 netns ${pids.client}`,
          'link set eth0 up',
          'link set eth1 up',
        ]
      : []),
  ]);
}

/**
 * node1's default route exists because a packet that node1 itself sends to a service address needs some route before
 * the OUTPUT hook can translate it. It leads to the client, which forwards nothing: a packet that no rule translated
 * ends there in silence, where node2 would send it straight back. The source is the node's own address, as it would
 * be on a node with one uplink.
 */
export function node1Script(): string {
  return script([
    ...perFamily((family) => [
      address('node1', family, 0, 'eth0'),
      address('node1', family, 1, 'cni0'),
      address('node1', family, 2, 'eth1'),
      `route add ${POD_CIDRS.node2[family]} via ${addressOf('node2', family)}`,
      `route add ${FAR_NETWORK[family]} via ${addressOf('client', family)}`,
      `route add default via ${addressOf('client', family)} src ${addressOf('node1', family)}`,
    ]),
  ]);
}

/** Everything that is not node2's own goes back by node1, where the translation is known that has to be undone. */
export function node2Script(): string {
  return script([
    'link set eth0 up',
    ...perFamily((family) => [
      address('node2', family, 0, 'eth0'),
      address('node2', family, 1, 'cni0'),
      `route add default via ${addressOf('node1', family)}`,
    ]),
  ]);
}

export function podScript(pod: PodName, node: NodeName, routing: PodRouting): string {
  return script([
    'link set lo up',
    'link set eth0 up',
    ...perFamily((family) => {
      const gateway = addressOf(node, family, 1);
      return [
        address(pod, family, 0, 'eth0', routing === 'bridged' ? networkBits(family) : hostBits(family)),
        ...(routing === 'routed' ? [`route add ${gateway} dev eth0`] : []),
        `route add default via ${gateway} dev eth0`,
      ];
    }),
  ]);
}

export function clientScript(): string {
  return script([
    'link set lo up',
    'link set eth0 up',
    ...perFamily((family) => [
      address('client', family, 0, 'eth0'),
      address('client', family, 1, 'eth0', hostBits(family)),
      `route add default via ${addressOf('node1', family, 2)} src ${addressOf('client', family)}`,
    ]),
  ]);
}

function address(
  host: HostName,
  family: keyof (typeof ADDRESSES)['node1'],
  index: number,
  device: string,
  bits = networkBits(family),
): string {
  const nodad = family === 'IPv6' ? ' nodad' : '';
  return `address add ${addressOf(host, family, index)}/${bits} dev ${device}${nodad}`;
}

function script(lines: readonly string[]): string {
  return `${lines.join('\n')}\n`;
}

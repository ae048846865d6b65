/** For each frontend of a plan, packets from everybody who could dial it; and some that no frontend is for. */
import { addressOf } from '../../lab/topology.ts';
import { type Family, familyOf, hostPort, type Ip, isLoopback } from '../../src/model/ip.ts';
import { PROTOCOLS } from '../../src/model/objects.ts';
import type { Plan } from '../../src/plan/types.ts';
import type { Subject } from './packets.ts';
import { ip, node1Addresses } from './scenario.ts';

interface Sender {
  readonly source: Ip;
  readonly inInterface: string | undefined;
}

function from(source: Ip, inInterface: string | undefined): Sender {
  return { source, inInterface };
}

/** Only the node's own loopback address dials a loopback address: the kernel drops anything else as a martian. */
function senders(family: Family, destination: Ip): readonly Sender[] {
  const all = [
    from(addressOf('pod-a', family), 'cni0'),
    from(addressOf('pod-c', family), 'eth0'),
    from(addressOf('client', family), 'eth1'),
    from(addressOf('client', family, 1), 'eth1'),
    ...node1Addresses(family).map((source) => from(source, undefined)),
  ];
  return isLoopback(destination) ? all.filter(({ source }) => isLoopback(source)) : all;
}

export function subjectsOf(plan: Plan): readonly Subject[] {
  const { family } = plan;
  const own = node1Addresses(family);
  const dialled = new Map<string, Pick<Subject['packet'], 'destination' | 'protocol' | 'port'>>();
  const dial = (destination: Ip, protocol: Subject['packet']['protocol'], port: number): void => {
    dialled.set(`${protocol} ${hostPort(destination, port)}`, { destination, protocol, port });
  };
  for (const { frontends, protocol } of plan.servicePorts.values()) {
    for (const { address, port } of frontends) {
      for (const destination of address === undefined ? own : [address]) dial(destination, protocol, port);
    }
  }
  for (const protocol of PROTOCOLS) {
    for (const destination of ['10.96.0.1', '203.0.113.1', '192.168.100.2', 'fd00:96::1', 'fd00:100::2'].map(
      ip,
    )) {
      if (familyOf(destination) === family) dial(destination, protocol, 80);
    }
  }
  return [...dialled].flatMap(([text, to]) =>
    senders(family, to.destination).map(({ source, inInterface }) => ({
      text: `${source} ${inInterface ?? '(node)'} ${text}`,
      packet: { source, inInterface, ...to },
      withPorts: true,
    })),
  );
}

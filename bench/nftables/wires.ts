/** A client and the endpoints in network namespaces of their own, with the namespace of this process between them. */
import { writeFileSync } from 'node:fs';
import { run } from '../../src/system/processes.ts';
import { type Namespace, openNamespace } from '../namespace.ts';

export interface Wires {
  readonly client: Namespace;
  readonly server: Namespace;
  close(): void;
}

/** Where endpoints are: all of these are addresses of the server. */
const ENDPOINTS = '10.0.0.0/12';

export async function openWires(endpoints = ENDPOINTS): Promise<Wires> {
  const client = await openNamespace();
  const server = await openNamespace();
  await must(run, 'ip link set lo up');
  // Both ends are within 10.0.0.0/8, where pods are.
  await wire(client, 'client0', '10.64.0');
  await wire(server, 'server0', '10.65.0');
  await must(run, `ip route add ${endpoints} via 10.65.0.2`);
  await must(server.runner, `ip route add local ${endpoints} dev lo`);
  writeFileSync('/proc/sys/net/ipv4/ip_forward', '1');
  return {
    client,
    server,
    close: () => {
      client.close();
      server.close();
    },
  };
}

async function wire({ pid, runner }: Namespace, name: string, network: string): Promise<void> {
  await must(run, `ip link add ${name} type veth peer name eth0 netns ${pid}`);
  await must(run, `ip address add ${network}.1/24 dev ${name}`);
  await must(run, `ip link set ${name} up`);
  await must(runner, `ip address add ${network}.2/24 dev eth0`);
  await must(runner, 'ip link set lo up');
  await must(runner, 'ip link set eth0 up');
  await must(runner, `ip route add default via ${network}.1`);
}

async function must(runner: Namespace['runner'], command: string): Promise<void> {
  const { code, stderr } = await runner(['sh', '-c', command]);
  if (code !== 0) throw new Error(`${command}: ${stderr.trim()}`);
}

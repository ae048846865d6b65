/**
 * A whole cluster on one machine: two nodes, four pods and a client outside, each a network namespace held by an agent
 * process. Nothing is made in the machine's own network, nothing has a name outside, and all of it goes when this
 * process does.
 */
import { FAMILIES } from '../src/model/ip.ts';
import { AgentProcess } from './agentProcess.ts';
import { Host } from './host.ts';
import type { Listen, Transport } from './protocol.ts';
import { bridgeSysctls, neededSysctls, SCTP_SYSCTLS, WELCOME_SYSCTLS } from './sysctls.ts';
import {
  addressOf,
  HOST_NAMES,
  type HostName,
  NODE_PORT_OF_HOST_NETWORK,
  type NodeName,
  POD_PORTS,
  type PodName,
  type PodRouting,
  PODS_OF,
} from './topology.ts';
import { clientScript, linkScript, node1Script, node2Script, podScript, type Pids } from './wiring.ts';

export interface LabOptions {
  readonly onProgress?: (message: string) => void;
  /** Unset: `bridged` where the kernel can, `routed` elsewhere. */
  readonly podRouting?: PodRouting;
  /** Pods answer over SCTP too, where the kernel has it. Asking loads its module. */
  readonly sctp?: boolean;
}

const NODES: readonly NodeName[] = ['node1', 'node2'];
const PODS: readonly (readonly [PodName, NodeName])[] = NODES.flatMap((node) =>
  PODS_OF[node].map((pod) => [pod, node] as const),
);
const FIRST_PACKET_TRIES = 20;

export class Lab {
  readonly podRouting: PodRouting;
  /** Why nobody answers over SCTP; `undefined`: pods do. */
  readonly whyNoSctp: string | undefined;
  readonly #hosts: ReadonlyMap<HostName, Host>;

  static async start(options: LabOptions = {}): Promise<Lab> {
    const say = options.onProgress ?? (() => {});
    say('starting 7 hosts');
    const hosts = await startHosts();
    try {
      say('wiring their networks');
      const routing = await prepareKernels(hosts, options.podRouting);
      await wire(hosts, routing);
      say('starting servers in pods and nodes');
      const whyNoSctp = options.sctp ? await prepareSctp(hosts) : 'the lab was started without SCTP';
      await serveByDefault(hosts, whyNoSctp === undefined ? ['tcp', 'udp', 'sctp'] : ['tcp', 'udp']);
      await firstPackets(hosts);
      say('the cluster is up');
      return new Lab(hosts, routing, whyNoSctp);
    } catch (error) {
      await closeAll(hosts.values());
      throw error;
    }
  }

  private constructor(hosts: Hosts, podRouting: PodRouting, whyNoSctp: string | undefined) {
    this.#hosts = hosts;
    this.whyNoSctp = whyNoSctp;
    this.podRouting = podRouting;
  }

  host(name: HostName): Host {
    return hostIn(this.#hosts, name);
  }

  async close(): Promise<void> {
    await closeAll(this.#hosts.values());
  }
}

type Hosts = ReadonlyMap<HostName, Host>;

function hostIn(hosts: Hosts, name: HostName): Host {
  const host = hosts.get(name);
  if (!host) throw new Error(`the lab has no host ${name}`);
  return host;
}

async function startHosts(): Promise<Hosts> {
  const starts = await Promise.allSettled(
    HOST_NAMES.map(async (name) => [name, new Host(name, await AgentProcess.start(name))] as const),
  );
  const hosts = new Map(starts.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : [])));
  const failure = starts.find((start) => start.status === 'rejected');
  if (failure) {
    await closeAll(hosts.values());
    throw failure.reason;
  }
  return hosts;
}

async function prepareKernels(hosts: Hosts, wished: PodRouting | undefined): Promise<PodRouting> {
  await Promise.all(
    [...hosts.values()].map(async (host) => {
      const failed = await host.sysctl(neededSysctls(host.name));
      if (failed.length > 0)
        throw new Error(`${host.name}: cannot write ${failed.map((path) => `/proc/sys/${path}`).join(', ')}`);
      await host.sysctl(WELCOME_SYSCTLS);
    }),
  );
  const bridged = await setBridges(hosts, wished ?? 'bridged');
  if (bridged || wished === 'routed') return wished ?? 'bridged';
  if (wished === 'bridged') throw new Error('this kernel has no br_netfilter setting per network namespace');
  await setBridges(hosts, 'routed');
  return 'routed';
}

async function setBridges(hosts: Hosts, routing: PodRouting): Promise<boolean> {
  const failures = await Promise.all(NODES.map((node) => hostIn(hosts, node).sysctl(bridgeSysctls(routing))));
  return failures.every((failed) => failed.length === 0);
}

async function wire(hosts: Hosts, routing: PodRouting): Promise<void> {
  const pids = Object.fromEntries(HOST_NAMES.map((name) => [name, hostIn(hosts, name).pid])) as Pids;
  const batch = async (name: HostName, script: string): Promise<void> => {
    await hostIn(hosts, name).run(['ip', '-batch', '-'], { stdin: script });
  };
  await Promise.all([
    batch('node1', linkScript('node1', pids) + node1Script()),
    batch('node2', linkScript('node2', pids)),
  ]);
  await Promise.all([
    batch('node2', node2Script()),
    batch('client', clientScript()),
    ...PODS.map(([pod, node]) => batch(pod, podScript(pod, node, routing))),
  ]);
}

async function prepareSctp(hosts: Hosts): Promise<string | undefined> {
  const reason = await hostIn(hosts, 'client').whyNoSctp();
  if (reason !== undefined) return reason;
  const failures = await Promise.all([...hosts.values()].map((host) => host.sysctl(SCTP_SYSCTLS)));
  const [failed] = failures.flat();
  return failed === undefined ? undefined : `cannot write /proc/sys/${failed}`;
}

async function serveByDefault(hosts: Hosts, transports: readonly Transport[]): Promise<void> {
  const podListens = POD_PORTS.flatMap((port) => transports.map((protocol): Listen => ({ protocol, port })));
  const nodeListens: readonly Listen[] = [{ protocol: 'tcp', port: NODE_PORT_OF_HOST_NETWORK }];
  await Promise.all([
    ...PODS.map(([pod]) => hostIn(hosts, pod).serve(podListens)),
    ...NODES.map((node) => hostIn(hosts, node).serve(nodeListens)),
  ]);
}

/**
 * A link that is up may drop packets until the kernel has noticed its carrier, which it does in its own time (linkwatch).
 * From the client to each pod, every link of the lab is passed.
 */
async function firstPackets(hosts: Hosts): Promise<void> {
  const client = hostIn(hosts, 'client');
  const port = POD_PORTS[0] ?? 0;
  await Promise.all(
    PODS.flatMap(([pod]) => FAMILIES.map((family) => addressOf(pod, family))).map(async (address) => {
      for (let tries = 0; tries < FIRST_PACKET_TRIES; tries++) {
        const { outcome } = await client.request('tcp', address, port, { timeoutMs: 200 });
        if (outcome === 'answer') return;
      }
      throw new Error(`the lab is wired, but the client cannot reach ${address}`);
    }),
  );
}

async function closeAll(hosts: Iterable<Host>): Promise<void> {
  await Promise.all([...hosts].map((host) => host.close()));
}

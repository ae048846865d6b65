/** Two nodes of the lab with a Junction each, one in nftables and one in iptables mode, and what happens to them. */
import { named } from '../../e2e/support/nftTable.ts';
import type { Host } from '../../../lab/host.ts';
import type { Lab } from '../../../lab/lab.ts';
import { nodeObject, objects } from '../../e2e/cluster.ts';
import { ApiNode } from '../../e2e/support/api/apiNode.ts';
import { eventually } from '../../e2e/support/eventually.ts';
import { tryFetch } from '../../e2e/support/fetch.ts';
import type { Program } from '../../e2e/support/program.ts';
import { expectAnswers, SOON_MS } from '../../e2e/support/traffic.ts';
import type { RawObject } from '../../support/apiServer/index.ts';

const WEB = { name: 'web', ip: '10.96.1.1', ip6: 'fd00:96::1' };
const DNS = { name: 'dns', ip: '10.96.1.2' };
const OLD = { name: 'old', ip: '10.96.1.3', pods: 'ab' };

const MODES = {
  node1: ['--proxy-mode=nftables', '--nftables-counters', '--nftables-protection=none'],
  // The legacy variant notifies nobody of a flushed chain, so that the next restore is refused.
  node2: ['--proxy-mode=iptables', '--iptables-variant=legacy', '--iptables-min-sync-period=0s'],
} as const;

type NodeName = keyof typeof MODES;

function nodeOf(name: NodeName, host: Host): RawObject {
  const node = nodeObject();
  const addresses = [...host.addresses.IPv4.slice(0, 1), ...host.addresses.IPv6.slice(0, 1)];
  return {
    ...node,
    metadata: { ...node.metadata, name },
    status: { addresses: addresses.map((address) => ({ type: 'InternalIP', address })) },
  };
}

/** With what the EndpointSlice controller says of the time when it happened. The UDP service has the second pod alone. */
function current(pods: string): readonly RawObject[] {
  const annotations = { 'endpoints.kubernetes.io/last-change-trigger-time': new Date().toISOString() };
  const dns = JSON.stringify(objects([{ ...DNS, pods: pods.slice(1) }])).replaceAll('"TCP"', '"UDP"');
  const all = [...objects([{ ...WEB, pods }]), ...(JSON.parse(dns) as readonly RawObject[])];
  return all.map((object) =>
    object.kind === 'EndpointSlice' ? { ...object, metadata: { ...object.metadata, annotations } } : object,
  );
}

export class TwoNodes {
  readonly #lab: Lab;
  readonly #nodes: Readonly<Record<NodeName, ApiNode>>;
  readonly #programs = new Map<NodeName, Program>();
  #pods = 'ac';

  static async create(lab: Lab): Promise<TwoNodes> {
    const make = (name: NodeName): Promise<ApiNode> =>
      ApiNode.create(lab.host(name), [nodeOf(name, lab.host(name)), ...current('ac'), ...objects([OLD])]);
    return new TwoNodes(lab, { node1: await make('node1'), node2: await make('node2') });
  }

  private constructor(lab: Lab, nodes: Readonly<Record<NodeName, ApiNode>>) {
    this.#lab = lab;
    this.#nodes = nodes;
  }

  get #all(): readonly (readonly [NodeName, ApiNode])[] {
    return Object.entries(this.#nodes) as [NodeName, ApiNode][];
  }

  async start(): Promise<void> {
    for (const [name, node] of this.#all) {
      const flags = [`--hostname-override=${name}`, '--metrics-bind-address=0.0.0.0:10249', ...MODES[name]];
      this.#programs.set(name, await node.serve('token', ...flags));
    }
  }

  async kill(): Promise<void> {
    await Promise.all([...this.#programs.values()].map((program) => program.close()));
  }

  /** Endpoints change while a client holds a UDP connection to one that goes. */
  async change(): Promise<void> {
    await eventually('an answer of the UDP service', async () => {
      const options = { sourcePort: 40_001, timeoutMs: SOON_MS };
      const { outcome } = await this.#lab.host('client').request('udp', DNS.ip, 80, options);
      return outcome === 'answer';
    });
    this.#pods = this.#pods === 'ac' ? 'ad' : 'ac';
    for (const [, node] of this.#all) await node.put(...current(this.#pods));
    await this.#answers();
  }

  /** Load balancers and kubelet do so. */
  async askForHealth(): Promise<void> {
    for (const [name] of this.#all)
      for (const path of ['healthz', 'livez'])
        await tryFetch(this.#lab.host(name), `http://127.0.0.1:10256/${path}`);
  }

  /**
   * In node1 another program deletes an element of ours, and then owns tables of our names: every transaction of ours is
   * refused until it ends. In node2 it flushes a chain, from which a rule is to be deleted.
   */
  async interfere(): Promise<void> {
    const [first, second] = [this.#programs.get('node1'), this.#programs.get('node2')];
    const [host1, host2] = [this.#lab.host('node1'), this.#lab.host('node2')];
    await host1.run(['nft', await named(host1, `delete element ip junction service-ips { ${WEB.ip} }`)]);
    await this.#answers();
    const from = first?.log.length ?? 0;
    const owner = host1.spawn(['nft', '-i'], { stdio: ['pipe', 'ignore', 'inherit'] });
    const owned = ['a', 'b'].map((name) => `add table ip junction-${name} { flags owner; }`).join('; ');
    owner.stdin?.write(`${await named(host1, 'delete table ip junction')}; ${owned}\n`);
    await first?.says(/"Sync failed"/, from);
    owner.stdin?.end('quit\n');
    await this.#answers();

    const from2 = second?.log.length ?? 0;
    await host2.run(['iptables-legacy', '-t', 'nat', '-F', 'KUBE-SERVICES']);
    for (const [kind, name] of [
      ['EndpointSlice', 'shop/old-1'],
      ['Service', 'shop/old'],
    ] as const)
      await this.#nodes.node2.server.call('delete', kind, name);
    await second?.says(/"Synced rules" ipFamily="IPv4" kind="full"/, from2);
  }

  /** Every watch is lost, and the lists that follow are put off once. */
  async loseServer(): Promise<void> {
    for (const [name, { server }] of this.#all) {
      const fault = { kind: 'status', code: 429, retryAfter: '1' } as const;
      await server.call('addFault', { on: ['list', 'stream'], resource: 'services', fault, times: 1 });
      await server.call('replace', [nodeOf(name, this.#lab.host(name)), ...current(this.#pods)], 1_000_000);
      await eventually('services are watched', async () => (await server.call('watches', 'services')) > 0);
    }
  }

  async close(): Promise<void> {
    for (const [, node] of this.#all) await node.close();
  }

  async #answers(): Promise<void> {
    await expectAnswers(this.#lab.host('client'), WEB.ip, `pod-a pod-${this.#pods[1]}`);
  }
}

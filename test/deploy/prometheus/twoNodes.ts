/** Two nodes of the lab with a Junction each, one in nftables and one in iptables mode, and what happens to them. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Host } from '../../../lab/host.ts';
import type { Lab } from '../../../lab/lab.ts';
import { nodeObject, objects, type ServiceWords } from '../../e2e/cluster.ts';
import { ApiNode } from '../../e2e/support/api/apiNode.ts';
import { eventually } from '../../e2e/support/eventually.ts';
import { tryFetch } from '../../e2e/support/fetch.ts';
import type { Program } from '../../e2e/support/program.ts';
import { expectAnswers, SOON_MS } from '../../e2e/support/traffic.ts';
import type { RawObject } from '../../support/apiServer/index.ts';

const WEB = { name: 'web', ip: '10.96.1.1', ip6: 'fd00:96::1' };
const DNS = { name: 'dns', ip: '10.96.1.2' };
const OLD = { name: 'old', ip: '10.96.1.3', pods: 'ab' };
/** A client's; the kernel sends all packets from there to one endpoint. */
const DNS_SOURCE = 40_001;

const FLAGS = ['--metrics-bind-address=0.0.0.0:10249', '--iptables-min-sync-period=0s'];
const MODES = {
  node1: ['--proxy-mode=nftables', '--nftables-counters'],
  // The legacy variant notifies nobody of a flushed chain, so that the next restore is refused.
  node2: ['--proxy-mode=iptables', '--iptables-variant=legacy'],
} as const;

type NodeName = keyof typeof MODES;
const NODES: readonly NodeName[] = ['node1', 'node2'];

function nodeOf(name: NodeName, host: Host): RawObject {
  const node = nodeObject();
  const addresses = [...host.addresses.IPv4.slice(0, 1), ...host.addresses.IPv6.slice(0, 1)];
  return {
    ...node,
    metadata: { ...node.metadata, name },
    status: { addresses: addresses.map((address) => ({ type: 'InternalIP', address })) },
  };
}

/** As the EndpointSlice controller says when what it writes about happened. */
function changedNow(object: RawObject): RawObject {
  if (object.kind !== 'EndpointSlice') return object;
  const annotations = { 'endpoints.kubernetes.io/last-change-trigger-time': new Date().toISOString() };
  return { ...object, metadata: { ...object.metadata, annotations } };
}

function cluster(pods: string, dns: string, ...others: readonly ServiceWords[]): readonly RawObject[] {
  const tcp = objects([{ ...WEB, pods }, ...others]);
  const udp = JSON.stringify(objects([{ ...DNS, pods: dns }])).replaceAll('"TCP"', '"UDP"');
  return [...tcp, ...(JSON.parse(udp) as readonly RawObject[])].map(changedNow);
}

export class TwoNodes {
  readonly #lab: Lab;
  readonly #state: string;
  readonly #nodes = new Map<NodeName, ApiNode>();
  readonly #programs = new Map<NodeName, Program>();
  #changes = 0;

  static async create(lab: Lab): Promise<TwoNodes> {
    const made = new TwoNodes(lab, await mkdtemp(join(tmpdir(), 'junction-two-nodes-')));
    for (const name of NODES) {
      const host = lab.host(name);
      made.#nodes.set(name, await ApiNode.create(host, [nodeOf(name, host), ...cluster('ac', 'a', OLD)]));
    }
    return made;
  }

  private constructor(lab: Lab, state: string) {
    this.#lab = lab;
    this.#state = state;
  }

  async start(): Promise<void> {
    for (const name of NODES) {
      const state = `--state-dir=${join(this.#state, name)}`;
      const flags = [`--hostname-override=${name}`, state, ...FLAGS, ...MODES[name]];
      this.#programs.set(name, await this.#node(name).start('token', ...flags));
    }
    await Promise.all([...this.#programs.values()].map((program) => program.serves()));
  }

  async kill(): Promise<void> {
    await Promise.all([...this.#programs.values()].map((program) => program.close()));
  }

  /** Endpoints move from node to node; a client of the UDP service has to be led after them. */
  async change(): Promise<void> {
    const [pods, dns, answerer] = this.#changes++ % 2 === 0 ? ['ad', 'c', 'pod-c'] : ['ac', 'a', 'pod-a'];
    const before = answerer === 'pod-a' ? 'pod-c' : 'pod-a';
    await this.#dnsAnswers(before);
    for (const name of NODES) await this.#node(name).put(...cluster(pods, dns));
    await expectAnswers(this.#lab.host('client'), WEB.ip, `pod-a pod-${pods.at(-1)}`);
    await this.#dnsAnswers(answerer);
  }

  /** Load balancers and kubelet do so. */
  async askForHealth(): Promise<void> {
    for (const name of NODES)
      for (const path of ['healthz', 'livez'])
        await tryFetch(this.#lab.host(name), `http://127.0.0.1:10256/${path}`);
  }

  /** Another program deletes an element of ours. */
  async deleteElement(): Promise<void> {
    await this.#host('node1').run([
      'nft',
      'delete',
      'element',
      'ip',
      'junction',
      'service-ips',
      `{ ${WEB.ip} }`,
    ]);
    await expectAnswers(
      this.#lab.host('client'),
      WEB.ip,
      this.#changes % 2 === 0 ? 'pod-a pod-c' : 'pod-a pod-d',
    );
  }

  /** Another program owns a table of our name: every transaction of ours is refused until it ends. */
  async takeTable(): Promise<void> {
    const program = this.#programs.get('node1');
    const from = program?.log.length ?? 0;
    const owner = this.#host('node1').spawn(['nft', '-i'], { stdio: ['pipe', 'ignore', 'inherit'] });
    owner.stdin?.write('delete table ip junction; add table ip junction { flags owner; }\n');
    await program?.says(/"Sync failed"/, from);
    owner.stdin?.end('quit\n');
    await expectAnswers(
      this.#lab.host('client'),
      WEB.ip,
      this.#changes % 2 === 0 ? 'pod-a pod-c' : 'pod-a pod-d',
    );
  }

  /** A chain is flushed, and then a rule is to be deleted from it that is not there any more. */
  async flushChain(): Promise<void> {
    const program = this.#programs.get('node2');
    const from = program?.log.length ?? 0;
    await this.#host('node2').run(['iptables-legacy', '-t', 'nat', '-F', 'KUBE-SERVICES']);
    await this.#node('node2').server.call('delete', 'EndpointSlice', `shop/${OLD.name}-1`);
    await this.#node('node2').server.call('delete', 'Service', `shop/${OLD.name}`);
    await program?.says(/"Synced rules" ipFamily="IPv4" kind="full"/, from);
  }

  /** Every watch is lost, and the lists that follow are put off once. */
  async loseServer(): Promise<void> {
    for (const name of NODES) {
      const { server } = this.#node(name);
      const fault = { kind: 'status', code: 429, retryAfter: '1' } as const;
      await server.call('addFault', { on: ['list', 'stream'], resource: 'services', fault, times: 1 });
      const current = cluster(this.#changes % 2 === 0 ? 'ac' : 'ad', this.#changes % 2 === 0 ? 'a' : 'c');
      await server.call('replace', [nodeOf(name, this.#host(name)), ...current], 1_000_000 + this.#changes);
      await eventually(
        'services are watched again',
        async () => (await server.call('watches', 'services')) > 0,
      );
    }
  }

  async close(): Promise<void> {
    for (const node of this.#nodes.values()) await node.close();
    await rm(this.#state, { recursive: true, force: true });
  }

  #host(name: NodeName): Host {
    return this.#lab.host(name);
  }

  #node(name: NodeName): ApiNode {
    const node = this.#nodes.get(name);
    if (!node) throw new Error(`${name} is not made yet`);
    return node;
  }

  async #dnsAnswers(expected: string): Promise<void> {
    let last = '';
    await eventually(
      () => `${expected} at ${DNS.ip}; last: ${last}`,
      async () => {
        const options = { sourcePort: DNS_SOURCE, timeoutMs: SOON_MS };
        const answer = await this.#lab.host('client').request('udp', DNS.ip, 80, options);
        last = answer.outcome === 'answer' ? answer.reply.host : answer.outcome;
        return last === expected;
      },
    );
  }
}

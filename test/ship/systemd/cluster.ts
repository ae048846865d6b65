/** What stands around the node: an API server that it reaches on its loopback address, and a pod with an HTTP server. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { nodeObject, objects } from '../../e2e/cluster.ts';
import { TestApiServer } from '../../support/apiServer/index.ts';
import { capture, type SystemdNode } from './node.ts';

export const API_PORT = 6443;
const SERVICE = '10.96.0.10';
/** `b` of the objects. */
const POD = '10.244.1.12';
const ANSWER = 'the pod';

/** Joins what connects to one address with another: the node's network, and a socket that belongs to no network. */
const FORWARD = `
const net = require('node:net');
const [from, to] = process.argv.slice(1).map((word) => (word.startsWith('/') ? { path: word } : { host: '127.0.0.1', port: Number(word) }));
net.createServer((client) => {
  const server = net.connect(to);
  const end = () => { client.destroy(); server.destroy(); };
  for (const socket of [client, server]) socket.on('error', end).on('close', end);
  client.pipe(server).pipe(client);
}).listen(from, () => console.log('listening'));
`;

const SERVE = `require('node:http').createServer((_, response) => response.end('${ANSWER}')).listen(8080, () => console.log('listening'));`;

/** Asks until it is ended, and prints how often, and what went wrong. */
const ASK = `
let count = 0;
let isOver = false;
process.on('SIGTERM', () => { isOver = true; });
const ask = () => new Promise((resolve) => {
  const request = require('node:http').get({ host: '${SERVICE}', agent: false, timeout: 20_000 }, (response) => {
    response.resume().on('end', () => { count++; if (count === 1) console.log('listening'); resolve(); });
  });
  request.on('timeout', () => request.destroy(new Error('no answer')));
  request.on('error', (error) => { console.log(error.message); resolve(); });
});
(async () => {
  while (!isOver) { await ask(); await new Promise((resolve) => setTimeout(resolve, 20)); }
  console.log('answers: ' + count);
})();
`;

const FETCH = `fetch('http://${SERVICE}/', { signal: AbortSignal.timeout(3000) }).then((answer) => answer.text()).then(console.log)`;

export class Cluster {
  readonly #api: TestApiServer;
  readonly #node: SystemdNode;
  readonly #children: ChildProcess[] = [];

  private constructor(node: SystemdNode, api: TestApiServer) {
    this.#node = node;
    this.#api = api;
  }

  static async around(node: SystemdNode, folder: string): Promise<Cluster> {
    const api = await TestApiServer.start();
    for (const object of OBJECTS) api.put(object);
    const path = join(folder, 'api.sock');
    const cluster = new Cluster(node, api);
    await node.shell(NETWORK);
    await cluster.#start([], FORWARD, path, new URL(api.url).port);
    await cluster.#start(node.network(), FORWARD, String(API_PORT), path);
    await cluster.#start(['nsenter', `--net=${node.path('/run/netns/pod')}`, '--'], SERVE);
    return cluster;
  }

  async #start(enter: readonly string[], script: string, ...args: readonly string[]): Promise<ChildProcess> {
    const die = ['setpriv', '--pdeathsig', 'KILL', '--'];
    const [command = '', ...rest] = [...die, ...enter, process.execPath, '-e', script, ...args];
    const child = spawn(command, rest, { stdio: ['ignore', 'pipe', 'inherit'] });
    this.#children.push(child);
    await once(child.stdout, 'data');
    return child;
  }

  /** Whether the pod answers who asks the Service's address on the node. */
  async isServed(): Promise<boolean> {
    const { output } = await capture([...this.#node.network(), process.execPath, '-e', FETCH]);
    return output.trim() === ANSWER;
  }

  /** Asks all the time while the work is done. Returns what went wrong. */
  async whileAsking(work: () => Promise<void>): Promise<string> {
    const child = await this.#start(this.#node.network(), ASK);
    let said = '';
    child.stdout?.on('data', (chunk: Buffer) => {
      said += chunk.toString();
    });
    await work();
    const ended = once(child, 'close');
    child.kill('SIGTERM');
    await ended;
    const [, answers] = /answers: (\d+)\n$/.exec(said) ?? [];
    if (Number(answers) < 2) throw new Error(`it hardly asked:\n${said}`);
    return said.replace(/answers: \d+\n$/, '');
  }

  async close(): Promise<void> {
    for (const child of this.#children) child.kill('SIGKILL');
    await this.#api.close();
  }
}

const NETWORK = `
ip link set lo up
ip netns add pod
ip link add pod0 type veth peer name eth0 netns pod
ip address add 10.244.1.1/24 dev pod0
ip link set pod0 up
ip netns exec pod ip address add ${POD}/24 dev eth0
ip netns exec pod ip link set eth0 up
ip netns exec pod ip route add default via 10.244.1.1
ip route add default via ${POD}
`;

const OBJECTS = [nodeObject(), ...objects([{ name: 'web', ip: SERVICE, pods: 'b' }])];

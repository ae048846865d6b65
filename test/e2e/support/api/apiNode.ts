/** A node of the lab with an API server beside the program, and what the program needs to reach it. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Host } from '../../../../lab/host.ts';
import { certificatePath, keyPath, type RawObject } from '../../../support/apiServer/index.ts';
import { applied, startedAndApplied } from '../applied.ts';
import { Program, type StartOptions } from '../program.ts';
import { RemoteApiServer } from './remoteServer.ts';

export const TOKEN = 'a-token-of-the-test';

/** As the DaemonSet of kube-proxy has them. */
const KUBE_PROXY_FLAGS = [
  '--hostname-override=node1',
  '--cluster-cidr=10.244.0.0/16,fd00:244::/32',
  '--proxy-mode=iptables',
  '--conntrack-max-per-core=0',
  '--v=2',
  // Not the machine's: other tests run at the same time.
];

export type UserKind = 'certificate' | 'token';

export class ApiNode {
  readonly host: Host;
  readonly server: RemoteApiServer;
  /** Of the local API of whoever was started. */
  readonly socket: string;
  readonly #directory: string;
  readonly #programs: Program[] = [];

  static async create(host: Host, objects: readonly RawObject[]): Promise<ApiNode> {
    const server = await RemoteApiServer.start(host, {
      certificate: 'server',
      clientCertificates: true,
      tokens: [TOKEN],
    });
    await server.call('put', objects);
    return new ApiNode(host, server, await mkdtemp(join(tmpdir(), 'junction-e2e-')));
  }

  private constructor(host: Host, server: RemoteApiServer, directory: string) {
    this.host = host;
    this.server = server;
    this.#directory = directory;
    this.socket = join(directory, 'junction.sock');
  }

  /** kube-proxy's own flags; more of them may follow. */
  async start(user: UserKind, ...flags: readonly string[]): Promise<Program> {
    const kubeconfig = `--kubeconfig=${await this.writeKubeconfig(user)}`;
    return this.startWith([kubeconfig, ...KUBE_PROXY_FLAGS, `--api-socket=${this.socket}`, ...flags]);
  }

  /** The same, and waits until everything is in the kernel. */
  async serve(user: UserKind, ...flags: readonly string[]): Promise<Program> {
    const program = await this.start(user, ...flags);
    await startedAndApplied(program, this.socket);
    return program;
  }

  startWith(args: readonly string[], options: StartOptions = {}): Program {
    const program = Program.start(this.host, args, options);
    this.#programs.push(program);
    return program;
  }

  /** Returns the version of the last of them. */
  put(...objects: readonly RawObject[]): Promise<number> {
    return this.server.call('put', objects);
  }

  /** Puts them, a Service first, and waits until they are in the kernel. */
  async applied(...objects: readonly RawObject[]): Promise<void> {
    const [service, ...others] = objects;
    if (!service) return;
    await this.put(...others);
    const { namespace, name } = service.metadata as { readonly namespace: string; readonly name: string };
    const resourceVersion = String(await this.put(service));
    await applied(this.socket, { service: `${namespace}/${name}`, resourceVersion });
  }

  async close(): Promise<void> {
    for (const program of this.#programs) await program.close();
    this.server.close();
    await rm(this.#directory, { recursive: true });
  }

  async writeKubeconfig(user: UserKind): Promise<string> {
    const path = join(this.#directory, 'kubeconfig');
    const cluster = { server: await this.server.call('url'), 'certificate-authority': certificatePath('ca') };
    const credentials =
      user === 'token'
        ? { token: TOKEN }
        : { 'client-certificate': certificatePath('client'), 'client-key': keyPath('client') };
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'test',
      contexts: [{ name: 'test', context: { cluster: 'test', user: 'node1' } }],
      clusters: [{ name: 'test', cluster }],
      users: [{ name: 'node1', user: credentials }],
    };
    await writeFile(path, JSON.stringify(config));
    return path;
  }
}

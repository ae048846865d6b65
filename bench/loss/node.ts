/** A service proxy on node1, Junction or kube-proxy, with the settings that it has by itself. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Host } from '../../lab/host.ts';
import { Program } from '../../test/e2e/support/program.ts';
import { kindOf, type LossMode } from './messages.ts';
import { manifests } from '../../test/e2e/cluster.ts';
import type { LossRunOptions } from './run.ts';
import { moreServices, SERVICES } from './traffic.ts';
import { KubeProxy } from './kubeProxy.ts';

const FLAGS = [
  '--hostname-override=node1',
  '--cluster-cidr=10.244.0.0/16,fd00:244::/32',
  // Settings of the whole machine.
  '--conntrack-max-per-core=0',
  '--conntrack-min=0',
  '--api-socket=',
];

export class LossNode {
  readonly host: Host;
  readonly #program: readonly string[];
  readonly #folder: string;
  readonly #kubeProxy: KubeProxy | undefined;
  #running: Program | undefined;

  static async create(
    host: Host,
    { program, services, kubeProxy }: Pick<LossRunOptions, 'program' | 'services' | 'kubeProxy'>,
  ): Promise<LossNode> {
    const folder = await mkdtemp(join(tmpdir(), 'junction-loss-'));
    await mkdir(join(folder, 'manifests'));
    await writeFile(
      join(folder, 'manifests/cluster.yaml'),
      manifests([...SERVICES, ...moreServices(services)]),
    );
    return new LossNode(host, program, folder, kubeProxy);
  }

  private constructor(host: Host, program: readonly string[], folder: string, kubeProxy?: string) {
    this.host = host;
    this.#program = program;
    this.#folder = folder;
    this.#kubeProxy = kubeProxy === undefined ? undefined : new KubeProxy(host, kubeProxy, folder);
  }

  /** Until both families are served. */
  async start(mode: LossMode, program = this.#program): Promise<void> {
    if (this.#kubeProxy) this.#running = await this.#kubeProxy.start(mode);
    else await this.launch(mode, program).serves();
  }

  launch(mode: LossMode, program = this.#program): Program {
    const variant = mode === 'iptables-nft' ? 'nft' : kindOf(mode) === 'nftables' ? 'auto' : 'legacy';
    const flags = [
      `--proxy-mode=${kindOf(mode)}`,
      `--iptables-variant=${variant}`,
      ...(mode === 'nftables-backstop' ? ['--nftables-protection=backstop'] : []),
    ];
    const args = ['run', '--manifests', join(this.#folder, 'manifests'), ...FLAGS, ...flags];
    this.#running = Program.start(this.host, args, { program });
    return this.#running;
  }

  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    await this.#running?.end(signal);
    this.#running = undefined;
  }

  async clear(): Promise<void> {
    await this.end('SIGKILL');
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** The program on a configuration file that a test may edit. */
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { Host } from '../../../lab/host.ts';
import { manifests, type ServiceWords } from '../cluster.ts';
import { applied, startedAndApplied } from './applied.ts';
import { Program } from './program.ts';
import { replaceFile } from './replaceFile.ts';

export type Fields = Readonly<Record<string, unknown>>;

const FIELDS: Fields = {
  apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
  kind: 'KubeProxyConfiguration',
  hostnameOverride: 'node1',
  clusterCIDR: '10.244.0.0/16,fd00:244::/32',
  mode: 'iptables',
  conntrack: { maxPerCore: 0 },
  iptables: { syncPeriod: '60s', minSyncPeriod: '100ms' },
};

export function configText(more: Fields = {}): string {
  return stringify({ ...FIELDS, ...more });
}

export class Configured {
  readonly directory: string;
  readonly manifests: string;
  readonly #host: Host;
  #program: Program | undefined;

  static async create(host: Host, services: readonly ServiceWords[]): Promise<Configured> {
    const made = new Configured(host, await mkdtemp(join(tmpdir(), 'junction-e2e-')));
    await mkdir(made.manifests);
    await made.serve(services);
    return made;
  }

  private constructor(host: Host, directory: string) {
    this.#host = host;
    this.directory = directory;
    this.manifests = join(directory, 'manifests');
  }

  get program(): Program {
    if (!this.#program) throw new Error('not started');
    return this.#program;
  }

  get socket(): string {
    return join(this.directory, 'junction.sock');
  }

  get file(): string {
    return join(this.directory, 'config.conf');
  }

  async serve(services: readonly ServiceWords[]): Promise<void> {
    await this.serveText(manifests(services));
    if (this.#program?.isRunning) await this.applied();
  }

  async serveText(text: string): Promise<void> {
    await replaceFile(join(this.manifests, 'cluster.yaml'), text);
  }

  #text(more: Fields): string {
    return configText({ junction: { apiSocket: this.socket }, ...more });
  }

  async write(more: Fields = {}): Promise<void> {
    await replaceFile(this.file, this.#text(more));
  }

  /** As kubelet puts a ConfigMap into a volume: the file is a link through a link, and the inner one is swapped. */
  async writeAsVolume(version: string, more: Fields = {}): Promise<void> {
    const contents = join(this.directory, `..${version}`);
    await mkdir(contents);
    await writeFile(join(contents, 'config.conf'), this.#text(more));
    const next = join(this.directory, '..data_tmp');
    await symlink(`..${version}`, next);
    await rename(next, join(this.directory, '..data'));
    await symlink('..data/config.conf', this.file).catch(() => {}); // there since the first version
  }

  /** Without a command, as kube-proxy is started. */
  async start(...flags: readonly string[]): Promise<void> {
    this.#program = Program.start(this.#host, [
      `--config=${this.file}`,
      `--manifests=${this.manifests}`,
      ...flags,
    ]);
    await startedAndApplied(this.#program, this.socket);
  }

  /** Waits until everything is in the kernel. */
  async applied(): Promise<void> {
    await applied(this.socket);
  }

  async close(): Promise<void> {
    await this.#program?.close();
    await rm(this.directory, { recursive: true });
  }
}

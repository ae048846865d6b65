/** The real kube-proxy on node1, with the settings that it has by itself. */
import { once } from 'node:events';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Host } from '../../lab/host.ts';
import { toolEnvironment } from '../../lab/tools.ts';
import { Program } from '../../test/e2e/support/program.ts';
import { kindOf, type LossMode } from './messages.ts';

const API_SERVER = fileURLToPath(new URL('./bench-loss-api.js', import.meta.url));
const READY_LIMIT_MS = 180_000;
/** Ends when both families have had their first sync. */
const UNTIL_HEALTHY = `const ask = async () => {
  const answer = await fetch('http://127.0.0.1:10256/healthz').catch(() => undefined);
  if (answer?.status === 200) return;
  setTimeout(ask, 100);
};
ask();`;

export class KubeProxy {
  readonly #host: Host;
  readonly #path: string;
  readonly #folder: string;
  #url: Promise<string> | undefined;

  constructor(host: Host, path: string, folder: string) {
    this.#host = host;
    this.#path = path;
    this.#folder = folder;
  }

  async start(mode: LossMode): Promise<Program> {
    this.#url ??= this.#startApiServer();
    const config = await this.#writeConfig(mode, await this.#url);
    const PATH = `${await this.#programs(mode)}:${toolEnvironment()['PATH'] ?? ''}`;
    const program = Program.start(this.#host, ['--config', config], { program: [this.#path], env: { PATH } });
    const { exitCode } = await this.#host.exec([process.execPath, '-e', UNTIL_HEALTHY], {
      timeoutMs: READY_LIMIT_MS,
    });
    if (exitCode !== 0)
      throw new Error(`kube-proxy did not get ready; it said:\n${program.log.slice(-2000)}`);
    return program;
  }

  async #startApiServer(): Promise<string> {
    const server = this.#host.spawn([process.execPath, API_SERVER], { stdio: ['ignore', 'pipe', 'inherit'] });
    if (!server.stdout) throw new Error('the API server has no output');
    const [url] = (await once(server.stdout, 'data')) as [Buffer];
    return url.toString().trim();
  }

  /** kube-proxy takes the iptables that it finds first. */
  async #programs(mode: LossMode): Promise<string> {
    const variant = mode === 'iptables-nft' ? 'nft' : 'legacy';
    const folder = join(this.#folder, variant);
    const names = ['iptables', 'ip6tables'].flatMap((name) =>
      ['', '-save', '-restore'].map((end) => [name, end]),
    );
    await mkdir(folder, { recursive: true });
    for (const [name = '', end = ''] of names)
      await symlink(`/usr/sbin/${name}-${variant}${end}`, join(folder, name + end)).catch(() => {});
    return folder;
  }

  async #writeConfig(mode: LossMode, url: string): Promise<string> {
    const kubeconfig = join(this.#folder, 'kubeconfig');
    const context = { name: 'bench', context: { cluster: 'bench', user: 'bench' } };
    await writeFile(
      kubeconfig,
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Config',
        clusters: [{ name: 'bench', cluster: { server: url } }],
        users: [{ name: 'bench', user: {} }],
        contexts: [context],
        'current-context': 'bench',
      }),
    );
    const path = join(this.#folder, `${mode}.json`);
    const json = { contentType: 'application/json', acceptContentTypes: 'application/json' };
    await writeFile(
      path,
      JSON.stringify({
        apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
        kind: 'KubeProxyConfiguration',
        mode: kindOf(mode),
        hostnameOverride: 'node1',
        clusterCIDR: '10.244.0.0/16,fd00:244::/32',
        detectLocalMode: 'ClusterCIDR',
        clientConnection: { kubeconfig, ...json },
        conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
      }),
    );
    return path;
  }
}

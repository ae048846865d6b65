/** A proxy's process from outside: how it is started, and what the kernel says of it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { NODE_NAME, type ProxyTask } from './messages.ts';

/** Clock ticks a second, of everything under /proc. */
const TICKS = 100;
const KIBIBYTE = 1024;

export class ProxyProcess {
  readonly startedAt = Date.now();
  readonly #process: ChildProcess;
  #ending = '';

  constructor([program, ...args]: ProxyTask['command'], config: string) {
    this.#process = spawn(program, [...args, '--config', config], { stdio: ['ignore', 'ignore', 'pipe'] });
    this.#process.stderr?.on('data', (bytes: Buffer) => {
      this.#ending = (this.#ending + bytes.toString()).slice(-2000);
    });
  }

  /** Never answers while it lives. */
  get failed(): Promise<never> {
    return new Promise((_, reject) => {
      this.#process.once('error', reject);
      this.#process.once('exit', (code) => reject(new Error(`the proxy ended (${code})\n${this.#ending}`)));
    });
  }

  /** With that of programs that it started and that have ended. */
  cpuMs(): number {
    const fields = readFileSync(`/proc/${this.#process.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
    return (ticks * 1000) / TICKS;
  }

  resident(): number {
    const status = readFileSync(`/proc/${this.#process.pid}/status`, 'utf8');
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * KIBIBYTE;
  }

  end(): void {
    this.#process.removeAllListeners('exit');
    this.#process.kill();
  }
}

/** One file for all proxies. But for what is said here, everything is as kube-proxy has it by itself. */
export function writeConfig(folder: string, url: string): string {
  const kubeconfig = join(folder, 'kubeconfig');
  writeFileSync(
    kubeconfig,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'bench', cluster: { server: url } }],
      users: [{ name: 'bench', user: {} }],
      contexts: [{ name: 'bench', context: { cluster: 'bench', user: 'bench' } }],
      'current-context': 'bench',
    }),
  );
  const path = join(folder, 'config.yaml');
  writeFileSync(
    path,
    JSON.stringify({
      apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
      kind: 'KubeProxyConfiguration',
      mode: 'nftables',
      hostnameOverride: NODE_NAME,
      clusterCIDR: '10.0.0.0/8',
      detectLocalMode: 'ClusterCIDR',
      // The API server of the benchmark speaks nothing else.
      clientConnection: {
        kubeconfig,
        contentType: 'application/json',
        acceptContentTypes: 'application/json',
      },
      // Settings of the machine, which a network namespace may not have.
      conntrack: {
        maxPerCore: 0,
        min: 0,
        tcpEstablishedTimeout: '0s',
        tcpCloseWaitTimeout: '0s',
      },
    }),
  );
  return path;
}

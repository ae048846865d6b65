/** Junction's daemon as a process, for this benchmark. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { NODE_NAME } from '../nftables/messages.ts';
import type { HostileMode } from './messages.ts';

const JUNCTION = fileURLToPath(new URL('junction.js', import.meta.url));
const KIBIBYTE = 1024;
export const LIVEZ = 'http://127.0.0.1:10256/livez';

export class Daemon {
  readonly startedAt = Date.now();
  readonly warnings: string[] = [];
  readonly #process: ChildProcess;
  #lastLines: string[] = [];
  #isEnding = false;

  constructor(config: string, profile: string | undefined) {
    const args = profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`];
    this.#process = spawn(process.execPath, [...args, JUNCTION, 'run', '--config', config], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    if (this.#process.stderr)
      createInterface({ input: this.#process.stderr }).on('line', (line) => this.#heard(line));
  }

  #heard(line: string): void {
    this.#lastLines = [...this.#lastLines.slice(-20), line.slice(0, 500)];
    if (/^[WE]/.test(line) && this.warnings.length < 100) this.warnings.push(line.slice(0, 300));
  }

  /** Never answers while it is wanted. */
  get failed(): Promise<never> {
    return new Promise((_, reject) => {
      this.#process.once('exit', (code, signal) => {
        if (!this.#isEnding)
          reject(new Error(`the daemon ended (${code ?? signal})\n${this.#lastLines.join('\n')}`));
      });
    });
  }

  /** The most that it ever had. */
  resident(): number {
    const status = readFileSync(`/proc/${this.#process.pid}/status`, 'utf8');
    return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * KIBIBYTE;
  }

  async end(): Promise<void> {
    this.#isEnding = true;
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    this.#process.kill();
    await once(this.#process, 'exit');
  }
}

/** Everything that is not said here is as it is by itself. */
export function writeConfig(folder: string, url: string, mode: HostileMode): string {
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
  const [name = '', variant] = mode.split('-');
  writeFileSync(
    path,
    JSON.stringify({
      apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
      kind: 'KubeProxyConfiguration',
      mode: name,
      hostnameOverride: NODE_NAME,
      clusterCIDR: '10.0.0.0/8',
      detectLocalMode: 'ClusterCIDR',
      clientConnection: { kubeconfig },
      healthzBindAddress: '127.0.0.1:10256',
      metricsBindAddress: '127.0.0.1:10249',
      // A change waits for what is being written, and for nothing else.
      iptables: { minSyncPeriod: '10ms' },
      nftables: { minSyncPeriod: '10ms' },
      ipvs: { minSyncPeriod: '10ms' },
      // Settings of the machine, which a network namespace may not have.
      conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
      junction: {
        apiSocket: '',
        ...(variant !== undefined && { iptablesVariant: variant }),
        ...(name === 'ipvs' && { iptablesVariant: 'legacy' }),
      },
    }),
  );
  return path;
}

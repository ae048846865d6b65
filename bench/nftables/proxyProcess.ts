/** A proxy's process from outside: how it is started, and what the kernel says of it. */
import { type ChildProcess, spawn, type StdioOptions } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { NODE_NAME, type ProxyTask } from './messages.ts';

/** Clock ticks a second, of everything under /proc. */
const TICKS = 100;
const KIBIBYTE = 1024;

interface ProcessOptions {
  readonly env?: NodeJS.ProcessEnv;
  /** Gets all that it says. */
  readonly onText?: (text: string) => void;
}

export class ProxyProcess {
  readonly startedAt = Date.now();
  readonly #process: ChildProcess;
  #ending = '';

  constructor(
    [program, ...args]: ProxyTask['command'],
    config: string,
    { env, onText }: ProcessOptions = {},
  ) {
    const stdio: StdioOptions = ['ignore', 'ignore', 'pipe'];
    this.#process = spawn(program, [...args, '--config', config], { stdio, env: env ?? process.env });
    this.#process.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#ending = (this.#ending + text).slice(-2000);
      onText?.(text);
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
    return this.#bytesOf('VmRSS');
  }

  /** The most that was ever resident. */
  peakResident(): number {
    return this.#bytesOf('VmHWM');
  }

  end(): void {
    this.#process.removeAllListeners('exit');
    this.#process.kill();
  }

  /** Resolves when it has ended. */
  async ended(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    this.#process.removeAllListeners('exit');
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const exited = once(this.#process, 'exit');
    this.#process.kill(signal);
    await exited;
  }

  #bytesOf(name: 'VmRSS' | 'VmHWM'): number {
    const status = readFileSync(`/proc/${this.#process.pid}/status`, 'utf8');
    return Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) * KIBIBYTE;
  }
}

interface ConfigOptions {
  readonly mode?: 'nftables' | 'iptables';
  /** Between two syncs; unset: as kube-proxy has it by itself. */
  readonly minSyncPeriod?: string;
  /** What the API server is asked for. */
  readonly contentType?: string;
}

/** One file for all proxies. But for what is said here, everything is as kube-proxy has it by itself. */
export function writeConfig(folder: string, url: string, options: ConfigOptions = {}): string {
  const { mode = 'nftables', minSyncPeriod, contentType = 'application/json' } = options;
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
      mode,
      ...(minSyncPeriod !== undefined && { [mode]: { minSyncPeriod } }),
      hostnameOverride: NODE_NAME,
      clusterCIDR: '10.0.0.0/8',
      detectLocalMode: 'ClusterCIDR',
      clientConnection: { kubeconfig, contentType, acceptContentTypes: contentType },
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

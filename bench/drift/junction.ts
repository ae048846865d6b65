/** Junction in a network namespace of its own, with so many services, and what its log says. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Namespace } from '../namespace.ts';

const PROGRAM = fileURLToPath(new URL('../bin/junction', import.meta.url));
const ENDPOINTS = 3;
const POLL_MS = 5;

export class Junction {
  readonly #child: ChildProcess;
  readonly #folder: string;
  #log = '';

  constructor(namespace: Namespace, services: number, flags: readonly string[]) {
    this.#folder = mkdtempSync(join(tmpdir(), 'junction-drift-'));
    writeFileSync(join(this.#folder, 'cluster.json'), JSON.stringify(cluster(services)));
    const args = [
      'run',
      '--manifests',
      this.#folder,
      '--hostname-override=node1',
      '--conntrack-max-per-core=0',
      '--state-dir=',
      '--api-socket=',
    ];
    const inside = ['nsenter', `--net=/proc/${namespace.pid}/ns/net`, PROGRAM, ...args, ...flags];
    this.#child = spawn('/usr/bin/env', inside, { stdio: ['ignore', 'ignore', 'pipe'] });
    this.#child.stderr?.on('data', (bytes: Buffer) => {
      this.#log += bytes.toString();
    });
  }

  get mark(): number {
    return this.#log.length;
  }

  /** The first match behind the mark, and when it was there. */
  async says(
    pattern: RegExp,
    from: number,
    limitMs: number,
  ): Promise<{ text: string; at: number } | undefined> {
    const deadline = performance.now() + limitMs;
    while (performance.now() < deadline) {
      const [text] = pattern.exec(this.#log.slice(from)) ?? [];
      if (text !== undefined) return { text, at: performance.now() };
      if (this.#child.exitCode !== null) throw new Error(`Junction ended\n${this.#log.slice(-2000)}`);
      await sleep(POLL_MS);
    }
    return undefined;
  }

  async close(): Promise<void> {
    const ended = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#child.kill('SIGTERM');
    await ended;
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function cluster(services: number): object {
  const items = Array.from({ length: services }, (_, index) => [service(index), slice(index)]).flat();
  return { apiVersion: 'v1', kind: 'List', items };
}

function service(index: number): object {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace: 'bench', name: `s${index}` },
    spec: {
      type: 'ClusterIP',
      clusterIP: `10.${96 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}`,
      ports: [{ name: 'http', port: 80, targetPort: 8080 }],
    },
  };
}

function slice(index: number): object {
  const addresses = Array.from({ length: ENDPOINTS }, (_, each) => {
    const number = index * ENDPOINTS + each;
    return `10.${200 + (number >> 16)}.${(number >> 8) & 255}.${number & 255}`;
  });
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      namespace: 'bench',
      name: `s${index}-1`,
      labels: { 'kubernetes.io/service-name': `s${index}` },
    },
    addressType: 'IPv4',
    endpoints: addresses.map((address) => ({ addresses: [address], conditions: { ready: true } })),
    ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
  };
}

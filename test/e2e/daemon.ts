/** The real program, running in a node of the lab on manifests that a test may edit. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { once } from 'node:events';
import type { ChildProcess } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Host } from '../../src/lab/host.ts';

const PROGRAM = fileURLToPath(new URL('../../bin/junction', import.meta.url));

export const FLAGS = [
  '--hostname-override=node1',
  '--cluster-cidr=10.244.0.0/16,fd00:244::/32',
  '--iptables-min-sync-period=0s',
  '--iptables-sync-period=500ms',
  '--v=1',
];

export class Daemon {
  readonly #host: Host;
  readonly #directory: string;
  readonly #flags: readonly string[];
  #child: ChildProcess | undefined;
  #log = '';

  private constructor(host: Host, directory: string, flags: readonly string[]) {
    this.#host = host;
    this.#directory = directory;
    this.#flags = flags;
  }

  static async create(host: Host, ...flags: readonly string[]): Promise<Daemon> {
    return new Daemon(host, await mkdtemp(join(tmpdir(), 'junction-e2e-')), flags);
  }

  /** Everything that it has said so far. */
  get log(): string {
    return this.#log;
  }

  async write(manifests: string): Promise<void> {
    await writeFile(join(this.#directory, 'cluster.yaml'), manifests);
  }

  /** Starts, and waits until both families are served. */
  async start(): Promise<void> {
    const from = this.#log.length;
    const child = this.#host.spawn(
      [PROGRAM, 'run', '--manifests', this.#directory, ...FLAGS, ...this.#flags],
      {
        stdio: ['ignore', 'ignore', 'pipe'],
      },
    );
    child.stderr?.on('data', (chunk: Buffer) => {
      this.#log += chunk.toString();
    });
    this.#child = child;
    await eventually(`serving both families\n${this.#log}`, () => {
      if (child.exitCode !== null) throw new Error(`junction ended: ${this.#log}`);
      return (this.#log.slice(from).match(/"Serving"/g)?.length ?? 0) >= 2;
    });
  }

  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | null> {
    const child = this.#child;
    this.#child = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return child?.exitCode ?? null;
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
    return child.exitCode;
  }

  cleanup(): Promise<string> {
    return this.#host.run([PROGRAM, 'cleanup', ...this.#flags.filter((flag) => flag.includes('variant'))]);
  }

  async close(): Promise<void> {
    await this.end('SIGKILL');
    await rm(this.#directory, { recursive: true, force: true });
  }
}

/** Asks until the answer is yes; bounded. */
export async function eventually(
  what: string,
  ask: () => boolean | Promise<boolean>,
  timeoutMs = 15_000,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await ask())) {
    if (performance.now() > deadline) throw new Error(`never came: ${what}`);
    await sleep(30);
  }
}

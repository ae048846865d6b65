/** The real program, running in a node of the lab on manifests that a test may edit. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Host } from '../../lab/host.ts';
import type { Status } from '../../src/explain/status.ts';
import { applied, startedAndApplied } from './support/applied.ts';
import { PROGRAM, Program, type StartOptions } from './support/program.ts';
import { replaceFile } from './support/replaceFile.ts';

export { eventually } from './support/eventually.ts';

export const FLAGS = [
  '--hostname-override=node1',
  '--cluster-cidr=10.244.0.0/16,fd00:244::/32',
  '--iptables-min-sync-period=0s',
  '--iptables-sync-period=500ms',
  // Not the machine's: other tests run at the same time.
  '--api-socket=',
  '--v=1',
];

export class Daemon {
  readonly manifests: string;
  /** Of the local API. */
  readonly socket: string;
  readonly #host: Host;
  readonly #flags: readonly string[];
  #program: Program | undefined;
  #past = '';

  private constructor(host: Host, manifests: string, flags: readonly string[]) {
    this.#host = host;
    this.manifests = manifests;
    this.socket = `${manifests}.sock`;
    this.#flags = flags;
  }

  static async create(host: Host, ...flags: readonly string[]): Promise<Daemon> {
    return new Daemon(host, await mkdtemp(join(tmpdir(), 'junction-e2e-')), flags);
  }

  /** Everything that it has said so far. */
  get log(): string {
    return this.#past + (this.#program?.log ?? '');
  }

  async write(manifests: string): Promise<void> {
    await replaceFile(join(this.manifests, 'cluster.yaml'), manifests);
  }

  /** Writes them, and waits until the kernel has what they say. */
  async apply(manifests: string): Promise<Status> {
    await this.write(manifests);
    return this.applied();
  }

  /** Waits until everything is in the kernel, repairs of what was noticed included. */
  applied(): Promise<Status> {
    return applied(this.socket);
  }

  /** Starts, and waits until everything is in the kernel. */
  async start(options: StartOptions = {}): Promise<void> {
    const socket = `--api-socket=${this.socket}`;
    const args = ['run', '--manifests', this.manifests, ...FLAGS, socket, ...this.#flags];
    this.#program = Program.start(this.#host, args, options);
    await startedAndApplied(this.#program, this.socket);
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#program?.signal(signal);
  }

  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | null> {
    const program = this.#program;
    if (!program) return null;
    const code = await program.end(signal);
    this.#past += program.log;
    this.#program = undefined;
    return code;
  }

  cleanup(): Promise<string> {
    return this.#host.run([PROGRAM, 'cleanup', ...this.#flags.filter((flag) => flag.includes('variant'))]);
  }

  async close(): Promise<void> {
    await this.#program?.close();
    await rm(this.manifests, { recursive: true, force: true });
    await rm(this.socket, { force: true });
  }
}

/** The whole program on node1, on manifests that a test may rewrite. */
import { mkdir, mkdtemp, rename, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Host } from '../../../lab/host.ts';
import type { CommandResult } from '../../../lab/protocol.ts';
import { applied } from '../../e2e/support/applied.ts';
import { Program } from '../../e2e/support/program.ts';

/** Beside the bundle that this ends up in: see programs.ts. */
const PROGRAM = [process.execPath, fileURLToPath(new URL('./junction.js', import.meta.url))];
const COMMAND_LIMIT_MS = 150_000;

const FLAGS = [
  '--iptables-variant=legacy',
  '--hostname-override=node1',
  '--cluster-cidr=10.244.0.0/16,fd00:244::/32',
  '--conntrack-max-per-core=0',
  '--conntrack-min=0',
  '--firewalld=false',
  '--v=2',
];

export const IPVS_FLAGS = [
  '--proxy-mode=ipvs',
  '--ipvs-min-sync-period=100ms',
  // Nothing is read back between two steps of a test, which keeps the emulated machine busy.
  '--ipvs-sync-period=1h',
  '--ipvs-tcpfin-timeout=1s',
];

/** For tests that wait for it; each time all is read back, which takes the emulated machine a second or two. */
export const SHORT_SYNC_PERIOD = [...IPVS_FLAGS, '--ipvs-sync-period=10s'];

export class GuestDaemon {
  readonly #host: Host;
  readonly #folder: string;
  readonly #manifests: string;
  #program: Program | undefined;
  #versions = 0;

  static async create(host: Host): Promise<GuestDaemon> {
    const folder = await mkdtemp(join(tmpdir(), 'junction-daemon-'));
    const daemon = new GuestDaemon(host, folder);
    await mkdir(daemon.#manifests);
    await daemon.write('');
    return daemon;
  }

  private constructor(host: Host, folder: string) {
    this.#host = host;
    this.#folder = folder;
    this.#manifests = join(folder, 'manifests');
  }

  get isRunning(): boolean {
    return this.#program?.isRunning ?? false;
  }

  /** Everything that the last one said. */
  get log(): string {
    return this.#program?.log ?? '';
  }

  get program(): Program {
    if (!this.#program) throw new Error('Junction was not started');
    return this.#program;
  }

  /** In one go: what is read while it is written would be half a cluster. */
  async write(manifests: string): Promise<void> {
    const next = join(this.#folder, `version-${++this.#versions}`);
    await writeFile(next, manifests);
    await rename(next, join(this.#manifests, 'cluster.yaml'));
  }

  /** The same, and waits until it is in the kernel. */
  async apply(manifests: string): Promise<void> {
    await this.write(manifests);
    await applied(this.#socket);
  }

  /** Answers before it serves. */
  launch(flags: readonly string[] = IPVS_FLAGS): Program {
    const args = ['run', '--manifests', this.#manifests, this.#socketFlag, ...FLAGS, ...flags];
    this.#program = Program.start(this.#host, args, { program: PROGRAM });
    return this.#program;
  }

  async start(flags: readonly string[] = IPVS_FLAGS): Promise<void> {
    await this.launch(flags).serves();
  }

  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    await this.#program?.end(signal);
  }

  async close(): Promise<void> {
    await this.#program?.close();
  }

  ask(command: string, ...args: readonly string[]): Promise<CommandResult> {
    return this.#host.exec([...PROGRAM, command, this.#socketFlag, ...args], { timeoutMs: COMMAND_LIMIT_MS });
  }

  get #socket(): string {
    return join(this.#folder, 'api.sock');
  }

  get #socketFlag(): string {
    return `--api-socket=${this.#socket}`;
  }

  cleanup(): Promise<CommandResult> {
    return this.#host.exec([...PROGRAM, 'cleanup', '--iptables-variant=legacy'], {
      timeoutMs: COMMAND_LIMIT_MS,
    });
  }
}

/** Junction on node1, started as an operator would: with the settings that it has by itself. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Host } from '../../src/lab/host.ts';
import { Program } from '../../test/e2e/support/program.ts';
import { kindOf, type LossMode } from './messages.ts';
import { WORLD } from './traffic.ts';

const FLAGS = [
  '--hostname-override=node1',
  '--cluster-cidr=10.244.0.0/16,fd00:244::/32',
  // Settings of the whole machine.
  '--conntrack-max-per-core=0',
  '--conntrack-min=0',
];
const CLEANUP_LIMIT_MS = 120_000;

export class LossNode {
  readonly host: Host;
  readonly #program: readonly string[];
  readonly #folder: string;
  #running: Program | undefined;

  static async create(host: Host, program: readonly string[]): Promise<LossNode> {
    const folder = await mkdtemp(join(tmpdir(), 'junction-loss-'));
    await writeFile(join(folder, 'cluster.yaml'), WORLD);
    return new LossNode(host, program, folder);
  }

  private constructor(host: Host, program: readonly string[], folder: string) {
    this.host = host;
    this.#program = program;
    this.#folder = folder;
  }

  /** Until both families are served. */
  async start(mode: LossMode): Promise<void> {
    const variant = mode === 'iptables-nft' ? 'nft' : mode === 'nftables' ? 'auto' : 'legacy';
    const flags = [`--proxy-mode=${kindOf(mode)}`, `--iptables-variant=${variant}`];
    const args = ['run', '--manifests', this.#folder, ...FLAGS, ...flags];
    this.#running = Program.start(this.host, args, { program: this.#program });
    await this.#running.serves();
  }

  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    await this.#running?.end(signal);
    this.#running = undefined;
  }

  async clear(): Promise<void> {
    await this.end('SIGKILL');
    await this.host.exec([...this.#program, 'cleanup'], { timeoutMs: CLEANUP_LIMIT_MS });
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** Junction on node1, on a folder of manifests that changes all the time. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Host } from '../../lab/host.ts';
import { toolEnvironment } from '../../lab/tools.ts';
import { eventually } from '../../test/e2e/support/eventually.ts';
import type { SoakMode } from './modes.ts';

const FLAGS = [
  '--hostname-override=node1',
  '--cluster-cidr=10.244.0.0/16,fd00:244::/32',
  '--iptables-min-sync-period=0s',
  '--iptables-sync-period=1s',
  '--conntrack-max-per-core=0',
  // Clients on the node use ports from 10,001 on.
  '--healthz-bind-address=127.0.0.1:9256',
  '--metrics-bind-address=127.0.0.1:9249',
  '--v=1',
];
const START_MS = 60_000;
const MOST_STARTS = 40;
const KEPT_LOG = 200_000;
const WORDS =
  /^soak: (.*)$|"(Sync failed|Synced rules|Another program changed our rules|Started from the record|Reading back what is in the kernel)/gm;

export class SoakNode {
  readonly host: Host;
  readonly #mode: SoakMode;
  readonly #folder: string;
  readonly #logFile: string | undefined;
  readonly #texts = new Map<string, string>();
  readonly #counts = new Map<string, number>();
  #child: ChildProcess | undefined;
  #log = '';
  #written = 0;

  static async create(host: Host, mode: SoakMode, logFile?: string): Promise<SoakNode> {
    const folder = await mkdtemp(join(tmpdir(), 'junction-soak-'));
    await mkdir(join(folder, 'manifests'));
    await mkdir(join(folder, 'state'));
    return new SoakNode(host, mode, folder, logFile);
  }

  private constructor(host: Host, mode: SoakMode, folder: string, logFile: string | undefined) {
    this.host = host;
    this.#mode = mode;
    this.#logFile = logFile;
    this.#folder = folder;
  }

  /** The last that it said, for when something went wrong. */
  get log(): string {
    return this.#log;
  }

  /** Everything that the node should serve now. */
  get manifests(): string {
    return [...this.#texts.values()].filter((text) => text !== '').join('\n---\n');
  }

  /** How often each of these was said so far, in all lives. */
  get counts(): ReadonlyMap<string, number> {
    return this.#counts;
  }

  async write(name: string, text: string): Promise<void> {
    this.#texts.set(name, text);
    const fresh = join(this.#folder, `${this.#written++}`);
    await writeFile(fresh, text);
    await rename(fresh, join(this.#folder, 'manifests', `${name}.yaml`));
  }

  /** Again and again, as kubelet would, where it ends because the kernel could not be asked what it can do. */
  async start(program: string): Promise<void> {
    for (let tries = 1; !(await this.#tryStart(program)); tries++) {
      this.#count('start failed');
      if (tries === MOST_STARTS) throw new Error(`junction does not start: ${this.#log.slice(-5000)}`);
    }
  }

  async #tryStart(program: string): Promise<boolean> {
    const inFolder = (name: string): string => join(this.#folder, name);
    const flags = [...FLAGS, `--api-socket=${inFolder('state/junction.sock')}`, ...this.#mode.flags];
    const args = [process.execPath, program, 'run', '--manifests', inFolder('manifests'), ...flags];
    const child = this.host.spawn(args, { stdio: ['ignore', 'ignore', 'pipe'], env: toolEnvironment() });
    this.#child = child;
    let said = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      if (said.length < KEPT_LOG) said += text;
      this.#hear(text);
    });
    const isServing = (): boolean =>
      /"Serving" ipFamily="IPv4"/.test(said) && /"Serving" ipFamily="IPv6"/.test(said);
    const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null;
    await eventually(
      () => `a start; it said:\n${said.slice(-5000)}`,
      () => isServing() || hasEnded(),
      START_MS,
    );
    return !hasEnded();
  }

  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill(signal);
    await exited;
  }

  /** Until all rules are there: what happens by then would be the second of two things at once. */
  async whole(): Promise<void> {
    await eventually(
      () => `our rules, all of them; it said:\n${this.#log.slice(-5000)}`,
      () => this.#mode.isWhole(this.host),
      START_MS,
    );
  }

  /** No more faults of its own. */
  calm(): void {
    this.#child?.kill('SIGUSR2');
  }

  async close(): Promise<void> {
    await this.end('SIGKILL');
    await rm(this.#folder, { recursive: true, force: true });
  }

  #hear(text: string): void {
    if (this.#logFile !== undefined) appendFileSync(this.#logFile, text);
    this.#log = (this.#log + text.replace(/^.*"FLAG: .*\n/gm, '')).slice(-KEPT_LOG);
    for (const [, fault, message] of text.matchAll(WORDS)) this.#count(fault ?? message ?? '');
  }

  #count(word: string): void {
    this.#counts.set(word, (this.#counts.get(word) ?? 0) + 1);
  }
}

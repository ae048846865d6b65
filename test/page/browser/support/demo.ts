/** The demo's cluster, with the whole proxy in a node of the lab and its page on loopback there. */
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Lab } from '../../../../lab/lab.ts';
import type { HostName } from '../../../../lab/topology.ts';
import { FLAGS } from '../../../e2e/daemon.ts';
import { Program, runProgram } from '../../../e2e/support/program.ts';
import { replaceFile } from '../../../e2e/support/replaceFile.ts';

const EXAMPLES = fileURLToPath(new URL('../../../../examples/', import.meta.url));

export interface DemoOptions {
  /** In a namespace of its own any port is free. */
  readonly address?: string;
  /** Where the browser is. */
  readonly viewer?: HostName;
  readonly flags?: readonly string[];
  /** Fills the folder of manifests; unset: with the examples. */
  readonly fill?: (folder: string) => void;
}

export class Demo {
  readonly origin: string;
  /** Of a process in the network of the one who looks. */
  readonly pid: number;
  readonly socket: string;
  readonly #lab: Lab;
  readonly #folder: string;
  readonly #flags: readonly string[];
  #program: Program | undefined;

  private constructor(lab: Lab, folder: string, options: DemoOptions) {
    const { address = '127.0.0.1:8080', viewer = 'node1', flags = [] } = options;
    this.origin = `http://${address}`;
    this.pid = lab.host(viewer).pid;
    this.#lab = lab;
    this.#folder = folder;
    this.#flags = [`--ui-bind-address=${address}`, ...flags];
    this.socket = `${folder}.sock`;
  }

  static async start(lab: Lab, options: DemoOptions = {}): Promise<Demo> {
    const folder = await mkdtemp(join(tmpdir(), 'junction-page-'));
    if (options.fill) options.fill(folder);
    else await cp(EXAMPLES, folder, { recursive: true });
    const demo = new Demo(lab, folder, options);
    await demo.start();
    return demo;
  }

  get log(): string {
    return this.#program?.log ?? '';
  }

  async start(): Promise<void> {
    this.#program = Program.start(this.#lab.host('node1'), [
      'run',
      '--manifests',
      this.#folder,
      ...FLAGS,
      `--api-socket=${this.socket}`,
      '--proxy-mode=nftables',
      '--nftables-counters',
      ...this.#flags,
    ]);
    await this.#program.serves();
  }

  async stop(): Promise<void> {
    await this.#program?.end('SIGTERM');
    this.#program = undefined;
  }

  /** As with an editor. */
  async edit(file: string, change: (text: string) => string): Promise<void> {
    const path = join(this.#folder, file);
    const before = await readFile(path, 'utf8');
    const after = change(before);
    if (after === before) throw new Error(`${file}: the edit changes nothing`);
    await replaceFile(path, after);
  }

  async write(file: string, text: string): Promise<void> {
    await replaceFile(join(this.#folder, file), text);
  }

  async remove(file: string): Promise<void> {
    await rm(join(this.#folder, file));
  }

  /** What a command prints on this node. */
  async command(...args: readonly string[]): Promise<string> {
    const { stdout, stderr } = await runProgram(
      this.#lab.host('node1'),
      ...args,
      '--api-socket',
      this.socket,
    );
    if (stdout === '') throw new Error(`junction ${args.join(' ')} says nothing: ${stderr}`);
    return stdout;
  }

  async close(): Promise<void> {
    await this.#program?.close();
    await rm(this.#folder, { recursive: true, force: true });
    await rm(this.socket, { force: true });
  }
}

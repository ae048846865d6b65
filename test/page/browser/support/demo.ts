/** The demo's cluster, with the whole proxy in a node of the lab and its page on loopback there. */
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Lab } from '../../../../lab/lab.ts';
import { FLAGS } from '../../../e2e/daemon.ts';
import { Program, runProgram } from '../../../e2e/support/program.ts';
import { replaceFile } from '../../../e2e/support/replaceFile.ts';

const EXAMPLES = fileURLToPath(new URL('../../../../examples/', import.meta.url));
/** In a namespace of its own any port is free. */
const ADDRESS = '127.0.0.1:8080';

export class Demo {
  readonly origin = `http://${ADDRESS}`;
  readonly socket: string;
  readonly #lab: Lab;
  readonly #folder: string;
  readonly #flags: readonly string[];
  #program: Program | undefined;

  private constructor(lab: Lab, folder: string, flags: readonly string[]) {
    this.#lab = lab;
    this.#folder = folder;
    this.#flags = flags;
    this.socket = `${folder}.sock`;
  }

  static async start(lab: Lab, ...flags: readonly string[]): Promise<Demo> {
    const folder = await mkdtemp(join(tmpdir(), 'junction-page-'));
    await cp(EXAMPLES, folder, { recursive: true });
    const demo = new Demo(lab, folder, flags);
    await demo.start();
    return demo;
  }

  get pid(): number {
    return this.#lab.host('node1').pid;
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
      `--ui-bind-address=${ADDRESS}`,
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
    await this.#program?.end('SIGKILL');
    await rm(this.#folder, { recursive: true, force: true });
    await rm(this.socket, { force: true });
  }
}

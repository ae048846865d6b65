/** The demo's cluster: the whole proxy in a node of the lab, and beside it `junction ui`, which serves the page. */
import type { ChildProcess } from 'node:child_process';
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Lab } from '../../../../lab/lab.ts';
import { FLAGS } from '../../../e2e/daemon.ts';
import { eventually } from '../../../e2e/support/eventually.ts';
import { Program, PROGRAM, runProgram } from '../../../e2e/support/program.ts';
import { replaceFile } from '../../../e2e/support/replaceFile.ts';

const EXAMPLES = fileURLToPath(new URL('../../../../examples/', import.meta.url));

export class Demo {
  readonly lab: Lab;
  /** Everything that is gone at the end. */
  readonly folder: string;
  readonly socket: string;
  readonly #manifests: string;
  readonly #uis: ChildProcess[] = [];
  #program: Program | undefined;
  #origin = '';

  private constructor(lab: Lab, folder: string) {
    this.lab = lab;
    this.folder = folder;
    this.socket = join(folder, 'junction.sock');
    this.#manifests = join(folder, 'manifests');
  }

  static async start(lab: Lab): Promise<Demo> {
    const folder = await mkdtemp(join(tmpdir(), 'junction-page-'));
    const demo = new Demo(lab, folder);
    await cp(EXAMPLES, demo.#manifests, { recursive: true });
    await demo.startProxy();
    demo.#origin = new URL(await demo.ui(`--api-socket=${demo.socket}`)).origin;
    return demo;
  }

  /** Of the page that the running proxy answers. */
  get origin(): string {
    return this.#origin;
  }

  async startProxy(mode = 'nftables'): Promise<void> {
    this.#program = Program.start(this.lab.host('node1'), [
      'run',
      '--manifests',
      this.#manifests,
      ...FLAGS,
      `--api-socket=${this.socket}`,
      `--proxy-mode=${mode}`,
      '--nftables-counters',
      // Other programs change the table in some tests.
      '--nftables-protection=backstop',
    ]);
    await this.#program.serves();
  }

  async stopProxy(): Promise<void> {
    await this.#program?.end('SIGTERM');
    this.#program = undefined;
  }

  /** Another `junction ui` on the node; returns the link that it prints. */
  ui(...args: readonly string[]): Promise<string> {
    return this.#linkOf([PROGRAM, 'ui', ...args]);
  }

  /** Where its output is a terminal. */
  uiInTerminal(...args: readonly string[]): Promise<string> {
    return this.#linkOf(['script', '-qfec', [PROGRAM, 'ui', ...args].join(' '), '/dev/null']);
  }

  async #linkOf(words: readonly string[]): Promise<string> {
    let out = '';
    const child = this.lab.host('node1').spawn(words, { stdio: ['ignore', 'pipe', 'inherit'] });
    this.#uis.push(child);
    child.stdout?.on('data', (chunk: Buffer) => void (out += chunk.toString()));
    await eventually(
      () => `a link; it printed ${out}`,
      () => out.includes('Ctrl-C: end'),
    );
    return /^\S+/.exec(out)?.[0] ?? '';
  }

  /** As with an editor. */
  async edit(file: string, change: (text: string) => string): Promise<void> {
    const path = join(this.#manifests, file);
    const before = await readFile(path, 'utf8');
    const after = change(before);
    if (after === before) throw new Error(`${file}: the edit changes nothing`);
    await replaceFile(path, after);
  }

  /** Of the one endpoint in a file that has such a line. */
  setReady(file: string, isReady: boolean): Promise<void> {
    return this.edit(file, (text) => text.replace(`ready: ${!isReady}`, `ready: ${isReady}`));
  }

  async write(file: string, text: string): Promise<void> {
    await replaceFile(join(this.#manifests, file), text);
  }

  async remove(file: string): Promise<void> {
    await rm(join(this.#manifests, file));
  }

  /** What a command prints on this node. */
  async command(...args: readonly string[]): Promise<string> {
    const node = this.lab.host('node1');
    const { stdout, stderr } = await runProgram(node, ...args, '--api-socket', this.socket);
    if (stdout === '') throw new Error(`junction ${args.join(' ')} says nothing: ${stderr}`);
    return stdout;
  }

  async close(): Promise<void> {
    for (const ui of this.#uis) ui.kill('SIGKILL');
    await this.#program?.close();
    await rm(this.folder, { recursive: true, force: true });
  }
}

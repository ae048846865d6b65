/** Every change to any table of a node, as `nft monitor` tells it, transaction by transaction. */
import type { ChildProcess } from 'node:child_process';
import type { Host } from '../../../lab/host.ts';
import { toolEnvironment } from '../../../lab/tools.ts';
import { eventually } from './eventually.ts';

export class NftMonitor {
  readonly #node: Host;
  readonly #child: ChildProcess;
  #text = '';
  #marks = 0;

  static async start(node: Host): Promise<NftMonitor> {
    const child = node.spawn(['nft', 'monitor'], {
      stdio: ['ignore', 'pipe', 'ignore'],
      env: toolEnvironment(),
    });
    const monitor = new NftMonitor(node, child);
    await monitor.#hears();
    return monitor;
  }

  private constructor(node: Host, child: ChildProcess) {
    this.#node = node;
    this.#child = child;
    child.stdout?.setEncoding('utf8').on('data', (text: string) => (this.#text += text));
  }

  /** What was told since the last time this was asked: the lines of each transaction that touched our tables. */
  async take(): Promise<readonly (readonly string[])[]> {
    await this.#hears();
    const text = this.#text;
    this.#text = '';
    return text
      .split(/^# new generation .*$/m)
      .map((part) => part.split('\n').filter((line) => /\bip6? junction(?![\w-])/.test(line)))
      .filter((lines) => lines.length > 0);
  }

  close(): void {
    this.#child.kill('SIGKILL');
  }

  /** Something of our own is told, and with it everything before it. */
  async #hears(): Promise<void> {
    const before = this.#marks;
    await eventually('nft monitor', async () => {
      const table = `mark-${++this.#marks}`;
      await this.#node.run(['nft', '-f', '-'], {
        stdin: `add table bridge ${table}\ndelete table bridge ${table}`,
      });
      await new Promise((resolve) => setTimeout(resolve, 20));
      // On a busy machine the monitor is behind by more than one mark.
      const told = [...this.#text.matchAll(/delete table bridge mark-(\d+)/g)];
      return told.some(([, mark]) => Number(mark) > before) && this.#text.trimEnd().endsWith(')');
    });
  }
}

/** A command that goes on until it is ended, as a program: what it prints, and how it ends. */
import { type ChildProcess, spawn } from 'node:child_process';
import { onTestFinished } from 'vitest';
import { eventually } from '../e2e/support/eventually.ts';
import { JUNCTION } from '../support/programs.ts';

export class Program {
  readonly child: ChildProcess;
  readonly ended: Promise<number | null>;
  out = '';
  err = '';

  constructor(argv: readonly string[], input?: string, env: NodeJS.ProcessEnv = process.env) {
    const [program = '', ...args] = argv;
    this.child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'], env });
    this.child.stdin?.end(input);
    this.child.stdout?.on('data', (chunk: Buffer) => void (this.out += chunk.toString()));
    this.child.stderr?.on('data', (chunk: Buffer) => void (this.err += chunk.toString()));
    this.ended = new Promise((resolve) => this.child.once('close', resolve));
    onTestFinished(async () => {
      this.child.kill('SIGKILL');
      await this.ended;
    });
  }

  static junction(...args: readonly string[]): Program {
    return new Program([process.execPath, JUNCTION, ...args], undefined, { ...process.env, TZ: 'UTC' });
  }

  /** Throws where it ends before. */
  async until(condition: () => boolean): Promise<void> {
    let hasEnded = false;
    void this.ended.then(() => (hasEnded = true));
    // Not by vi.waitUntil, which moves a clock that stands still for golden files.
    await eventually('what is waited for', () => condition() || hasEnded);
    if (!condition()) throw new Error(`it ended: ${this.out}${this.err}`);
  }
}

/** The real program in a host of the lab: what it is told, what it says, how it ends. */
import type { ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Host } from '../../../lab/host.ts';
import type { CommandResult } from '../../../lab/protocol.ts';
import { toolEnvironment } from '../../../lab/tools.ts';
import { eventually } from './eventually.ts';

export const PROGRAM = fileURLToPath(new URL('../../../bin/junction', import.meta.url));

const COMMAND_LIMIT_MS = 150_000;
/** Twice what it takes where a part hangs. */
const GRACE_MS = 10_000;

/** Runs it until it ends by itself. */
export function runProgram(host: Host, ...args: readonly string[]): Promise<CommandResult> {
  return host.exec([PROGRAM, ...args], { timeoutMs: COMMAND_LIMIT_MS });
}

export interface StartOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** A command that starts the program as its last words. */
  readonly before?: readonly string[];
  /** Unset: the one that was built. */
  readonly program?: readonly string[];
}

export class Program {
  readonly #child: ChildProcess;
  #log = '';
  #isClosed = false;

  static start(
    host: Host,
    args: readonly string[],
    { env = {}, before = [], program = [PROGRAM] }: StartOptions = {},
  ): Program {
    const child = host.spawn([...before, ...program, ...args], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...toolEnvironment(), ...env },
    });
    return new Program(child);
  }

  private constructor(child: ChildProcess) {
    this.#child = child;
    child.stderr?.on('data', (chunk: Buffer) => {
      this.#log += chunk.toString();
    });
    child.once('close', () => {
      this.#isClosed = true;
    });
  }

  /** Everything that it has said so far. */
  get log(): string {
    return this.#log;
  }

  get isRunning(): boolean {
    return !this.#isClosed;
  }

  async says(text: string | RegExp, from = 0): Promise<void> {
    const isSaid = (): boolean => {
      const said = this.#log.slice(from);
      return typeof text === 'string' ? said.includes(text) : text.test(said);
    };
    await eventually(
      () => `it says ${String(text)}; it said:\n${this.#log}`,
      () => {
        if (this.#isClosed && !isSaid())
          throw new Error(`junction ended without ${String(text)}: ${this.#log}`);
        return isSaid();
      },
    );
  }

  /** Both families' first rules are written. */
  async serves(): Promise<void> {
    await this.says(/"Serving" ipFamily="IPv4"/);
    await this.says(/"Serving" ipFamily="IPv6"/);
  }

  /** It ends by itself; answers the exit code. */
  async ended(): Promise<number | null> {
    await eventually(
      () => `its end; it said:\n${this.#log}`,
      () => this.#isClosed,
      COMMAND_LIMIT_MS,
    );
    return this.#child.exitCode;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | null> {
    if (!this.#isClosed) this.#child.kill(signal);
    return this.ended();
  }

  /** With SIGTERM; with SIGKILL where that does not end it. */
  async close(): Promise<void> {
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), GRACE_MS);
    await this.end('SIGTERM').finally(() => clearTimeout(timer));
  }
}

/** `junction ui` as a program, and a browser's questions to it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { onTestFinished } from 'vitest';

const PROGRAM = new URL('../../bin/junction', import.meta.url).pathname;

export class UiProgram {
  readonly child: ChildProcess;
  readonly ended: Promise<number | null>;
  out = '';
  err = '';

  constructor(args: readonly string[], input?: string, env: NodeJS.ProcessEnv = process.env) {
    this.child = spawn(process.execPath, [PROGRAM, 'ui', ...args], { stdio: ['pipe', 'pipe', 'pipe'], env });
    this.child.stdin?.end(input);
    this.child.stdout?.on('data', (chunk: Buffer) => void (this.out += chunk.toString()));
    this.child.stderr?.on('data', (chunk: Buffer) => void (this.err += chunk.toString()));
    this.ended = new Promise((resolve) => this.child.once('close', resolve));
    onTestFinished(async () => {
      this.child.kill('SIGKILL');
      await this.ended;
    });
  }

  /** Resolves when it serves. */
  static async serving(args: readonly string[], input?: string, env?: NodeJS.ProcessEnv): Promise<UiProgram> {
    const program = new UiProgram(args, input, env);
    const code = await Promise.race([program.ended, program.#printed()]);
    if (code !== undefined) throw new Error(`it ended with ${code}: ${program.out}${program.err}`);
    return program;
  }

  /** What it prints first. */
  get link(): string {
    return this.out.split('\n')[0] ?? '';
  }

  ask(path: string, init: RequestInit = {}): Promise<Response> {
    return fetch(new URL(path, this.link), init);
  }

  async json(path: string): Promise<unknown> {
    return (await this.ask(path)).json();
  }

  /** Resolves when the stream is there: what happens from then on is among the events. */
  async watch(): Promise<AsyncGenerator<Record<string, unknown>>> {
    const stopped = new AbortController();
    onTestFinished(() => stopped.abort());
    const response = await this.ask('/v1/watch?format=events', { signal: stopped.signal });
    if (!response.body) throw new Error('the stream has no body');
    return eventsOf(response.body.pipeThrough(new TextDecoderStream()));
  }

  #printed(): Promise<undefined> {
    return new Promise((resolve) => {
      this.child.stdout?.on('data', () => this.out.split('\n').length > 2 && resolve(undefined));
    });
  }
}

async function* eventsOf(chunks: AsyncIterable<string>): AsyncGenerator<Record<string, unknown>> {
  let rest = '';
  for await (const chunk of chunks) {
    const blocks = (rest + chunk).split('\n\n');
    rest = blocks.pop() ?? '';
    for (const block of blocks)
      if (block.startsWith('data: ')) yield JSON.parse(block.slice(6)) as Record<string, unknown>;
  }
}

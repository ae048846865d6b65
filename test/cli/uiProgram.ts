/** `junction ui` as a program, and a browser's questions to it. */
import { onTestFinished } from 'vitest';
import { JUNCTION } from '../support/programs.ts';
import { Program } from './program.ts';

export class UiProgram extends Program {
  /** Resolves when it serves. */
  static async serving(args: readonly string[], input?: string, env?: NodeJS.ProcessEnv): Promise<UiProgram> {
    const program = new UiProgram([process.execPath, JUNCTION, 'ui', ...args], input, env);
    await program.until(() => program.out.split('\n').length > 2);
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

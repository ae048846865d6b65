/** Runs the command line in this process, and keeps what it prints. */
import { main } from '../../src/cli/main.ts';
import type { Output } from '../../src/cli/output.ts';
import { printable } from '../../src/text/printable.ts';

export interface Run {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export function junction(...args: readonly string[]): Promise<Run> {
  return captured((output) => main(args, output));
}

export async function captured(command: (output: Output) => Promise<number>): Promise<Run> {
  let out = '';
  let err = '';
  const code = await command({
    out: (text) => void (out += printable(text)),
    err: (text) => void (err += printable(text)),
    painted: (text) => void (out += text),
  });
  return { code, out, err };
}

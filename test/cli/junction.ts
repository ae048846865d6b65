/** Runs the command line in this process, and keeps what it prints. */
import { main } from '../../src/cli/main.ts';
import { printable } from '../../src/text/printable.ts';

export interface Run {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export async function junction(...args: readonly string[]): Promise<Run> {
  let out = '';
  let err = '';
  const code = await main(args, {
    out: (text) => void (out += printable(text)),
    err: (text) => void (err += printable(text)),
    painted: (text) => void (out += text),
  });
  return { code, out, err };
}

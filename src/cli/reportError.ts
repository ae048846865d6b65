/** What a command says when it could not do what it was asked. */
import { isJunctionError } from '../errors.ts';
import { printableLine } from '../text/printable.ts';
import { UsageError } from './commands.ts';
import type { Output } from './output.ts';

/** Says what went wrong and what to do about it; returns the exit code. */
export function reportError(error: unknown, io: Output, program = 'junction'): number {
  if (error instanceof UsageError) {
    for (const problem of error.problems) io.err(`${program}: ${printableLine(problem)}\n`);
    if (error.see !== undefined) io.err(`  what to do: ${error.see}\n`);
    return 2;
  }
  if (isJunctionError(error)) {
    io.err(`${program}: ${printableLine(error.message)} (${error.code})\n`);
    if (error.detail !== undefined) io.err(`${error.detail.trimEnd()}\n`);
    io.err(`  what to do: ${printableLine(error.hint)}\n`);
    return 1;
  }
  io.err(`${program}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  return 1;
}

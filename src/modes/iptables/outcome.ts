/** What the end of an iptables command means: its exit status, and where that is not enough, its text. Pure. */
import { JunctionError } from '../../errors.ts';
import type { Argv, RunResult } from '../../system/processes.ts';
import type { Variant } from './version.ts';

export type Outcome =
  | 'done'
  /** Status 1, which means "it exists" to `-N` and "there is none" to `-C` and `-S`. */
  | 'no'
  | 'notFound'
  | 'lockHeld'
  | 'lockUnusable'
  | 'failed';

const NOT_FOUND: readonly string[] = [
  'No chain/target/match by that name',
  'No such file or directory',
  'does a matching rule exist',
  'does not exist',
];

export function outcomeOf(result: RunResult, variant: Variant): Outcome {
  if (result.code === 0) return 'done';
  const output = outputOf(result);
  // Before the not-found texts, because it ends in "No such file or directory".
  if (output.includes("can't open lock file")) return 'lockUnusable';
  if (output.includes('holding the xtables lock')) return 'lockHeld';
  // The nft variant takes no lock, and ends with 4 whenever the kernel refuses something.
  if (result.code === 4 && variant === 'legacy') return 'lockHeld';
  if (NOT_FOUND.some((text) => output.includes(text))) return 'notFound';
  return result.code === 1 ? 'no' : 'failed';
}

export function outputOf(result: RunResult): string {
  return `${result.stderr}${result.stdout}`.trim();
}

/** `failed with status 2: unknown option "--bogus"` */
export function printEnd(result: RunResult): string {
  const end = result.code === null ? `was killed by ${result.signal}` : `failed with status ${result.code}`;
  // The nft variant prints its name alone on a line, and the reason on the next.
  const lines = outputOf(result).split('\n');
  const reason = lines.find((line) => !/\(nf_tables\):\s*$/.test(line)) ?? '';
  return reason === '' ? end : `${end}: ${reason}`;
}

/** By a signal: it says nothing about what it was asked. */
export function killed(argv: Argv, result: RunResult): JunctionError {
  return new JunctionError('PROGRAM_KILLED', `${argv.join(' ')} ${printEnd(result)}`);
}

/** What the end of an iptables command means: its exit status, and where that is not enough, its text. Pure. */
import { JunctionError } from '../../errors.ts';
import type { Argv, RunResult } from '../../system/processes.ts';
import type { Variant } from './variant.ts';

export type Outcome =
  | 'done'
  /** Status 1, which means "it exists" to `-N` and "there is none" to `-C` and `-S`. */
  | 'no'
  | 'notFound'
  /** nft has put a rule there that iptables cannot print; of a chain that is not there 1.8.9 says the same. */
  | 'incompatible'
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
  if (isIncompatible(output)) return 'incompatible';
  if (NOT_FOUND.some((text) => output.includes(text))) return 'notFound';
  return result.code === 1 ? 'no' : 'failed';
}

/**
 * A save of such a table is a comment and a success; `-S` of such a chain ends with 1, and `-C` and `-D` with 3 where they meet
 * the rule before they find another. Other chains of the table can be read, and all can be written.
 */
export function isIncompatible(output: string): boolean {
  return INCOMPATIBLE.test(output);
}

const INCOMPATIBLE = /(?:^# T|t)able [`'].*' is incompatible|Parsing nftables rule failed/m;

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

/* Understanding why iptables-restore refused its input. Pure. */

export function restoreFailure(argv: Argv, result: RunResult, input: string): JunctionError {
  const output = outputOf(result);
  const line = failingLine(output, input);
  const place = line === undefined ? '' : ` (line ${line}${isCommit(input, line) ? ', the COMMIT' : ''})`;
  const detail = line === undefined ? output : `${output}\n${around(input, line)}`;
  return new JunctionError('IPTABLES_RESTORE_FAILED', `${argv.join(' ')} ${printEnd(result)}${place}`, {
    line,
    detail,
  });
}

/**
 * What 1.4 to 1.8.9 print, in the order in which they are trusted:
 *
 *     line 3: RULE_APPEND failed (No such file or directory): rule in chain X      nft, refused by the kernel
 *     iptables-restore: line 3 failed: No chain/target/match by that name.         nft, refused by the program
 *     iptables-restore: line 3 failed                                              legacy, either
 *     Error occurred at line: 3                                                    both, a rule that does not parse
 *     iptables-restore: COMMIT expected at line 4                                  both
 */
const LINE_TEXTS: readonly RegExp[] = [
  /^line (\d+): \w+ failed/m,
  /: line (\d+) failed/,
  /Error occurred at line: (\d+)/,
  /at line (\d+)/,
];

/** The refused line of the input, from 1, if the output names it. */
export function failingLine(output: string, input: string): number | undefined {
  return lineThatJumpsToMissingChain(output, input) ?? namedLine(output);
}

function namedLine(output: string): number | undefined {
  for (const pattern of LINE_TEXTS) {
    const line = pattern.exec(output)?.[1];
    if (line !== undefined) return Number(line);
  }
  return undefined;
}

/** The nft variant notices a missing jump target only at COMMIT, and then names that line. */
function lineThatJumpsToMissingChain(output: string, input: string): number | undefined {
  const chain = /Chain '([^']+)' does not exist/.exec(output)?.[1];
  if (chain === undefined) return undefined;
  const index = input.split('\n').findIndex((line) => {
    const words = line.split(' ');
    return words.some((word, at) => (word === '-j' || word === '-g') && words[at + 1] === chain);
  });
  return index < 0 ? undefined : index + 1;
}

/** Lines N−3..N+3 of the input, numbered, with an arrow at N. */
export function around(input: string, line: number): string {
  const lines = input.split('\n');
  const from = Math.max(1, line - 3);
  return lines
    .slice(from - 1, line + 3)
    .map((text, index) => `${from + index === line ? '>' : ' '} ${from + index}: ${text}`)
    .join('\n');
}

/** Whether the program itself was content, and the kernel refused the table as a whole. */
function isCommit(input: string, line: number): boolean {
  return input.split('\n')[line - 1] === 'COMMIT';
}

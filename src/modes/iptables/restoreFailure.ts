/** Understanding why iptables-restore refused its input. Pure. */

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
export function isCommit(input: string, line: number): boolean {
  return input.split('\n')[line - 1] === 'COMMIT';
}

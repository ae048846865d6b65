/**
 * Finding a rule in what iptables-save prints, for versions without `-C`. Pure.
 *
 * Save prints the parts of a rule in its own order and spelling, so rules are compared as unordered options, each with
 * its values, after undoing the differences of spelling that are known.
 */
export function savedRuleExists(saved: string, chain: string, args: readonly string[]): boolean {
  const wanted = canonical(args);
  const prefix = `-A ${chain} `;
  return saved
    .split('\n')
    .some((line) => line.startsWith(prefix) && canonical(splitWords(line.slice(prefix.length))) === wanted);
}

function canonical(words: readonly string[]): string {
  const options: string[][] = [];
  let negated = false;
  for (const word of words.map(canonicalWord)) {
    if (word === '!') {
      negated = true;
    } else if (word.startsWith('-')) {
      options.push(negated ? ['!', word] : [word]);
      negated = false;
    } else {
      options.at(-1)?.push(word);
    }
  }
  return JSON.stringify(options.map((option) => JSON.stringify(option)).sort());
}

function canonicalWord(word: string): string {
  return word
    .replace(/^0x0*(?=[0-9a-fA-F])/, '0x')
    .replace(/\/0x0*(?=[0-9a-fA-F])/, '/0x')
    .replace(/^([0-9.]+)\/32$/, '$1')
    .replace(/^([0-9a-fA-F:]+:[0-9a-fA-F:]*)\/128$/, '$1');
}

/** Splits a saved line at spaces; words may be in double quotes, with backslashes inside. */
export function splitWords(line: string): readonly string[] {
  const words = line.match(/"(?:[^"\\]|\\.)*"|\S+/g) ?? [];
  return words.map((word) => (word.startsWith('"') ? word.slice(1, -1).replace(/\\(.)/g, '$1') : word));
}

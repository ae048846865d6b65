/**
 * Texts of at most a few hundred kilobytes, none of them of any use, for which a YAML parser may take minutes or all memory.
 * `line`: where the first thing stands that is wrong.
 */
export interface SlowText {
  readonly name: string;
  readonly text: string;
  readonly line: number;
}

function lines(count: number, line: (index: number) => string): string {
  return `${Array.from({ length: count }, (_, index) => line(index)).join('\n')}\n`;
}

export const SLOW_TEXTS: readonly SlowText[] = [
  {
    name: 'a map of 30,000 keys with one of them twice',
    text: `${lines(30_000, (index) => `key${index}: x`)}key0: y\n`,
    line: 30_001,
  },
  {
    name: 'a flow map of 30,000 keys with one of them twice',
    text: `{${lines(30_000, (index) => `key${index}: x,`)} key0: y}\n`,
    line: 30_001,
  },
  {
    name: '20,000 anchors, each with an alias',
    text: lines(40_000, (index) => (index % 2 === 0 ? `- &a${index} x` : `- *a${index - 1}`)),
    line: 2002,
  },
  { name: 'keys in keys', text: `a: 1\n${'? '.repeat(60)}x\n`, line: 2 },
  { name: 'brackets in brackets', text: `a: 1\nb: ${'['.repeat(50_000)}\n`, line: 2 },
  { name: 'maps in maps', text: `a: 1\nb: ${'{x: '.repeat(50_000)}\n`, line: 2 },
  { name: 'lists in lists', text: `- 1\n${'- '.repeat(50_000)}x\n`, line: 2 },
  { name: 'indentation without end', text: lines(1500, (index) => `${' '.repeat(index)}a:`), line: 100 },
  { name: 'an error at each comma', text: `a: 1\nb: [${','.repeat(100_000)}]\n`, line: 2 },
  {
    name: 'aliases of aliases',
    text: `a: &a0 [x, x, x, x, x, x, x, x, x, x]\n${lines(20, (index) => `b${index}: &a${index + 1} [${`*a${index}, `.repeat(10)}]`)}`,
    line: 1,
  },
];

/** What counts as a difference between two printed texts. Those of each mode: test/cli/diff.test.ts. */
import { expect, test } from 'vitest';
import { printedDifferences, printedObjects } from '../../src/diff/printed.ts';

const chain = (...rules: readonly string[]): string =>
  ['*nat', ':A - [0:0]', ...rules.map((rule) => `-A A ${rule}`), 'COMMIT', ''].join('\n');
const set = (elements: string): string =>
  `table ip junction {\n\tset ips {\n\t\ttype ipv4_addr\n\t\telements = { ${elements} }\n\t}\n}\n`;

test.each([
  ['an element that moved is none', set('1,\n\t\t\t     2'), set('2,\n\t\t\t     1'), undefined],
  [
    'rules in another order',
    chain('1', '2'),
    chain('2', '1'),
    '~ chain nat A: the same rules in another order',
  ],
  ['a rule that is there twice', chain('1'), chain('1', '1'), '+ chain nat A: 1'],
  ['an empty chain', chain(), '*nat\nCOMMIT\n', '- chain nat A: '],
])('%s', (_, before, after, difference) => {
  const found = printedDifferences(printedObjects(before), printedObjects(after));
  expect(found.map(({ sign, object, text }) => `${sign} ${object}: ${text}`)).toEqual(
    difference === undefined ? [] : [difference],
  );
});

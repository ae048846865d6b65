/** Aligned tables. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { cellOf, type Column, tableLines } from '../../src/cli/table.ts';

const COLUMNS: readonly Column[] = [
  { title: 'NAME', least: 6 },
  { title: 'KIND' },
  { title: 'WHY', least: 8 },
];

function byStrings(rows: readonly (readonly string[])[], width: number): string {
  return [...tableLines(COLUMNS, rows, width)].join('');
}

const ROWS = [
  ['web', 'Service', 'it is there'],
  ['a-long-name-of-a-service', 'Node', ''],
  ['', '', 'alone'],
];

test('columns line up, and no line ends with a space', () => {
  expect(byStrings(ROWS, 100)).toBe(`NAME                      KIND     WHY
web                       Service  it is there
a-long-name-of-a-service  Node
                                   alone
`);
});

test('long cells are cut where the terminal is narrow, and not below what they need', () => {
  expect(byStrings(ROWS, 32)).toBe(`NAME        KIND     WHY
web         Service  it is there
a-long-na…  Node
                     alone
`);
  const narrow = byStrings(ROWS, 10).split('\n');
  expect(narrow[1]).toBe('web     Service  it is t…');
});

const cell = fc.string({ unit: fc.constantFrom(...'abc-./: '), maxLength: 20 }).map((text) => text.trim());
const rows = fc.array(fc.tuple(cell, cell, cell), { maxLength: 20 });

test('lines fit, or all columns are as narrow as they may be', () => {
  fc.assert(
    fc.property(rows, fc.integer({ min: 32, max: 80 }), (table, width) => {
      for (const line of byStrings(table, width).split('\n'))
        expect(line.length).toBeLessThanOrEqual(Math.max(width, 6 + 20 + 8 + 4));
    }),
  );
});

test.each([
  ['plain', 'plain'],
  ['a\tb', String.raw`a\tb`],
  ['\u001b[2J', String.raw`\u001b[2J`],
  ['\u202e', String.raw`\u202e`],
  ['ü', 'ü'],
])('cell of %j', (text, shown) => expect(cellOf(text)).toBe(shown));

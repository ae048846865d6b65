/** Aligned tables: of strings, and the same of bytes. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { alignTable, ByteTableReader, tableOfLines } from '../../src/cli/byteTable.ts';
import { cellOf, type Column, tableLines } from '../../src/cli/table.ts';

const COLUMNS: readonly Column[] = [
  { title: 'NAME', least: 6 },
  { title: 'KIND' },
  { title: 'WHY', least: 8 },
];

function byStrings(rows: readonly (readonly string[])[], width: number): string {
  return [...tableLines(COLUMNS, rows, width)].join('');
}

function byBytes(rows: readonly (readonly string[])[], width: number, cut = 7): string {
  const bytes = Buffer.from(
    rows
      .map(
        (row) => `${row.join('	')}
`,
      )
      .join(''),
  );
  const reader = new ByteTableReader(COLUMNS.length);
  for (let at = 0; at < bytes.length; at += cut) reader.add(bytes.subarray(at, at + cut));
  return alignTable(reader.finish(), COLUMNS, width).toString('utf8');
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

test('bytes give what strings give', () => {
  fc.assert(
    fc.property(rows, fc.integer({ min: 5, max: 80 }), (table, width) => {
      expect(byBytes(table, width)).toBe(byStrings(table, width));
    }),
  );
});

test('lines fit, or all columns are as narrow as they may be', () => {
  fc.assert(
    fc.property(rows, fc.integer({ min: 32, max: 80 }), (table, width) => {
      for (const line of byStrings(table, width).split('\n'))
        expect(line.length).toBeLessThanOrEqual(Math.max(width, 6 + 20 + 8 + 4));
    }),
  );
});

describe('bytes', () => {
  test.each([
    ['plain', true],
    ['\u001b[2J', false],
    ['ü', false],
    ['\r', false],
    ['\u007f', false],
    ['\0', false],
  ])('%j plain: %s', (text, isPlain) => {
    expect(tableOfLines([`${text}\ta\tb`], 3)).toMatchObject({ isPlain, rows: 1 });
  });

  test('a column that is not shown', () => {
    const table = tableOfLines(['a\tb\tc'], 3);
    expect(alignTable(table, [{ title: 'X' }, undefined, { title: 'Z' }], 80).toString()).toBe(
      'X  Z\na  c\n',
    );
  });

  test('the last cell of a row may be painted', () => {
    const table = tableOfLines(['a\tb\tok', 'a\tb\t'], 3);
    const painted = alignTable(table, COLUMNS, 80, () => ['<', '>']).toString();
    expect(painted).toBe('NAME  KIND  WHY\na     b     <ok>\na     b\n');
  });
});

test('a hundred thousand rows', () => {
  const many = Array.from({ length: 100_000 }, (_, index) => [`name-${index}`, 'x', 'y']);
  expect([...tableLines(COLUMNS, many, 80)]).toHaveLength(100_001);
});

test.each([
  ['plain', 'plain'],
  ['a\tb', String.raw`a\tb`],
  ['\u001b[2J', String.raw`\u001b[2J`],
  ['\u202e', String.raw`\u202e`],
  ['ü', 'ü'],
])('cell of %j', (text, shown) => expect(cellOf(text)).toBe(shown));

test('cells with a separator keep it', () => expect(cellOf('a\t\u001b\tb', '\t')).toBe('a\t\\u001b\tb'));

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { columnWidths, layoutFor, shownColumns } from '../../page/src/views/services/columns.ts';
import { rowAfterKey, rowWindow, scrollToRow } from '../../page/src/views/services/rowWindow.ts';

describe('rows that are in the document', () => {
  const viewports = fc.record({
    rows: fc.nat({ max: 30_000 }),
    rowHeight: fc.integer({ min: 20, max: 120 }),
    top: fc.integer({ min: -5000, max: 4_000_000 }),
    height: fc.nat({ max: 4000 }),
  });

  test('are all that are seen, and not many more', () => {
    fc.assert(
      fc.property(viewports, (viewport) => {
        const { rows, rowHeight, top, height } = viewport;
        const { first, end } = rowWindow(viewport);
        expect(first).toBeGreaterThanOrEqual(0);
        expect(end).toBeLessThanOrEqual(rows);
        for (const y of [top, top + height / 2, top + height - 1]) {
          const row = Math.floor(y / rowHeight);
          if (height > 0 && row >= 0 && row < rows) expect(first <= row && row < end).toBe(true);
        }
        expect(end - first).toBeLessThanOrEqual(height / rowHeight + 40);
      }),
    );
  });

  test('stay the same for some pixels', () => {
    const at = (top: number) => rowWindow({ rows: 1000, rowHeight: 36, top, height: 800 });
    const windows = new Set(Array.from({ length: 360 }, (_, pixel) => JSON.stringify(at(7200 + pixel))));
    expect(windows.size).toBeLessThan(8);
  });
});

test('a row that is scrolled to is seen', () => {
  fc.assert(
    fc.property(
      fc.nat({ max: 5000 }),
      fc.nat({ max: 100_000 }),
      fc.integer({ min: 36, max: 900 }),
      (index, top, height) => {
        const seen = { rowHeight: 36, top, height };
        const after = { ...seen, top: top + scrollToRow(index, seen) };
        expect(scrollToRow(index, after)).toBe(0);
        expect(index * 36).toBeGreaterThanOrEqual(after.top);
        expect(index * 36 + 36).toBeLessThanOrEqual(after.top + height);
      },
    ),
  );
});

test.each([
  ['ArrowDown', -1, 0],
  ['ArrowDown', 9, 9],
  ['ArrowDown', 3, 4],
  ['ArrowUp', -1, 9],
  ['ArrowUp', 0, 0],
  ['PageDown', -1, 4],
  ['PageDown', 7, 9],
  ['PageUp', 7, 3],
  ['PageUp', 2, 0],
  ['Home', 7, 0],
  ['End', 0, 9],
] as const)('%s from row %i goes to row %i', (key, from, to) => {
  expect(rowAfterKey(key, from, 10, 4)).toBe(to);
});

describe('columns', () => {
  test('fit, and the name, the endpoints and the state are always there', () => {
    for (let width = 620; width < 3000; width += 10) {
      const columns = shownColumns(width, ['rate']);
      expect(columns.reduce((sum, { least }) => sum + least, 0)).toBeLessThanOrEqual(width);
      expect(columns.map(({ name }) => name)).toEqual(
        expect.arrayContaining(['service', 'endpoints', 'state']),
      );
    }
  });

  test('without anything in it is left out', () => {
    expect(shownColumns(2560, []).map(({ name }) => name)).toContain('rate');
    expect(shownColumns(2560, ['rate']).map(({ name }) => name)).not.toContain('rate');
  });

  test('use the room that is there', () => {
    for (let width = 620; width < 3000; width += 10) {
      const columns = shownColumns(width, []);
      const widths = columnWidths(columns, width);
      const sum = widths.reduce((all, each) => all + each, 0);
      expect(sum).toBeLessThanOrEqual(width);
      expect(sum).toBeGreaterThan(width - columns.length);
      expect(columns.every(({ least }, index) => (widths[index] ?? 0) >= least)).toBe(true);
    }
  });

  test('narrow screens have cards', () => {
    expect([layoutFor(340).isCards, layoutFor(1240).isCards]).toEqual([true, false]);
  });
});

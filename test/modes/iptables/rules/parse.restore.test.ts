import { describe, expect, test } from 'vitest';
import type { MemoryTables } from './tables.ts';
import { parseRestore } from './restoreText.ts';
import { applyRestore, RestoreError } from './restore.ts';
import { RESTORE_CASES } from './restoreCases.ts';

const EMPTY: MemoryTables = new Map();

function rulesOf(tables: MemoryTables, table: string, chain: string): string[] | undefined {
  return tables
    .get(table)
    ?.get(chain)
    ?.rules.map(({ text }) => text);
}

function failureOf(restore: () => unknown): RestoreError {
  try {
    restore();
  } catch (error) {
    if (error instanceof RestoreError) return error;
    throw error;
  }
  throw new Error('the restore was accepted');
}

describe('the stand-in for the kernel', () => {
  test.each(RESTORE_CASES.filter((one) => !one.fails).map((one) => [one.name, one] as const))(
    'does: %s',
    (_, one) => {
      const state = applyRestore(EMPTY, one.state);
      expect(() => applyRestore(state, one.restore)).not.toThrow();
    },
  );

  test.each(RESTORE_CASES.filter((one) => one.fails).map((one) => [one.name, one] as const))(
    'refuses: %s',
    (_, one) => {
      const state = applyRestore(EMPTY, one.state);
      const error = failureOf(() => applyRestore(state, one.restore));
      expect(error.line).toBe(one.fails?.line);
      expect(error.reason).toMatch(one.fails?.reason ?? '');
      expect(error.after.get(error.table)).toBe(state.get(error.table));
    },
  );

  const state = applyRestore(
    EMPTY,
    '*filter\n:A - [0:0]\n-A A -s 1.1.1.1 -j DROP\n-A INPUT -j A\nCOMMIT\n*nat\n:N - [0:0]\nCOMMIT\n',
  );

  test('leaves the old state alone and shares what did not change', () => {
    const after = applyRestore(state, '*filter\n-A A -j DROP\nCOMMIT\n');
    expect(rulesOf(state, 'filter', 'A')).toEqual(['-s 1.1.1.1 -j DROP']);
    expect(rulesOf(after, 'filter', 'A')).toEqual(['-s 1.1.1.1 -j DROP', '-j DROP']);
    expect(after.get('nat')).toBe(state.get('nat'));
    expect(after.get('filter')?.get('INPUT')).toBe(state.get('filter')?.get('INPUT'));
  });

  test('a failure keeps what other tables have committed', () => {
    const error = failureOf(() =>
      applyRestore(state, '*filter\n:A - [0:0]\nCOMMIT\n*nat\n:N2 - [0:0]\n-X GONE\nCOMMIT\n'),
    );
    expect(error).toMatchObject({ table: 'nat', line: 6 });
    expect(rulesOf(error.after, 'filter', 'A')).toEqual([]);
    expect(error.after.get('nat')).toBe(state.get('nat'));
  });

  test('without --noflush a named table begins anew', () => {
    const after = applyRestore(state, '*filter\n:B - [0:0]\nCOMMIT\n', { noflush: false });
    expect([...(after.get('filter')?.keys() ?? [])]).toEqual(['INPUT', 'FORWARD', 'OUTPUT', 'B']);
    expect(rulesOf(after, 'filter', 'INPUT')).toEqual([]);
    expect(after.get('nat')).toBe(state.get('nat'));
  });

  test('takes operations as well as text', () => {
    const text = '*filter\n:A - [0:0]\n-A A -j RETURN\nCOMMIT\n';
    expect(applyRestore(state, parseRestore(text))).toEqual(applyRestore(state, text));
  });
});

import { expect, test } from 'vitest';
import { SHORTCUTS, ShortcutKeys } from '../../page/src/shortcuts.ts';

function pressed(...keys: readonly (readonly [key: string, at: number])[]): readonly unknown[] {
  const shortcuts = new ShortcutKeys();
  return keys.map(([key, at]) => shortcuts.press(key, at)).filter((action) => action !== undefined);
}

test.each(SHORTCUTS)('$keys: $meaning', ({ keys, action }) => {
  expect(pressed(...keys.map((key, index) => [key, index * 100] as const))).toEqual([action]);
});

test('no two are the same, and none is the beginning of another', () => {
  const texts = SHORTCUTS.map(({ keys }) => keys.join(' '));
  expect(new Set(texts).size).toBe(texts.length);
  expect(texts.filter((text) => texts.some((other) => other.startsWith(`${text} `)))).toEqual([]);
});

test('the second key comes in time, or counts by itself', () => {
  expect(pressed(['g', 0], ['s', 5000])).toEqual([]);
  expect(pressed(['g', 0], ['?', 5000])).toEqual([{ kind: 'help' }]);
  expect(pressed(['g', 0], ['x', 10], ['s', 20])).toEqual([]);
  expect(pressed(['g', 0], ['g', 10], ['s', 20])).toEqual([{ kind: 'go', address: '/services' }]);
});

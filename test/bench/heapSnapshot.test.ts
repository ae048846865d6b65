import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeHeapSnapshot } from 'node:v8';
import { afterAll, expect, test } from 'vitest';
import { summarizeHeap } from '../../bench/memory/heapSnapshot.ts';

const folder = mkdtempSync(join(tmpdir(), 'junction-heap-'));
afterAll(() => rmSync(folder, { recursive: true }));

class Marker {
  readonly text = 'a "quoted" \\ text, and one beyond Latin: Ж';
}

test('objects of a class and literals of a shape are counted, each with what only it has', async () => {
  const literals = Array.from({ length: 1234 }, (_, index) => ({ speckled: index / 3, hen: `${index}` }));
  const markers = Array.from({ length: 321 }, () => new Marker());
  const path = writeHeapSnapshot(join(folder, 'own.heapsnapshot'));
  expect(literals.length + markers.length).toBe(1555); // alive until here
  const groups = await summarizeHeap(path, 1_000_000);
  expect(groups.find(({ name }) => name === 'Marker')?.count).toBe(321);
  const shape = groups.find(({ name }) => name === '{speckled, hen}' || name === '{hen}');
  expect(shape?.count).toBeOneOf([1234, 1235]); // V8 may keep a pattern of its own
  expect(shape?.bytes).toBeGreaterThanOrEqual(1234 * 40);
  expect(groups.find(({ name }) => name === '(string)')?.count).toBeGreaterThan(1000);
});

test('what is no snapshot is refused', async () => {
  await expect(summarizeHeap(import.meta.filename ?? '', 10)).rejects.toThrow(
    /heap snapshot|JSON|Unexpected/,
  );
});

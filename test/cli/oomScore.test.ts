import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { giveWayToProxy } from '../../src/cli/oomScore.ts';

const folder = mkdtempSync(join(tmpdir(), 'junction-oom-'));
afterAll(() => rmSync(folder, { recursive: true }));

test.each([
  ['doctor', '-997\n', '1000'],
  ['explain', '-998\n', '1000'],
  [undefined, '-997\n', '1000'],
  ['doctor', '0\n', '0\n'],
  ['status', '500\n', '500\n'],
  ['run', '-997\n', '-997\n'],
  ['cleanup', '-997\n', '-997\n'],
])('%s with the score %j has %j', (command, before, after) => {
  const file = join(folder, 'oom_score_adj');
  writeFileSync(file, before);
  giveWayToProxy(command, file);
  expect(readFileSync(file, 'utf8')).toBe(after);
});

test('without /proc a command runs all the same', () => {
  expect(() => giveWayToProxy('doctor', join(folder, 'absent'))).not.toThrow();
});

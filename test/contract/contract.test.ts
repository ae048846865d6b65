/** What every mode must do, on kernels in memory. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { MEMORY_MODES } from './memory.ts';
import { ContractNode } from './node.ts';
import { type Case, parseSteps } from './parse.ts';
import { runCase } from './run.ts';

const FOLDER = join(import.meta.dirname, 'steps');
const CASES: readonly Case[] = readdirSync(FOLDER).flatMap((file) =>
  parseSteps(file, readFileSync(join(FOLDER, file), 'utf8')),
);

describe.each(Object.entries(MEMORY_MODES))('%s', (name, open) => {
  const mode = name.split(' ')[0] ?? '';
  const cases = CASES.filter(({ only }) => {
    const modes = [...only].filter((word) => ['iptables', 'ipvs', 'nftables'].includes(word));
    return modes.length === 0 || modes.includes(mode);
  });
  test.each(cases)('$title', async (each) => {
    const family = each.only.has('IPv6') ? 'IPv6' : 'IPv4';
    const run = runCase(new ContractNode(open(family), family), each);
    await expect(run).resolves.toBeUndefined();
  });
});

test('a step that nobody knows is an error with its file and line', () => {
  expect(() => parseSteps('a.steps', '## one\nserve\n  a/x 10.96.0.1 80\nkernel sings\n')).toThrow(
    'a.steps:4: unknown step "kernel sings"',
  );
});

/** What every mode must do, on kernels in memory. */
import { describe, expect, test } from 'vitest';
import { casesFor, casesWithOthers, parseSteps } from './parse.ts';
import { MECHANISMS, memorySide, modeOf } from './memory.ts';
import { NftSide } from './memoryNft.ts';
import { ContractNode } from './node.ts';
import { runCase } from './run.ts';

describe.each(MECHANISMS)('%s', (mechanism) => {
  test.each(casesFor(modeOf(mechanism)))('$title', async (each) => {
    const run = runCase(new ContractNode(memorySide(mechanism, each.family), each.family), each);
    await expect(run).resolves.toBeUndefined();
  });
});

describe('nftables, a table that others can change', () => {
  test.each(casesWithOthers('nftables'))('$title', async (each) => {
    const run = runCase(new ContractNode(new NftSide(each.family, false), each.family), each);
    await expect(run).resolves.toBeUndefined();
  });
});

test.each([
  ['## one\nserve\n  a/x 10.96.0.1 80\nkernel sings\n', 'a.steps:4: unknown step "kernel sings"'],
  ['serve\n', 'a.steps:1: a case begins with "## title"'],
  ['## one [iptables windows]\n', 'a.steps:1: unknown word "windows"'],
])('%j is an error with its file and line', (text, message) => {
  expect(() => parseSteps('a.steps', text)).toThrow(message);
});

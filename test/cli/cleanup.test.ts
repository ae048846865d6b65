/** `junction cleanup`: that a dry run only says what it would do, and what each mode would remove. What it prints: golden/cleanup.txt. */
import { describe, expect, test } from 'vitest';
import { cleaned, writtenKernel } from './cleaned.ts';

test('a dry run changes nothing', async () => {
  const kernel = await writtenKernel();
  const before = kernel.save('nat');
  const { commands } = await cleaned(kernel);
  expect(commands.filter((command) => /restore --| -D /.test(command))).toEqual([]);
  expect(kernel.save('nat')).toBe(before);
});

test('JSON names each chain and rule', async () => {
  const { out } = await cleaned(await writtenKernel(), { output: 'json' });
  const { removed } = JSON.parse(out) as {
    readonly removed: readonly { chains: object[]; rules: object[] }[];
  };
  expect(removed[0]?.chains).toHaveLength(12);
  expect(removed[0]?.chains).toContainEqual({ table: 'nat', chain: 'KUBE-SERVICES' });
  expect(removed[0]?.rules).toContainEqual({ table: 'filter', rule: 'INPUT -j KUBE-FIREWALL' });
});

describe('of one mode', () => {
  const OURS = ['junction-a', 'junction-b', 'junction', 'junction-backstop', 'junction-trial'];

  test.each([
    ['all', undefined, [...OURS, 'kube-proxy'], true],
    // Our tables alone, never kube-proxy's, also while it runs in the same mode.
    ['nftables', undefined, OURS, false],
    ['nftables', 'nftables', OURS, false],
    ['iptables', 'nftables', [], true],
    ['ipvs', 'nftables', [], true],
  ] as const)('%s, while %s runs: the tables %j', async (mode, running, tables, asksIptables) => {
    const { names, commands } = await cleaned(undefined, { mode }, { runningMode: async () => running });
    expect({ names, asksIptables: commands.length > 0 }).toEqual({ names: tables, asksIptables });
  });

  test.each(['iptables', 'ipvs'] as const)('%s, while a proxy runs in it: nothing', async (mode) => {
    const asked = cleaned(undefined, { mode, dryRun: false }, { runningMode: async () => mode });
    await expect(asked).rejects.toThrow(`a service proxy runs here in the ${mode} mode`);
  });
});

/** The runner's verbs by the real programs, both variants, in a network namespace. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type ChainLook, IptablesClient } from '../../../src/modes/iptables/client.ts';
import type { Table } from '../../../src/modes/iptables/rules/rule.ts';
import { type Namespace, openNamespace, requireNamespaces } from '../../system/support/namespace.ts';

const CASES = [
  { variant: 'nft', family: 'IPv4' },
  { variant: 'nft', family: 'IPv6' },
  { variant: 'legacy', family: 'IPv4' },
  { variant: 'legacy', family: 'IPv6' },
] as const;

describe.each(CASES)('$variant, $family', ({ variant, family }) => {
  let namespace: Namespace;
  let client: IptablesClient;
  beforeEach(async (context) => {
    requireNamespaces(context);
    namespace = await openNamespace();
    client = await openClient(namespace, variant, family);
  });
  afterEach(() => namespace.close());
  const jump = ['-m', 'comment', '--comment', 'kubernetes service portals', '-j', 'KUBE-SERVICES'];

  it('makes, sees, empties and deletes chains and rules, and leaves those of others alone', async () => {
    expect([client.variant, await state(client, 'nat', 'POSTROUTING')]).toEqual([variant, 'present']);
    expect(await client.deleteRule('nat', 'PREROUTING', jump)).toBe(false); // its target is missing too
    expect(await client.checkRule('nat', 'NO-SUCH-CHAIN', ['-j', 'ACCEPT'])).toBe(false);
    expect(await client.ensureChain('nat', 'KUBE-SERVICES')).toBe(false);
    expect(await client.ensureChain('nat', 'KUBE-SERVICES')).toBe(true);
    expect(await client.ensureRule('append', 'nat', 'PREROUTING', ['-j', 'ACCEPT'])).toBe(false);
    expect(await client.ensureRule('prepend', 'nat', 'PREROUTING', jump)).toBe(false);
    expect(await client.ensureRule('prepend', 'nat', 'PREROUTING', jump)).toBe(true);
    expect((await client.save('nat')).match(/^-A .*$/gm)).toEqual([
      '-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES',
      '-A PREROUTING -j ACCEPT',
    ]);
    await expect(client.deleteChain('nat', 'KUBE-SERVICES')).rejects.toMatchObject({
      code: 'IPTABLES_FAILED',
    });
    expect(await client.deleteRule('nat', 'PREROUTING', jump)).toBe(true);
    expect(await client.checkRule('nat', 'PREROUTING', jump)).toBe(false);
    expect(await client.flushChain('nat', 'KUBE-SERVICES')).toBe(true);
    expect(await client.deleteChain('nat', 'KUBE-SERVICES')).toBe(true);
    expect(await client.deleteChain('nat', 'KUBE-SERVICES')).toBe(false);
    await client.restore('nat', '*nat\n:KUBE-A - [7:70]\n[3:30] -A KUBE-A -j RETURN\nCOMMIT\n');
    expect((await client.save('nat', true)).match(/^\[.*-A .*$/gm)).toEqual([
      '[0:0] -A PREROUTING -j ACCEPT',
      // ip6tables-nft-restore 1.8.9 drops the counters of rules.
      `${variant === 'nft' && family === 'IPv6' ? '[0:0]' : '[3:30]'} -A KUBE-A -j RETURN`,
    ]);
  });

  const setup = '*nat\n:X - [0:0]\n-A X -j ACCEPT\n';
  it.each([
    { name: 'an unknown option', input: `${setup}-A X --bogus 1\nCOMMIT\n`, line: 4 },
    {
      name: 'a missing target',
      input: `${setup}-A X -j NOSUCH\n-A X -j RETURN\n-A X -j RETURN\nCOMMIT\n`,
      line: 4,
    },
    { name: 'a missing chain', input: `${setup}-A NOSUCH -j ACCEPT\nCOMMIT\n`, line: 4 },
    { name: 'a missing chain to delete', input: `${setup}-X NOSUCH\nCOMMIT\n`, line: 4 },
    { name: 'a chain in use', input: `${setup}:Y - [0:0]\n-A X -j Y\n-X Y\nCOMMIT\n`, line: 6 },
    { name: 'garbage', input: `${setup}garbage\nCOMMIT\n`, line: 4 },
    { name: 'no COMMIT', input: setup, line: 4 },
    { name: 'a bad table', input: '*bogus\nCOMMIT\n', line: 1 },
    // Legacy learns of it from the kernel, when everything is handed over.
    {
      name: 'a loop',
      input: '*nat\n:X - [0:0]\n:Y - [0:0]\n-A X -j Y\n-A Y -j X\n-A PREROUTING -j X\nCOMMIT\n',
      line: variant === 'legacy' ? 7 : 6,
    },
  ])('names the line of $name', async ({ input, line }) => {
    const failure: unknown = await client.restore(undefined, input).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: 'IPTABLES_RESTORE_FAILED', line });
    expect(failure).toHaveProperty(
      'detail',
      expect.stringContaining(`> ${line}: ${input.split('\n')[line - 1]}`),
    );
    expect(await state(client, 'nat', 'X')).toBe('absent');
  });
});

function openClient(
  { runner, lockPath }: Namespace,
  variant: 'nft' | 'legacy',
  family: 'IPv4' | 'IPv6',
): Promise<IptablesClient> {
  return IptablesClient.open({ family, variant, runner, lockPath });
}

async function state(client: IptablesClient, table: Table, chain: string): Promise<ChainLook['state']> {
  return (await client.lookForChain(table, chain)).state;
}

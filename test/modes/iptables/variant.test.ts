import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { chooseVariant } from '../../../src/modes/iptables/variant.ts';
import type { NftLook } from '../../../src/modes/iptables/nftLook.ts';
import { fakeRunner } from '../../system/support/fakeRunner.ts';
import { inside, output } from '../../system/support/inside.ts';
import { type Namespace, openNamespace, requireNamespaces } from '../../system/support/namespace.ts';

const rules = (count: number): string => `*filter\n${'-A INPUT -j ACCEPT\n'.repeat(count)}COMMIT\n`;
const hint = (chain: string): string => `*mangle\n:${chain} - [0:0]\nCOMMIT\n`;

/** nf_tables with so many rules of iptables, and these chains in mangle. */
function fakeNft(count: number, ...chains: readonly string[]): NftLook {
  return {
    hasChain: (table, chain) => table === 'mangle' && chains.includes(chain),
    countRules: (most) => Math.min(count, most + 1),
  };
}

describe('auto', () => {
  it.each([
    {
      name: 'kubelet in nft',
      nft: fakeNft(0, 'KUBE-IPTABLES-HINT'),
      answers: {},
      chosen: ['nft', 'iptables-nft', "kubelet's chain KUBE-IPTABLES-HINT is in the nft variant"],
    },
    {
      name: 'kubelet in legacy',
      nft: fakeNft(3),
      answers: {
        'cat /proc/net/ip_tables_names': 'mangle\n',
        'iptables-legacy-save -t mangle': hint('KUBE-KUBELET-CANARY'),
      },
      chosen: ['legacy', 'iptables', "kubelet's chain KUBE-KUBELET-CANARY is in the legacy variant"],
    },
    {
      name: 'more rules in nft',
      nft: fakeNft(130_000),
      answers: { 'cat /proc/net/ip_tables_names': 'filter\n', 'iptables-legacy-save': rules(8) },
      chosen: ['nft', 'iptables-nft', 'the nft variant holds more than 16 rules, legacy 8'],
    },
    {
      name: 'nearly as many rules in both',
      nft: fakeNft(30),
      answers: { 'cat /proc/net/ip_tables_names': 'filter\n', 'iptables-legacy-save': rules(29) },
      chosen: ['legacy', 'iptables', 'iptables is the legacy variant, and no rules speak against it'],
    },
    {
      name: 'fewer rules in nft',
      nft: fakeNft(4),
      answers: { 'cat /proc/net/ip_tables_names': 'filter\n', 'iptables-legacy-save': rules(12) },
      chosen: ['legacy', 'iptables', 'the nft variant holds 4 rules, legacy 12'],
    },
    {
      name: 'kubelet in nft, whose programs are missing',
      nft: fakeNft(30, 'KUBE-KUBELET-CANARY'),
      answers: { 'iptables-nft-save --version': undefined },
      chosen: ['legacy', 'iptables', 'iptables is the legacy variant, and no rules speak against it'],
    },
    {
      name: 'nothing to see',
      nft: fakeNft(0),
      answers: {},
      chosen: ['legacy', 'iptables', 'iptables is the legacy variant, and no rules speak against it'],
    },
  ])('$name, where iptables is legacy', async ({ answers, nft, chosen }) => {
    const table: Readonly<Record<string, string | undefined>> = {
      'iptables --version': 'iptables v1.8.9 (legacy)',
      ...answers,
    };
    const { runner } = fakeRunner((command) =>
      command in table && table[command] === undefined ? 'missing' : { stdout: table[command] ?? '' },
    );
    const { variant, programs, reason } = await chooseVariant('IPv4', 'auto', runner, nft);
    expect([variant, programs.iptables, reason]).toEqual(chosen);
  });

  it('lists no rules of the nft variant, and does not touch legacy where the kernel holds none of its tables', async () => {
    const { runner, commands } = fakeRunner((command) =>
      command === 'ip6tables --version' ? { stdout: 'ip6tables v1.8.9 (nf_tables)' } : {},
    );
    await chooseVariant('IPv6', 'auto', runner, fakeNft(0));
    expect(commands).toEqual(['ip6tables --version', 'cat /proc/net/ip6_tables_names']);
  });

  it('takes the only variant there is', async () => {
    const { runner } = fakeRunner((command) => (command.includes('legacy') ? {} : 'missing'));
    expect(await chooseVariant('IPv4', 'auto', runner, fakeNft(0))).toEqual({
      variant: 'legacy',
      programs: {
        iptables: 'iptables-legacy',
        save: 'iptables-legacy-save',
        restore: 'iptables-legacy-restore',
      },
      reason: 'only the legacy variant is installed',
    });
  });
});

describe('an explicit choice', () => {
  it.each([
    ['nft', 'ip6tables-nft'],
    ['legacy', 'ip6tables-legacy'],
    ['system', 'ip6tables'],
  ] as const)('%s is %s, and nothing is run', async (choice, program) => {
    const { runner, commands } = fakeRunner(() => undefined);
    const { programs } = await chooseVariant('IPv6', choice, runner);
    expect(programs).toEqual({ iptables: program, save: `${program}-save`, restore: `${program}-restore` });
    expect(commands).toEqual([]);
  });
});

describe('auto on a real kernel', () => {
  let namespace: Namespace;
  beforeEach(async (context) => {
    requireNamespaces(context);
    namespace = await openNamespace();
  });
  afterEach(() => namespace.close());

  async function choose(): Promise<unknown> {
    const source = `import { chooseVariant } from './src/modes/iptables/variant.ts';
      import { run } from './src/system/processes.ts';
      const { variant, reason } = await chooseVariant('IPv4', 'auto', run);
      console.log(JSON.stringify({ variant, reason }));`;
    return inside(namespace, 'variant', source);
  }

  it.each(['nft', 'legacy'] as const)('finds kubelet in %s', async (variant) => {
    await output(namespace, `iptables-${variant}`, '-t', 'mangle', '-N', 'KUBE-IPTABLES-HINT');
    expect(await choose()).toEqual({
      variant,
      reason: `kubelet's chain KUBE-IPTABLES-HINT is in the ${variant} variant`,
    });
  });

  it('counts rules of iptables in the tables of iptables, and no others', async () => {
    await output(namespace, 'iptables-legacy', '-t', 'nat', '-N', 'LEGACY');
    for (let count = 0; count < 20; count++) {
      await output(namespace, 'nft', 'add table ip other; add chain ip other c; add rule ip other c counter');
      await output(namespace, 'nft', 'add table ip raw; add chain ip raw c; add rule ip raw c accept');
    }
    expect(await choose()).toMatchObject({ reason: expect.stringContaining('no rules speak against it') });
    for (let count = 0; count < 10; count++)
      await output(namespace, 'iptables-nft', '-A', 'INPUT', '-j', 'ACCEPT');
    expect(await choose()).toEqual({
      variant: 'nft',
      reason: 'the nft variant holds more than 9 rules, legacy 0',
    });
  });

  it('leaves an empty kernel without legacy tables', async () => {
    await choose();
    expect(await output(namespace, 'cat', '/proc/net/ip_tables_names')).toBe('');
    expect(await output(namespace, 'iptables-nft-save')).toBe('');
  });
});

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { chooseVariant } from '../../../src/modes/iptables/variant.ts';
import { fakeRunner } from '../../system/support/fakeRunner.ts';
import { type Namespace, openNamespace, requireNamespaces } from '../../system/support/namespace.ts';

const rules = (count: number): string => `*filter\n${'-A INPUT -j ACCEPT\n'.repeat(count)}COMMIT\n`;
const hint = (chain: string): string => `*mangle\n:${chain} - [0:0]\nCOMMIT\n`;

describe('auto', () => {
  it.each([
    {
      name: 'kubelet in nft',
      answers: { 'iptables-nft-save -t mangle': hint('KUBE-IPTABLES-HINT') },
      chosen: ['nft', 'iptables-nft', "kubelet's chain KUBE-IPTABLES-HINT is in the nft variant"],
    },
    {
      name: 'kubelet in legacy',
      answers: {
        'cat /proc/net/ip_tables_names': 'mangle\n',
        'iptables-legacy-save -t mangle': hint('KUBE-KUBELET-CANARY'),
      },
      chosen: ['legacy', 'iptables', "kubelet's chain KUBE-KUBELET-CANARY is in the legacy variant"],
    },
    {
      name: 'more rules in nft',
      answers: {
        'iptables-nft-save': rules(30),
        'cat /proc/net/ip_tables_names': 'filter\n',
        'iptables-legacy-save': rules(3),
      },
      chosen: ['nft', 'iptables-nft', 'the nft variant holds 30 rules, legacy 3'],
    },
    {
      name: 'nearly as many rules in both',
      answers: {
        'iptables-nft-save': rules(30),
        'cat /proc/net/ip_tables_names': 'filter\n',
        'iptables-legacy-save': rules(29),
      },
      chosen: ['legacy', 'iptables', 'iptables is the legacy variant, and no rules speak against it'],
    },
    {
      name: 'nothing to see',
      answers: {},
      chosen: ['legacy', 'iptables', 'iptables is the legacy variant, and no rules speak against it'],
    },
  ])('$name, where iptables is legacy', async ({ answers, chosen }) => {
    const table: Readonly<Record<string, string | undefined>> = {
      'iptables --version': 'iptables v1.8.9 (legacy)',
      ...answers,
    };
    const { runner } = fakeRunner((command) => ({ stdout: table[command] ?? '' }));
    const { variant, programs, reason } = await chooseVariant('IPv4', 'auto', runner);
    expect([variant, programs.iptables, reason]).toEqual(chosen);
  });

  it('does not touch legacy where the kernel holds none of its tables', async () => {
    const { runner, commands } = fakeRunner((command) =>
      command === 'ip6tables --version' ? { stdout: 'ip6tables v1.8.9 (nf_tables)' } : {},
    );
    await chooseVariant('IPv6', 'auto', runner);
    expect(commands).toEqual([
      'ip6tables --version',
      'cat /proc/net/ip6_tables_names',
      'ip6tables-nft-save -t mangle',
      'ip6tables-nft-save',
    ]);
  });

  it('takes the only variant there is', async () => {
    const { runner } = fakeRunner((command) => (command.includes('legacy') ? {} : 'missing'));
    expect(await chooseVariant('IPv4', 'auto', runner)).toEqual({
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

  it.each(['nft', 'legacy'] as const)('finds kubelet in %s', async (variant) => {
    await namespace.runner([`iptables-${variant}`, '-t', 'mangle', '-N', 'KUBE-IPTABLES-HINT']);
    const chosen = await chooseVariant('IPv4', 'auto', namespace.runner);
    expect(chosen).toMatchObject({
      variant,
      reason: `kubelet's chain KUBE-IPTABLES-HINT is in the ${variant} variant`,
    });
  });

  it('leaves an empty kernel without legacy tables', async () => {
    await chooseVariant('IPv4', 'auto', namespace.runner);
    expect((await namespace.runner(['cat', '/proc/net/ip_tables_names'])).stdout).toBe('');
    expect((await namespace.runner(['iptables-nft-save'])).stdout).toBe('');
  });
});

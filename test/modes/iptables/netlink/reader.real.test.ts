/** What is read by netlink is what `iptables-save` prints: chains, policies, rules, counters. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Family } from '../../../../src/model/ip.ts';
import { LAYOUTS } from '../../../../src/modes/iptables/rules/layouts/index.ts';
import { type ParsedChain, parseSave, type Tables } from '../../../../src/modes/iptables/rules/parse.ts';
import { ruleKey } from '../../../../src/modes/iptables/rules/print.ts';
import { inside, output } from '../../../system/support/inside.ts';
import { type Namespace, openNamespace, requireNamespaces } from '../../../system/support/namespace.ts';
import { restoreText } from '../rules/goldenCluster.ts';
import { LAYOUT_NAMES } from '../rules/layoutNames.ts';

const FAMILIES = { IPv4: 'iptables', IPv6: 'ip6tables' } as const;

/** Of another program, in its own chains and in ours. */
const FOREIGN = `*filter
:FOREIGN - [0:0]
[5:300] -A FOREIGN -p tcp -m tcp --dport 22 -j ACCEPT
-A FOREIGN -m limit --limit 5/min -j LOG --log-prefix "a b "
-A INPUT -j FOREIGN
COMMIT
`;

let namespace: Namespace;
beforeEach(async (context) => {
  requireNamespaces(context);
  namespace = await openNamespace();
});
afterEach(() => namespace.close());

async function restore(family: Family, text: string): Promise<void> {
  const argv = [`${FAMILIES[family]}-nft-restore`, '--noflush', '--counters'] as const;
  const { code, stderr } = await namespace.runner(argv, { stdin: text });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
}

interface Read {
  readonly policy?: string;
  readonly isInPlace: boolean;
  readonly rules: readonly (readonly [key: string, packets: number, bytes: number])[];
}
type ReadChains = Readonly<Record<string, Read>>;

/** `wanted`: an expression in the program. */
async function read(family: Family, table: string, wanted = 'new Set()'): Promise<ReadChains> {
  const source = `
    import { withChannel } from './src/netlink/channel.ts';
    import { NETLINK_NETFILTER } from './src/netlink/socket.ts';
    import { NetlinkChainReader } from './src/modes/iptables/netlink/reader.ts';
    import { IN_PLACE, parseSave } from './src/modes/iptables/rules/parse.ts';
    import { ruleKey } from './src/modes/iptables/rules/print.ts';
    import { restoreText } from './test/modes/iptables/rules/goldenCluster.ts';
    const family = '${family}';
    await withChannel(NETLINK_NETFILTER, async (channel) => {
      const reader = new NetlinkChainReader(family, channel);
      const chains = await reader.readTable('${table}', async () => ${wanted});
      const show = ([name, { policy, rules }], chain) => [name, {
        policy,
        isInPlace: chains.get(name) === IN_PLACE,
        rules: rules.map((rule) => [ruleKey(rule), rule.counters.packets, rule.counters.bytes]),
      }];
      console.log(JSON.stringify(Object.fromEntries([...(chains ?? [])].map(show))));
    });`;
  return (await inside(namespace, 'reader', source)) as ReadChains;
}

async function saved(family: Family, table: string): Promise<Tables> {
  return parseSave(await output(namespace, `${FAMILIES[family]}-nft-save`, '-c', '-t', table));
}

function isEmptyBase(name: string, chains: ReadonlyMap<string, ParsedChain> | undefined): boolean {
  const chain = chains?.get(name);
  return chain?.policy !== undefined && chain.rules.length === 0;
}

describe.each(['IPv4', 'IPv6'] as const)('%s', (family) => {
  it.each(LAYOUT_NAMES)('layout %s: the same chains and rules', async (layout) => {
    await restore(family, FOREIGN);
    await restore(family, restoreText({ family, layout }));
    for (const table of ['filter', 'nat']) {
      const saves = (await saved(family, table)).get(table);
      const expected = [...(saves ?? [])].map(([name, chain]): readonly [string, unknown] => {
        const { policy, rules } = chain;
        const printed = rules.map((rule) => [
          // What we have no word for equals no rule of ours, and is said in other words.
          JSON.stringify(rule).includes('"other"') ? expect.any(String) : ruleKey(rule),
          rule.counters?.packets,
          rule.counters?.bytes,
        ]);
        return [name, { ...(policy !== undefined && { policy }), isInPlace: false, rules: printed }];
      });
      const chains = await read(family, table);
      // iptables prints its own chains also where the kernel has none.
      const present = expected.filter(([name]) => !isEmptyBase(name, saves) || name in chains);
      expect(chains).toEqual(Object.fromEntries(present));
    }
  });

  it.each(LAYOUT_NAMES)('layout %s: chains of services that are as wanted are not read', async (layout) => {
    const text = restoreText({ family, layout });
    await restore(family, text);
    const wanted = `new Set(
      [...parseSave(restoreText({ family, layout: '${layout}' }).replaceAll(/^-I.*\\n/gm, '')).get('nat')]
        .map(([name, { rules }]) => reader.digest(name, rules)))`;
    const chains = await read(family, 'nat', wanted);
    const inPlace = Object.keys(chains).filter((name) => chains[name]?.isInPlace);
    const names = Object.keys(chains).filter((name) => /^KUBE-(SVC|SVL|SEP|EXT|FW|XLB)-/.test(name));
    expect(names.length).toBeGreaterThan(10);
    expect(inPlace).toEqual(names);
    const tampered = names[3] ?? '';
    await output(namespace, `${FAMILIES[family]}-nft`, '-t', 'nat', '-A', tampered, '-j', 'ACCEPT');
    const after = await read(family, 'nat', wanted);
    expect(Object.keys(after).filter((name) => after[name]?.isInPlace)).toEqual(
      names.filter((name) => name !== tampered),
    );
  });
});

it('rules of nft that iptables has no words for are read as such', async () => {
  await output(namespace, 'iptables-nft', '-t', 'nat', '-N', 'KUBE-SERVICES');
  await output(namespace, 'nft', 'add rule ip nat KUBE-SERVICES ct state new tcp dport { 80, 443 } accept');
  const { 'KUBE-SERVICES': chain } = await read('IPv4', 'nat');
  expect(chain?.rules).toHaveLength(1);
  const known = Object.values(LAYOUTS).flatMap(({ jumps }) => jumps.map(({ rule }) => ruleKey(rule)));
  expect(known).not.toContain(chain?.rules[0]?.[0]);
});

it('a table that is not there is none', async () => {
  expect(await read('IPv4', 'nat')).toEqual({});
});

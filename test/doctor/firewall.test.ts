import { describe, expect, test } from 'vitest';
import { checkFirewall } from '../../src/doctor/firewall.ts';
import type { NftBaseChain } from '../../src/doctor/machine.ts';
import { codesOf, type FakeMachine, fakeMachine, groupOf } from './fakeMachine.ts';

type Hook = NftBaseChain['hook'];
const chain = (table: string, name: string, hook: Hook, policy: 'accept' | 'drop' = 'accept') =>
  ({ family: 'ip', table, name, hook, policy, priority: 0 }) as const;
const NFT = [chain('filter', 'FORWARD', 'forward'), chain('nat', 'PREROUTING', 'prerouting')];
const look = (fake: FakeMachine) =>
  groupOf((group) => checkFirewall(group, fakeMachine({ chains: NFT, ...fake }), ['IPv4']));

/** As a variant of iptables prints a chain, whose policy is to accept. */
function listing(table: string, name: string, rules: readonly string[], variant = 'nft') {
  const lines = [`-P ${name} ACCEPT`, ...rules.map((rule) => `-A ${name} ${rule}`), ''];
  return { [`iptables-${variant} -w 5 -t ${table} -S ${name}`]: lines.join('\n') };
}
const forward = (...rules: readonly string[]) => listing('filter', 'FORWARD', rules);
const PORTALS = '-m comment --comment "kubernetes service portals" -j KUBE-SERVICES';
const BOTH = {
  ...listing('nat', 'PREROUTING', [PORTALS]),
  ...listing('nat', 'PREROUTING', [PORTALS], 'legacy'),
};

describe('firewall', () => {
  test('our jumps, and conditions of others before them', async () => {
    const invalid = '-m conntrack --ctstate INVALID -j DROP';
    const programs = {
      ...forward(invalid, '-j ACCEPT', '-j KUBE-FORWARD'),
      ...listing('nat', 'PREROUTING', [PORTALS]),
    };
    const group = await look({ programs });
    expect(codesOf(group)).toEqual([]);
    expect(group.fine).toContain('IPv4: rules are in the nft variant of iptables alone');
  });

  const DROP = '-m comment --comment "no; \\"really\\"" -j DROP';
  test.each<readonly [string, FakeMachine, string, string]>([
    [
      'error foreign-rule-before-ours',
      { programs: forward(DROP, '-j KUBE-FORWARD') },
      `iptables-nft -t filter: -A FORWARD ${DROP}`,
      `iptables-nft -t filter -D FORWARD ${DROP}`,
    ],
    [
      // It keeps packets from being translated; in filter it keeps nothing from anywhere.
      'error foreign-rule-before-ours',
      { programs: listing('nat', 'PREROUTING', ['-j ACCEPT', '-j KUBE-SERVICES']) },
      'iptables-nft -t nat: -A PREROUTING -j ACCEPT',
      'iptables-nft -t nat -D PREROUTING -j ACCEPT',
    ],
    [
      'warning forward-policy-drop',
      { chains: [chain('filter', 'forward', 'forward', 'drop')] },
      'policy drop',
      "nft chain ip filter forward '{ policy accept; }'",
    ],
    [
      'warning forward-policy-drop',
      {
        files: { 'net/ip_tables_names': 'filter\n' },
        programs: { 'iptables-legacy -w 5 -t filter -S FORWARD': '-P FORWARD DROP\n' },
      },
      'iptables-legacy table filter, chain FORWARD',
      'iptables-legacy -P FORWARD ACCEPT',
    ],
    [
      'warning iptables-both-variants',
      { files: { 'net/ip_tables_names': 'nat\n' }, programs: BOTH },
      'nft: nat PREROUTING 1 rules; legacy: nat PREROUTING 1 rules',
      'iptables',
    ],
  ])('%s: %j', async (code, machine, evidence, cure) => {
    const group = await look(machine);
    expect(codesOf(group)).toEqual([code]);
    expect(group.findings[0]?.evidence).toContain(evidence);
    expect(group.findings[0]?.cure).toContain(cure);
  });

  test('signs of firewalls and of Docker', async () => {
    const group = await look({
      chains: [chain('firewalld', 'filter_FORWARD', 'forward'), ...NFT],
      processes: { dockerd: ['pid 7 (dockerd)'] },
      programs: forward('-j DOCKER-USER', '-j ufw-before-forward'),
    });
    expect(group.findings.map(({ severity, code, text }) => `${severity} ${code}: ${text}`)).toEqual([
      'info other-firewall: firewalld filters packets on this node too',
      'info other-firewall: ufw filters packets on this node too',
      'info other-firewall: Docker filters packets on this node too',
    ]);
  });
});

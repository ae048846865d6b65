import { describe, expect, test } from 'vitest';
import { checkFirewall } from '../../src/doctor/firewall.ts';
import type { NftBaseChain } from '../../src/doctor/machine.ts';
import { codesOf, type FakeMachine, fakeMachine, groupOf } from './fakeMachine.ts';

const chain = (
  table: string,
  name: string,
  hook: NftBaseChain['hook'],
  policy: 'accept' | 'drop' = 'accept',
) => ({
  family: 'ip',
  table,
  name,
  hook,
  policy,
  priority: 0,
});
const NFT = [chain('filter', 'FORWARD', 'forward'), chain('nat', 'PREROUTING', 'prerouting')];
const list = (table: string, name: string, variant = 'nft'): string =>
  `iptables-${variant} -w 5 -t ${table} -S ${name}`;
const look = (fake: FakeMachine) => groupOf((group) => checkFirewall(group, fakeMachine(fake), ['IPv4']));

describe('firewall', () => {
  test('our jumps, and conditions of others before them', async () => {
    const group = await look({
      chains: NFT,
      programs: {
        [list('filter', 'FORWARD')]:
          '-P FORWARD ACCEPT\n-A FORWARD -m conntrack --ctstate INVALID -j DROP\n-A FORWARD -j KUBE-FORWARD\n',
        [list('nat', 'PREROUTING')]:
          '-P PREROUTING ACCEPT\n-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES\n',
      },
    });
    expect(codesOf(group)).toEqual([]);
    expect(group.fine).toContain('IPv4: rules are in the nft variant of iptables alone');
  });

  test('a rule of another program that drops everything before ours', async () => {
    const group = await look({
      chains: NFT,
      programs: {
        [list('filter', 'FORWARD')]:
          '-P FORWARD ACCEPT\n-A FORWARD -m comment --comment "no; \\"really\\"" -j DROP\n-A FORWARD -j KUBE-FORWARD\n',
      },
    });
    expect(codesOf(group)).toEqual(['error foreign-rule-before-ours']);
    expect(group.findings[0]?.cure).toBe(
      'iptables-nft -t filter -D FORWARD -m comment --comment "no; \\"really\\"" -j DROP',
    );
  });

  test('one that accepts in nat before ours keeps packets from being translated; in filter it does not', async () => {
    const rules = (name: string, ours: string): string =>
      `-P ${name} ACCEPT\n-A ${name} -j ACCEPT\n-A ${name} -j ${ours}\n`;
    const group = await look({
      chains: NFT,
      programs: {
        [list('filter', 'FORWARD')]: rules('FORWARD', 'KUBE-FORWARD'),
        [list('nat', 'PREROUTING')]: rules('PREROUTING', 'KUBE-SERVICES'),
      },
    });
    expect(group.findings.map(({ evidence }) => evidence)).toEqual([
      'iptables-nft -t nat: -A PREROUTING -j ACCEPT',
    ]);
  });

  test('policies that drop, of nf_tables and of the legacy variant', async () => {
    const group = await look({
      chains: [chain('filter', 'forward', 'forward', 'drop')],
      files: { 'net/ip_tables_names': 'filter\n' },
      programs: { [list('filter', 'FORWARD', 'legacy')]: '-P FORWARD DROP\n' },
    });
    expect(codesOf(group)).toEqual(['warning forward-policy-drop', 'warning forward-policy-drop']);
    expect(group.findings.map(({ cure }) => cure?.split(',')[0])).toEqual([
      'iptables-legacy -P FORWARD ACCEPT',
      "nft chain ip filter forward '{ policy accept; }'",
    ]);
  });

  test('rules in both variants', async () => {
    const group = await look({
      chains: NFT,
      files: { 'net/ip_tables_names': 'nat\n' },
      programs: {
        [list('nat', 'PREROUTING')]: '-P PREROUTING ACCEPT\n-A PREROUTING -j KUBE-SERVICES\n',
        [list('nat', 'PREROUTING', 'legacy')]: '-P PREROUTING ACCEPT\n-A PREROUTING -j KUBE-SERVICES\n',
      },
    });
    expect(codesOf(group)).toEqual(['warning iptables-both-variants']);
    expect(group.findings[0]?.evidence).toBe('nft: nat PREROUTING 1 rules; legacy: nat PREROUTING 1 rules');
  });

  test('signs of firewalls and of Docker', async () => {
    const group = await look({
      chains: [chain('firewalld', 'filter_FORWARD', 'forward'), ...NFT],
      processes: { dockerd: ['pid 7 (dockerd)'] },
      programs: {
        [list('filter', 'FORWARD')]:
          '-P FORWARD ACCEPT\n-A FORWARD -j DOCKER-USER\n-A FORWARD -j ufw-before-forward\n',
      },
    });
    expect(group.findings.map(({ text }) => text)).toEqual([
      'firewalld filters packets on this node too',
      'ufw filters packets on this node too',
      'Docker filters packets on this node too',
    ]);
    expect(codesOf(group)).toEqual(Array<string>(3).fill('info other-firewall'));
  });
});

/** Rules of `nft` in the tables of iptables-nft, which iptables does not print any more, and rules of iptables-nft beside the nftables mode. */
import { describe, expect, test } from 'vitest';
import type { Host } from '../../lab/host.ts';
import { useLab } from '../lab/requireLab.ts';
import { Daemon } from './daemon.ts';
import { type Answered, ask } from './support/asked.ts';
import { useInLab } from './support/use.ts';
import { manifests, nodeObject } from './cluster.ts';

const WEB = '10.96.4.1';
const MANIFESTS = [
  `${JSON.stringify(nodeObject())}\n`,
  manifests([{ name: 'web', ip: WEB, nodePort: 30_091, pods: 'ac' }]),
].join('---\n');

describe('a rule of nft in a table of iptables', () => {
  const lab = useLab();
  const node = (): Host => lab().host('node1');
  const daemon = useInLab(async () => {
    const made = await Daemon.create(node(), '--proxy-mode=iptables', '--iptables-variant=nft');
    await made.write(MANIFESTS);
    await made.start();
    return made;
  });
  const asked = (command: string, ...args: readonly string[]): Promise<Answered> =>
    ask(node(), command, `--api-socket=${daemon().socket}`, ...args);
  const explained = (): Promise<Answered> => asked('explain', '--from', 'outside', '--to', `${WEB}:80`);

  async function withRule(rule: string, questions: () => Promise<void>): Promise<void> {
    const [family = '', table = '', chain = ''] = rule.split(' ');
    await node().run(['nft', `insert rule ${rule}`]);
    try {
      await questions();
    } finally {
      const listed = await node().run(['nft', '-a', 'list', 'chain', family, table, chain]);
      const [, handle = ''] = /"?(?:junction-test|0x00000777).* # handle (\d+)/.exec(listed) ?? [];
      await node().run(['nft', 'delete', 'rule', family, table, chain, 'handle', handle]);
    }
  }

  test('which matches nothing: the packet is forwarded, as planned', async () => {
    await withRule('ip nat POSTROUTING ct mark 0x777 counter accept', async () => {
      expect(await node().run(['iptables-nft-save', '-t', 'nat'])).toContain('incompatible');
      const { text, exitCode } = await explained();
      expect(text).toMatch(/as planned|does what is planned/);
      expect(exitCode).toBe(0);
    });
  });

  test('which drops: it is named', async () => {
    await withRule(
      'ip filter FORWARD tcp dport 8080 fib daddr type != local counter drop comment "junction-test"',
      async () => {
        const { text, exitCode } = await explained();
        expect(text).toMatch(
          /filter FORWARD: tcp dport 8080 fib daddr type != local counter packets \d+ bytes \d+ drop/,
        );
        expect(exitCode).toBe(5);
      },
    );
  });

  test('diff says that the table is not compared', async () => {
    await withRule('ip nat POSTROUTING ct mark 0x777 counter accept', async () => {
      const { text, exitCode } = await asked('diff', '--family=ipv4');
      expect(text).toContain('table nat');
      expect(text).toContain('rules of nft');
      expect(text).not.toContain('KUBE-SERVICES');
      expect(exitCode).toBe(1);
    });
  });
});

describe('rules of iptables-nft beside the nftables mode', () => {
  const lab = useLab();
  const node = (): Host => lab().host('node1');
  const daemon = useInLab(async () => {
    const made = await Daemon.create(node(), '--proxy-mode=nftables');
    await made.write(MANIFESTS);
    await made.start();
    return made;
  });

  /** With what it becomes; other matches of iptables are expressions of nf_tables as well. */
  const MATCHING: readonly (readonly [match: string, printed: string])[] = [
    ['-m conntrack --ctstate INVALID,NEW', '-m conntrack --ctstate INVALID,NEW'],
    ['-m state --state NEW', '-m conntrack --ctstate NEW'],
    ['-m addrtype ! --dst-type LOCAL', '-m addrtype ! --dst-type LOCAL'],
    ['-p tcp -m multiport --dports 79,80:90', 'meta l4proto tcp -m multiport --dports 79,80:90'],
    ['-p tcp -m tcp --tcp-flags SYN,RST,ACK SYN', 'tcp flags & 0x16 == 0x02'],
    [
      '-p tcp ! --dport 81:90 -m comment --comment "two words"',
      'tcp dport != 81-90 -m comment --comment "two words"',
    ],
    ['-m mark ! --mark 0x10/0x10', 'meta mark & 0x00000010 != 0x00000010'],
  ];
  const OTHER = [
    '-m conntrack ! --ctstate NEW',
    '-m addrtype --src-type LOCAL',
    '-p tcp -m multiport ! --dports 79,80:90',
    '-p tcp -m tcp --tcp-flags SYN,ACK SYN,ACK',
    '-p udp -m udp --dport 80',
    '-p tcp -m tcp --dport 81:90',
    '-m mark --mark 0x10/0x10',
  ];

  async function explained(rules: readonly string[]): Promise<Answered> {
    const change = (operation: string, rule: string): Promise<string> =>
      node().run(['sh', '-c', `iptables-nft -t mangle ${operation} PREROUTING ${rule}`]);
    for (const rule of rules) await change('-A', rule);
    try {
      const args = ['--from', 'outside', '--to', `${WEB}:80`, '--output=wide'];
      return await ask(node(), 'explain', `--api-socket=${daemon().socket}`, ...args);
    } finally {
      for (const rule of rules) await change('-D', rule);
    }
  }

  test.each(MATCHING)('a packet matches %s', async (match, printed) => {
    const { text, exitCode } = await explained([`${match} -j DROP`]);
    expect([exitCode, text]).toEqual([5, expect.stringContaining(`mangle PREROUTING: ${printed} counter`)]);
  });

  test.each(OTHER)('a packet does not match %s', async (match) => {
    const { text, exitCode } = await explained([`${match} -j DROP`]);
    expect([exitCode, text]).toEqual([0, expect.not.stringContaining('not evaluated')]);
  });

  test('a mark that one of them sets is seen by the next', async () => {
    const { text, exitCode } = await explained([
      '-m conntrack --ctstate NEW -j MARK --set-xmark 0x10/0x10',
      '-m mark --mark 0x10/0x10 -j DROP',
    ]);
    expect([exitCode, text]).toEqual([5, expect.stringContaining('-j MARK --set-xmark 0x10/0x10')]);
  });
});

/** Rules that `nft` wrote into the tables of iptables-nft, which iptables does not print any more: questions are answered all the same. */
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
    await withRule('ip filter FORWARD tcp dport 8080 fib daddr type != local counter drop comment "junction-test"', async () => {
      const { text, exitCode } = await explained();
      expect(text).toMatch(/filter FORWARD: tcp dport 8080 fib daddr type != local counter packets \d+ bytes \d+ drop/);
      expect(exitCode).toBe(5);
    });
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

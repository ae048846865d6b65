/** A start from the record of what the process before it wrote, in the iptables mode, its nft variant. */
import { describe, expect, test } from 'vitest';
import type { Host } from '../../lab/host.ts';
import { useLab } from '../lab/requireLab.ts';
import {
  FROM_RECORD,
  LATER,
  type Meanwhile,
  RecordedDaemon,
  type RecordedMode,
  WEB,
} from './support/recorded.ts';
import { answerers } from './support/traffic.ts';
import { useInLab } from './support/use.ts';

const IPTABLES: RecordedMode = {
  flags: ['--proxy-mode=iptables', '--iptables-variant=nft'],
  complete: /"generation":\d+\}$/,
  ourTables: async (node) => {
    const saves = [await node.run(['iptables-nft-save']), await node.run(['ip6tables-nft-save'])];
    return saves
      .join('\n')
      .split('\n')
      .map((line) => line.replace(/ \[\d+:\d+\]$/, ''))
      .filter((line) => !/^#|^:KUBE-SVC-JUNCTION/.test(line))
      .sort()
      .join('\n');
  },
  deleteTables: (node) => node.exec(['nft', 'flush', 'ruleset']),
};

describe('a start from the record', () => {
  const lab = useLab();
  const recorded = useInLab(() => RecordedDaemon.create(node(), IPTABLES));
  const node = (): Host => lab().host('node1');
  const iptables = (words: string): Promise<string> => node().run(['iptables-nft', ...words.split(' ')]);

  test('reads nothing back', async () => {
    await recorded().killSettled();
    await recorded().start();
    expect(recorded().lastStart).toMatch(/from the record.* ipFamily="IPv4" servicePorts=52 differed=0/);
    await recorded().becomes(recorded().fresh);
  });

  test('writes what changed while nobody ran', async () => {
    const wanted = await recorded().freshTables(LATER);
    await recorded().killSettled();
    await recorded().write(LATER);
    await recorded().start();
    expect(recorded().lastStart).toMatch(/from the record.* ipFamily="IPv4" servicePorts=52 differed=4/);
    expect(await answerers(node(), WEB.ip)).toBe('pod-b pod-d');
    expect(await answerers(node(), '10.96.0.9')).toBe('pod-a');
    await recorded().becomes(wanted);
  });

  const MEANWHILE: readonly Meanwhile[] = [
    ['the ruleset flushed', false, () => node().run(['nft', 'flush', 'ruleset'])],
    ['all rules of a table flushed', true, () => iptables('-t nat -F')],
    [
      'all rules and chains of a table deleted',
      false,
      async () => [await iptables('-t nat -F'), await iptables('-t nat -X')],
    ],
    ['a jump deleted', true, () => iptables('-t nat -D PREROUTING 1')],
    ['a shared chain flushed', true, () => iptables('-t nat -F KUBE-SERVICES')],
    ['a rule added', true, () => iptables('-t nat -I KUBE-SERVICES -d 192.0.2.7 -j ACCEPT')],
    ['the mark deleted', false, async () => iptables(`-t nat -X ${await markChain()}`)],
    ['a run without a record', false, () => recorded().runWithout()],
    ['a byte of the record changed', false, () => recorded().changeByte()],
  ];

  test.each(MEANWHILE)('ends right after %s', async (_, isUsed, act) => {
    await recorded().killSettled();
    await act();
    await recorded().start();
    expect(FROM_RECORD.test(recorded().lastStart)).toBe(isUsed);
    await recorded().becomes(recorded().fresh);
    expect(await answerers(node(), WEB.ip)).toBe('pod-a pod-b pod-c');
  });

  async function markChain(): Promise<string> {
    const [name = 'none'] = /KUBE-SVC-JUNCTION\w+/.exec(await iptables('-t nat -S')) ?? [];
    return name;
  }
});

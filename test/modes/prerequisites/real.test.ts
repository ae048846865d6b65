/** `junction check` on the real kernel, in a network namespace: what it says, and that it leaves nothing behind. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Check } from '../../../src/modes/prerequisites/check.ts';
import type { Argv, RunResult } from '../../../src/system/processes.ts';
import { type Namespace, openNamespace, requireNamespaces } from '../../system/support/namespace.ts';
import { JUNCTION } from '../../support/programs.ts';

interface Answer {
  readonly code: number | null;
  readonly canRun: boolean;
  readonly checks: readonly Check[];
}

describe('in a network namespace', () => {
  let namespace: Namespace;
  beforeEach(async (context) => {
    requireNamespaces(context);
    namespace = await openNamespace();
  });
  afterEach(() => namespace.close());

  function junction(...args: readonly string[]): Promise<RunResult> {
    return namespace.runner([process.execPath, JUNCTION, ...args]);
  }

  async function check(...args: readonly string[]): Promise<Answer> {
    const { code, stdout, stderr } = await junction('check', '--output=json', ...args);
    expect(stderr).toBe('');
    const { canRun, checks } = JSON.parse(stdout) as Omit<Answer, 'code'>;
    return { code, canRun, checks };
  }

  /** Everything that a check might have left. */
  async function world(): Promise<string> {
    const listings: readonly Argv[] = [
      ['iptables-nft-save'],
      ['ip6tables-nft-save'],
      ['iptables-legacy-save'],
      ['ip6tables-legacy-save'],
      ['nft', 'list', 'ruleset'],
      ['ip', '-brief', 'link'],
      ['ipset', 'list', '-name'],
    ];
    const texts: string[] = [];
    for (const argv of listings) texts.push(await output(...argv));
    return texts.join('').replaceAll(/^# .*\n/gm, '');
  }

  const troubles = ({ checks }: Answer): readonly string[] =>
    checks.filter(({ state }) => state !== 'present').map(({ state, subject }) => `${state} ${subject}`);

  it.each(['nft', 'legacy'])('iptables mode can run with the %s variant', async (variant) => {
    // Whoever looks at a table of legacy's makes it: no check could leave that undone.
    if (variant === 'legacy') await useLegacyTables();
    const before = await world();
    const answer = await check('--proxy-mode=iptables', `--iptables-variant=${variant}`);
    expect(troubles(answer)).toEqual([]);
    expect(answer).toMatchObject({ code: 0, canRun: true });
    expect(await world()).toBe(before);
  });

  describe('the variant that is chosen, and why', () => {
    const chosen = async (): Promise<string | undefined> => {
      const { checks } = await check('--proxy-mode=iptables', '--family=ipv4');
      return checks.find(({ subject }) => subject.startsWith('program iptables'))?.found;
    };

    it.each(['nft', 'legacy'] as const)('kubelet is in %s', async (variant) => {
      await output(`iptables-${variant}`, '-t', 'mangle', '-N', 'KUBE-IPTABLES-HINT');
      const reason = `${variant} variant: kubelet's chain KUBE-IPTABLES-HINT is in the ${variant} variant`;
      expect(await chosen()).toContain(reason);
    });

    it('rules count that are in the tables of iptables, and no others', async () => {
      await output('iptables-legacy', '-t', 'nat', '-N', 'LEGACY');
      // Every rule of iptables counts packets.
      for (const [table, word] of [
        ['other', 'counter'],
        ['raw', 'accept'],
      ]) {
        const rules = `add rule ip ${table} c ${word}; `.repeat(20);
        await output('nft', `add table ip ${table}; add chain ip ${table} c; ${rules}`);
      }
      expect(await chosen()).toContain('no rules speak against it');
      const lines = '-A INPUT -j ACCEPT\n'.repeat(10);
      await namespace.runner(['iptables-nft-restore'], { stdin: `*filter\n${lines}COMMIT\n` });
      expect(await chosen()).toContain('nft variant: the nft variant holds more than 9 rules, legacy 0');
    });
  });

  it('the classic layout can too', async () => {
    const before = await world();
    const answer = await check('--proxy-mode=iptables', '--iptables-layout=classic', '--family=ipv4');
    expect(answer).toMatchObject({ code: 0, canRun: true });
    expect(await world()).toBe(before);
  });

  it.each(['nft', 'legacy'])('IPVS mode: what the kernel lacks is named (%s variant)', async (variant) => {
    if (variant === 'legacy') await useLegacyTables();
    const before = await world();
    const answer = await check('--proxy-mode=ipvs', `--iptables-variant=${variant}`);
    expect(await world()).toBe(before);
    const state = (subject: string): string | undefined =>
      answer.checks.find((each) => each.subject === subject)?.state;
    const there = (isThere: boolean): string => (isThere ? 'present' : 'missing');
    const hasIpvs = await works('cat', '/proc/net/ip_vs');
    const hasDummy = await works('ip', 'link', 'add', 'some', 'type', 'dummy');
    expect(state('kernel module ip_vs')).toBe(there(hasIpvs));
    expect(state('kernel module dummy')).toBe(there(hasDummy));
    expect(state('ipset types')).toBe('present');
    expect(answer.canRun).toBe(hasIpvs && hasDummy);
    expect(answer.code).toBe(hasIpvs && hasDummy ? 0 : 1);
    for (const { state: found, remedy, subject } of answer.checks) {
      if (found === 'missing') expect(remedy).toContain(`modprobe ${subject.replace('kernel module ', '')}`);
    }
  });

  it('nftables mode can run, and nothing is left', async () => {
    await output('nft', 'add table ip junction-a { comment "somebody\'s"; }');
    const before = await world();
    const answer = await check('--proxy-mode=nftables');
    expect(troubles(answer)).toEqual([]);
    expect(answer).toMatchObject({ code: 0, canRun: true });
    expect(await world()).toBe(before);
  });

  it('a trial table that a killed check has left does not stand in the way', async () => {
    const before = await world();
    await output('nft', 'add table ip junction-trial; add set ip junction-trial several { type ipv6_addr; }');
    expect(await check('--proxy-mode=nftables')).toMatchObject({ code: 0, canRun: true });
    expect(await world()).toBe(before);
  });

  it('what a killed check has left is removed, and does not stand in the way', async () => {
    await useLegacyTables();
    const before = await world();
    await output('iptables-legacy', '-t', 'nat', '-N', 'KUBE-JUNCTION-TRIAL');
    await output('iptables-legacy', '-t', 'nat', '-A', 'KUBE-JUNCTION-TRIAL', '-j', 'ACCEPT');
    await output('ipset', 'create', 'KUBE-JUNCTION-TRIAL', 'hash:ip', 'hashsize', '64', 'maxelem', '64');
    await check('--proxy-mode=ipvs', '--iptables-variant=legacy');
    expect(await world()).toBe(before);
  });

  it('a rule of nft in a table of iptables is no obstacle, and is said', async () => {
    await output('iptables-nft', '-t', 'nat', '-A', 'POSTROUTING', '-s', '192.0.2.1', '-j', 'ACCEPT');
    await output('nft', 'add rule ip nat POSTROUTING ct mark 5 counter accept');
    const before = await world();
    const answer = await check('--proxy-mode=iptables');
    expect(answer).toMatchObject({ code: 0, canRun: true });
    expect(troubles(answer)).toEqual(['degraded iptables nat table, IPv4']);
    expect(await world()).toBe(before);
  });

  it('rules that are there stay, counters and all', async () => {
    await output('iptables-nft', '-t', 'nat', '-A', 'POSTROUTING', '-s', '192.0.2.1', '-j', 'ACCEPT');
    await output('iptables-nft', '-A', 'INPUT', '-p', 'icmp', '-j', 'DROP');
    const before = await world();
    expect(await check('--proxy-mode=iptables')).toMatchObject({ code: 0 });
    expect(await world()).toBe(before);
  });

  it('without the right to change the network: that, and nothing else', async () => {
    const words = ['--bounding-set=-net_admin', '--inh-caps=-all', '--', process.execPath, JUNCTION];
    const { code, stdout } = await namespace.runner(['setpriv', ...words, 'check', '--output=json']);
    expect(code).toBe(1);
    const { checks } = JSON.parse(stdout) as Answer;
    expect(checks.map(({ subject }) => subject)).toEqual(['capability NET_ADMIN']);
  });

  async function useLegacyTables(): Promise<void> {
    for (const program of ['iptables-legacy', 'ip6tables-legacy'])
      for (const table of ['nat', 'filter']) await output(program, '-t', table, '-S');
  }

  /** Of a program that does well; iptables may warn that the other variant has tables too. */
  async function output(...argv: Argv): Promise<string> {
    const { code, stdout, stderr } = await namespace.runner(argv);
    expect({ argv, code, stderr }).toMatchObject({ code: 0 });
    return stdout;
  }

  async function works(...argv: Argv): Promise<boolean> {
    return (await namespace.runner(argv)).code === 0;
  }
});

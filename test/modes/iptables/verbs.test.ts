/**
 * The runner's verbs: the words of each command, by the version of iptables, and what its end means. No other surface shows old
 * versions. With the real programs: verbs.real.test.ts.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { isJunctionError } from '../../../src/errors.ts';
import { type ClientOptions, IptablesClient } from '../../../src/modes/iptables/client.ts';
import type { RunOptions, RunResult } from '../../../src/system/processes.ts';
import { fakeRunner } from '../../system/support/fakeRunner.ts';

type Answers = (command: string, options: RunOptions) => Partial<RunResult> | undefined;

async function openFake(version: string, answers: Answers, options: Partial<ClientOptions> = {}) {
  const { runner, commands } = fakeRunner((command, given) =>
    command.endsWith('tables --version') ? { stdout: `iptables v${version}\n` } : answers(command, given),
  );
  const client = await IptablesClient.open({ family: 'IPv4', variant: 'system', runner, ...options });
  return { client, commands };
}

const LEGACY = '1.8.9 (legacy)';
const NFT = '1.8.9 (nf_tables)';
const always =
  (result: Partial<RunResult>): Answers =>
  () =>
    result;
const LOCKED = 'Another app is currently holding the xtables lock. Stopped waiting after 5s.\n';
const RULE = ['-m', 'comment', '--comment', 'a b', '-j', 'X'];

it('says version and variant', async () => {
  const { runner, commands } = fakeRunner(() => ({ stdout: `ip6tables v${NFT}` }));
  const client = await IptablesClient.open({ family: 'IPv6', variant: 'nft', runner });
  expect([client.version, client.variant, commands]).toEqual(['1.8.9', 'nft', ['ip6tables-nft --version']]);
  expect((await openFake('1.4.21', always({}))).client).toMatchObject({
    version: '1.4.21',
    variant: 'legacy',
  });
});

it('fails where no version is named', async () => {
  const { runner } = fakeRunner(() => ({ stdout: 'hello' }));
  await expect(IptablesClient.open({ family: 'IPv4', variant: 'system', runner })).rejects.toMatchObject({
    code: 'IPTABLES_VERSION_UNKNOWN',
  });
});

const save = (count: number): string => `*filter\n${'-A INPUT -j ACCEPT\n'.repeat(count)}COMMIT\n`;
const CANARY = '*mangle\n:KUBE-KUBELET-CANARY - [0:0]\nCOMMIT\n';
const HINT = 'KUBE-IPTABLES-HINT';
const SILENT = 'iptables is the legacy variant, and no rules speak against it';

/** By rules of iptables in nf_tables, kubelet's chain there, and what legacy's save prints. `iptables` itself is legacy. */
it.each([
  [0, HINT, {}, 'iptables-nft', `kubelet's chain ${HINT} is in the nft variant`],
  [
    3,
    '',
    { '-t mangle': CANARY },
    'iptables',
    "kubelet's chain KUBE-KUBELET-CANARY is in the legacy variant",
  ],
  [130_000, '', { '': save(8) }, 'iptables-nft', 'the nft variant holds more than 16 rules, legacy 8'],
  [30, '', { '': save(29) }, 'iptables', SILENT],
  [4, '', { '': save(12) }, 'iptables', 'the nft variant holds 4 rules, legacy 12'],
  [30, HINT, { nft: 'missing' }, 'iptables', SILENT],
  [0, '', {}, 'iptables', SILENT],
])('chosen for %j rules, %j, %j: %s', async (count, chain, legacy, program, reason) => {
  const saved: Readonly<Record<string, string>> = legacy;
  const { runner, commands } = fakeRunner((command) => {
    if (command === 'iptables-nft-save --version' && 'nft' in saved) return 'missing';
    if (command.endsWith(' --version')) return { stdout: 'iptables v1.8.9 (legacy)' };
    if (command.startsWith('cat ')) return { stdout: count === 0 ? '' : 'filter\nmangle\n' };
    return { stdout: saved[command.replace('iptables-legacy-save', '').trim()] ?? '' };
  });
  const nft = {
    hasChain: (_: string, name: string) => name === chain,
    countRules: (most: number) => Math.min(count, most + 1),
    chainNames: () => new Set<string>(),
    jumps: () => [],
  };
  const client = await IptablesClient.open({ family: 'IPv4', variant: 'auto', runner, nft });
  expect([client.programs.iptables, client.reason]).toEqual([program, reason]);
  // Legacy's tables are not made by being looked at.
  if (count === 0) expect(commands.filter((each) => each.includes('legacy-save'))).toEqual([]);
});

describe('the words of each command', () => {
  it.each([
    ['1.8.9 (nf_tables)', ' -w 5', ' -w 5', true],
    ['1.6.2', ' -w 5', ' -w 5', true],
    ['1.6.1', ' -w 5', ' -w', false],
    ['1.4.22', ' -w 5', ' -w', false],
    ['1.4.20', ' -w', ' -w', false],
    ['1.4.11', '', ' -w', false],
  ])('version %s', async (version, wait, restoreWait, randomFully) => {
    // An old restore that knows --version knows -w too.
    const { client, commands } = await openFake(version, always({ stdout: 'v1.4.11' }));
    commands.length = 0;
    await client.ensureChain('nat', 'X');
    await client.flushChain('nat', 'X');
    await client.deleteChain('nat', 'X');
    await client.lookForChain('mangle', 'X');
    await client.checkRule('nat', 'Y', RULE);
    await client.deleteRule('nat', 'Y', RULE);
    await client.save('nat');
    await client.save('filter', true);
    await client.restore('nat', '');
    await client.restore(undefined, '');
    await client.restore('nat', '', { flush: true, counters: false });
    expect(commands).toEqual([
      `iptables${wait} -N X -t nat`,
      `iptables${wait} -F X -t nat`,
      `iptables${wait} -X X -t nat`,
      `iptables${wait} -S X -t mangle`,
      `iptables${wait} -C Y -t nat -m comment --comment a b -j X`,
      `iptables${wait} -C Y -t nat -m comment --comment a b -j X`,
      `iptables${wait} -D Y -t nat -m comment --comment a b -j X`,
      'iptables-save -t nat',
      'iptables-save -t filter -c',
      `iptables-restore${restoreWait} -T nat --noflush --counters`,
      `iptables-restore${restoreWait} --noflush --counters`,
      `iptables-restore${restoreWait} -T nat`,
    ]);
    expect(client.features.randomFully).toBe(randomFully);
  });

  it.each([
    ['prepend', '-I'],
    ['append', '-A'],
  ] as const)('a rule to %s is checked first', async (position, operation) => {
    const isAbsent: Answers = (command) => ({ code: command.includes('-C') ? 1 : 0 });
    const { client, commands } = await openFake(LEGACY, isAbsent);
    expect(await client.ensureRule(position, 'nat', 'Y', ['-j', 'X'])).toBe(false);
    expect(commands.slice(1)).toEqual([
      'iptables -w 5 -C Y -t nat -j X',
      `iptables -w 5 ${operation} Y -t nat -j X`,
    ]);
  });

  it('waits as long as it is told, and tells iptables where the lock is', async () => {
    const told: unknown[] = [];
    const { client } = await openFake(
      LEGACY,
      (command, { env }) => {
        told.push(command, env);
        return {};
      },
      { lockSeconds: 9, lockPath: '/tmp/lock' },
    );
    await client.ensureChain('nat', 'X');
    expect(told).toEqual(['iptables -w 9 -N X -t nat', { XTABLES_LOCKFILE: '/tmp/lock' }]);
  });
});

describe('versions before 1.4.11 look for a rule in what save prints', () => {
  const saved = `*nat
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A KUBE-X ! -s 10.0.0.0/8 -d 1.2.3.4/32 -p tcp -m tcp --dport 80 -j ACCEPT
-A KUBE-MARK -j MARK --set-xmark 0x4000/0x4000
-A KUBE-6 -d fd00::1/128 -j ACCEPT
-A KUBE-Q -m comment --comment "say \\"hi\\"" -j ACCEPT
COMMIT
`;
  const open = () => openFake('1.4.10', always({ stdout: saved }));
  const portals = ['-m', 'comment', '--comment', 'kubernetes service portals'];

  it.each<readonly [string, readonly string[], boolean]>([
    ['PREROUTING', [...portals, '-j', 'KUBE-SERVICES'], true],
    ['PREROUTING', ['-j', 'KUBE-SERVICES', ...portals], true],
    ['PREROUTING', ['-j', 'KUBE-SERVICES'], false],
    ['PRE', [...portals, '-j', 'KUBE-SERVICES'], false],
    ['KUBE-X', '-p tcp -m tcp --dport 80 ! -s 10.0.0.0/8 -d 1.2.3.4 -j ACCEPT'.split(' '), true],
    ['KUBE-X', '-p tcp -m tcp --dport 80 -s 10.0.0.0/8 ! -d 1.2.3.4 -j ACCEPT'.split(' '), false],
    ['KUBE-X', '-p tcp -m tcp --dport 80 ! -s 1.2.3.4 -d 10.0.0.0/8 -j ACCEPT'.split(' '), false],
    ['KUBE-MARK', ['-j', 'MARK', '--set-xmark', '0x00004000/0x00004000'], true],
    ['KUBE-6', ['-d', 'fd00::1', '-j', 'ACCEPT'], true],
    ['KUBE-Q', ['-m', 'comment', '--comment', 'say "hi"', '-j', 'ACCEPT'], true],
  ])('%s %j: %s', async (chain, args, expected) => {
    const { client } = await open();
    expect(await client.checkRule('nat', chain, args)).toBe(expected);
  });

  it('and add or leave it', async () => {
    const { client, commands } = await open();
    commands.length = 0;
    expect(await client.deleteRule('nat', 'Y', ['-j', 'Z'])).toBe(false);
    expect(await client.ensureRule('append', 'nat', 'Y', ['-j', 'Z'])).toBe(false);
    expect(commands).toEqual(['iptables-save -t nat', 'iptables-save -t nat', 'iptables -A Y -t nat -j Z']);
  });
});

describe('what an exit status means', () => {
  const ask = {
    ensureChain: (client: IptablesClient) => client.ensureChain('nat', 'X'),
    flushChain: (client: IptablesClient) => client.flushChain('nat', 'X'),
    deleteChain: (client: IptablesClient) => client.deleteChain('nat', 'X'),
    lookForChain: async (client: IptablesClient) => (await client.lookForChain('nat', 'X')).state,
    checkRule: (client: IptablesClient) => client.checkRule('nat', 'X', RULE),
    deleteRule: (client: IptablesClient) => client.deleteRule('nat', 'X', RULE),
    save: (client: IptablesClient) => client.save('nat'),
    restore: (client: IptablesClient) => client.restore('nat', ''),
  } as const;
  const noChain = 'iptables: No chain/target/match by that name.';
  const noRule = 'iptables: Bad rule (does a matching rule exist in that chain?).';
  const unusable = "Fatal: can't open lock file /nonexistent/x: No such file or directory";
  const busy = 'iptables v1.8.9 (nf_tables):  CHAIN_DEL failed (Device or resource busy): chain X';

  it.each([
    ['ensureChain', LEGACY, 0, '', false],
    ['ensureChain', LEGACY, 1, 'iptables: Chain already exists.', true],
    ['ensureChain', LEGACY, 2, 'Invalid chain name', 'IPTABLES_FAILED'],
    ['ensureChain', LEGACY, 4, LOCKED, 'XTABLES_LOCK_HELD'],
    ['ensureChain', NFT, 4, 'Permission denied (you must be root)', 'IPTABLES_FAILED'],
    ['ensureChain', LEGACY, 4, unusable, 'XTABLES_LOCK_UNUSABLE'],
    ['flushChain', LEGACY, 0, '', true],
    ['flushChain', LEGACY, 1, noChain, false],
    ['deleteChain', LEGACY, 1, noChain, false],
    ['deleteChain', LEGACY, 1, 'iptables: Too many links.', 'IPTABLES_FAILED'],
    ['deleteChain', NFT, 4, busy, 'IPTABLES_FAILED'],
    ['lookForChain', LEGACY, 0, '', 'present'],
    ['lookForChain', LEGACY, 1, noChain, 'absent'],
    ['lookForChain', NFT, 1, "chain `X' in table `nat' is incompatible, use 'nft' tool.", 'absent'],
    ['lookForChain', LEGACY, 3, "can't initialize iptables table `nat': Table does not exist", 'absent'],
    ['lookForChain', LEGACY, 4, LOCKED, 'unknown'],
    ['lookForChain', LEGACY, 4, unusable, 'unknown'],
    ['lookForChain', NFT, 4, 'Could not fetch rule set generation id: Permission denied', 'unknown'],
    ['lookForChain', LEGACY, null, '', 'unknown'],
    ['checkRule', LEGACY, 0, '', true],
    ['checkRule', LEGACY, 1, noRule, false],
    ['checkRule', LEGACY, 2, "Couldn't load target `X':No such file or directory", 'IPTABLES_FAILED'],
    ['checkRule', LEGACY, 4, LOCKED, 'XTABLES_LOCK_HELD'],
    ['checkRule', LEGACY, null, '', 'PROGRAM_KILLED'],
    ['deleteRule', LEGACY, 1, noRule, false],
    ['deleteRule', NFT, 2, "iptables v1.8.9 (nf_tables): Chain 'X' does not exist", false],
    ['deleteRule', LEGACY, 2, 'unknown option "--bogus"', 'IPTABLES_FAILED'],
    ['save', LEGACY, 1, "Table `bogus' does not exist", 'IPTABLES_FAILED'],
    ['restore', LEGACY, 4, LOCKED, 'XTABLES_LOCK_HELD'],
    ['restore', NFT, 4, busy, 'IPTABLES_RESTORE_FAILED'],
  ] as const)('%s of %s: %s %j is %s', async (method, version, code, stderr, expected) => {
    const ended = { code, stderr, signal: code === null ? ('SIGKILL' as const) : null };
    const { client } = await openFake(version, always(ended), { lockPath: '/nonexistent' });
    const outcome = await ask[method](client).catch((error: unknown) =>
      isJunctionError(error) ? error.code : error,
    );
    expect(outcome).toBe(expected);
  });
});

describe('a refused restore', () => {
  const refusedBy = async (stderr: string, input: string): Promise<unknown> => {
    const { client } = await openFake(LEGACY, always({ code: 1, stderr }));
    return client.restore('nat', input).catch((error: unknown) => error);
  };
  const jumps = '*nat\n:X - [0:0]\n-A X -j NOSUCH\n-A X -j ACCEPT\nCOMMIT\n';

  it.each([
    ['iptables-restore: line 3 failed: No chain/target/match by that name.', 3],
    ['iptables-restore v1.8.9 (nf_tables): \nline 4: RULE_APPEND failed (No such file): rule in chain A1', 4],
    ['iptables-restore v1.8.9 (nf_tables): \nline 5: CHAIN_DEL failed (Device or resource busy): chain B', 5],
    ['iptables-restore v1.8.9 (legacy): unknown option "--bogus"\nError occurred at line: 4\nTry -h', 4],
    ['iptables-restore: COMMIT expected at line 4', 4],
    // nft notices only at COMMIT that the target of a jump is missing.
    ["iptables-restore v1.8.9 (nf_tables): Chain 'NOSUCH' does not exist\nError occurred at line: 5", 3],
    ['Segmentation fault', undefined],
  ])('%j names line %s', async (stderr, line) => {
    expect(await refusedBy(stderr, jumps)).toMatchObject({ code: 'IPTABLES_RESTORE_FAILED', line });
  });

  it('shows the input around the line', async () => {
    const input = 'one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine';
    expect(await refusedBy('iptables-restore: line 5 failed\n', input)).toMatchObject({
      message:
        'iptables-restore -w 5 -T nat --noflush --counters failed with status 1: iptables-restore: line 5 failed (line 5)',
      detail:
        'iptables-restore: line 5 failed\n  2: two\n  3: three\n  4: four\n> 5: five\n  6: six\n  7: seven\n  8: eight',
    });
    expect(await refusedBy('iptables-restore: line 1 failed\n', input)).toMatchObject({
      detail: expect.stringMatching(/\n> 1: one\n {2}2: two\n {2}3: three\n {2}4: four$/),
    });
  });
});

it('commands never overlap, also after a failure', async () => {
  let running = 0;
  let most = 0;
  const { client } = await openFake(LEGACY, always({}), {
    runner: async (argv) => {
      most = Math.max(most, ++running);
      await sleep(1);
      running--;
      return { code: argv.includes('BAD') ? 2 : 0, signal: null, stdout: 'v1.8.9', stderr: '' };
    },
  });
  const outcomes = await Promise.allSettled([
    client.ensureChain('nat', 'A'),
    client.ensureChain('nat', 'BAD'),
    client.ensureRule('append', 'nat', 'A', []),
    client.save('nat'),
    client.restore('nat', ''),
  ]);
  expect(most).toBe(1);
  expect(outcomes.flatMap(({ status }, index) => (status === 'rejected' ? [index] : []))).toEqual([1]);
});

it('takes the locks itself around a restore that takes none', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'junction-'));
  const options = {
    lockPath: join(directory, 'lock'),
    ownLocks: { socketName: `junction-client-${process.pid}`, timeoutMs: 20, retryMs: 10 },
  };
  // An old restore that does not know --version does not know -w either.
  const { client: other } = await openFake('1.4.10', always({ code: 0 }), options);
  let failure: unknown;
  const nested = await openFake('1.4.10', () => undefined, {
    ...options,
    runner: async (argv) => {
      if (argv[0] === 'iptables-restore' && argv.includes('--noflush'))
        failure = await other.restore('nat', '').catch((error: unknown) => error);
      return { code: 0, signal: null, stdout: argv[0] === 'iptables' ? 'v1.4.10' : '', stderr: '' };
    },
  });
  await nested.client.restore('nat', '');
  expect(failure).toMatchObject({
    code: 'XTABLES_LOCK_HELD',
    message: expect.stringContaining(`pid ${process.pid}`),
  });
  expect(await other.restore('nat', '')).toBeUndefined();
  rmSync(directory, { recursive: true });
});

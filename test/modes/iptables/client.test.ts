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
  commands.length = 0;
  return { client, commands };
}

const LEGACY = '1.8.9 (legacy)';
const NFT = '1.8.9 (nf_tables)';
const always =
  (result: Partial<RunResult>): Answers =>
  () =>
    result;
const LOCKED: Partial<RunResult> = {
  code: 4,
  stderr: 'Another app is currently holding the xtables lock. Stopped waiting after 5s.\n',
};
const RULE = ['-m', 'comment', '--comment', 'a b', '-j', 'X'];

describe('open', () => {
  it('says version, variant and features', async () => {
    const { client } = await openFake(NFT, always({}));
    expect([client.version, client.variant, client.features.randomFully]).toEqual(['1.8.9', 'nft', true]);
  });

  it('asks an old restore whether it knows --version', async () => {
    const waits = await openFake('1.4.21', always({ stdout: 'iptables-restore v1.4.21' }));
    expect(waits.client.features.restoreWait).toEqual(['-w']);
    const none = await openFake('1.4.21', always({ code: 1, stderr: 'unrecognized option' }));
    expect(none.client.features.restoreWait).toBeUndefined();
  });

  it('does not ask a new one', async () => {
    const { runner, commands } = fakeRunner(() => ({ stdout: 'ip6tables v1.8.9 (legacy)' }));
    await IptablesClient.open({ family: 'IPv6', variant: 'legacy', runner });
    expect(commands).toEqual(['ip6tables-legacy --version']);
  });

  it('fails where no version is named', async () => {
    const { runner } = fakeRunner(() => ({ stdout: 'hello' }));
    await expect(IptablesClient.open({ family: 'IPv4', variant: 'system', runner })).rejects.toMatchObject({
      code: 'IPTABLES_VERSION_UNKNOWN',
    });
  });
});

const act = (client: IptablesClient): readonly (() => Promise<unknown>)[] => [
  () => client.ensureChain('nat', 'X'),
  () => client.flushChain('nat', 'X'),
  () => client.deleteChain('nat', 'X'),
  () => client.lookForChain('mangle', 'X'),
  () => client.checkRule('nat', 'Y', RULE),
  () => client.deleteRule('nat', 'Y', RULE),
  () => client.save('nat'),
  () => client.save('filter', { counters: true }),
  () => client.restore('nat', ''),
  () => client.restore(undefined, ''),
  () => client.restore('nat', '', { flush: true, counters: false }),
];

describe('the words of each command', () => {
  it.each([
    ['1.8.9 (nf_tables)', ' -w 5', ' -w 5'],
    ['1.6.2', ' -w 5', ' -w 5'],
    ['1.4.22', ' -w 5', ' -w'],
    ['1.4.20', ' -w', ' -w'],
    ['1.4.11', '', ' -w'],
  ])('version %s', async (version, wait, restoreWait) => {
    const { client, commands } = await openFake(version, always({ stdout: 'v1.4.11' }));
    for (const action of act(client)) await action();
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
  });

  it.each([
    ['prepend', '-I'],
    ['append', '-A'],
  ] as const)('a rule to %s is checked first', async (position, operation) => {
    const { client, commands } = await openFake(LEGACY, (command) => ({
      code: command.includes('-C') ? 1 : 0,
    }));
    expect(await client.ensureRule(position, 'nat', 'Y', ['-j', 'X'])).toBe(false);
    expect(commands).toEqual(['iptables -w 5 -C Y -t nat -j X', `iptables -w 5 ${operation} Y -t nat -j X`]);
  });

  it('waits as long as it is told, and tells iptables where the lock is', async () => {
    let env: RunOptions['env'];
    const { client, commands } = await openFake(
      LEGACY,
      (_, options) => {
        env = options.env;
        return {};
      },
      { lockSeconds: 9, lockPath: '/tmp/lock' },
    );
    await client.ensureChain('nat', 'X');
    expect(commands).toEqual(['iptables -w 9 -N X -t nat']);
    expect(env).toEqual({ XTABLES_LOCKFILE: '/tmp/lock' });
  });

  it('a save can be had in pieces', async () => {
    const { client, commands } = await openFake(NFT, always({ stdout: '*nat\nCOMMIT\n' }));
    let text = '';
    await client.readSave('nat', { counters: true }, async (piece) => {
      text += piece;
    });
    expect([text, ...commands]).toEqual(['*nat\nCOMMIT\n', 'iptables-save -t nat -c']);
  });

  it('versions before 1.4.11 look for a rule in what save prints', async () => {
    const saved = '-A Y -m comment --comment "a b" -j X\n';
    const { client, commands } = await openFake('1.4.10', (command) =>
      command === 'iptables-save -t nat' ? { stdout: saved } : {},
    );
    expect(await client.checkRule('nat', 'Y', RULE)).toBe(true);
    expect(await client.checkRule('nat', 'Y', ['-j', 'Z'])).toBe(false);
    expect(await client.deleteRule('nat', 'Y', ['-j', 'Z'])).toBe(false);
    expect(await client.ensureRule('append', 'nat', 'Y', ['-j', 'Z'])).toBe(false);
    expect(commands.at(-1)).toBe('iptables -A Y -t nat -j Z');
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
  const unusable = "Fatal: can't open lock file /nonexistent/x: No such file or directory";
  const busy = 'iptables v1.8.9 (nf_tables):  CHAIN_DEL failed (Device or resource busy): chain X';

  it.each([
    ['ensureChain', LEGACY, 0, '', false],
    ['ensureChain', LEGACY, 1, 'iptables: Chain already exists.', true],
    ['ensureChain', LEGACY, 2, 'Invalid chain name', 'IPTABLES_FAILED'],
    ['ensureChain', LEGACY, 4, LOCKED.stderr, 'XTABLES_LOCK_HELD'],
    ['ensureChain', NFT, 4, 'Permission denied (you must be root)', 'IPTABLES_FAILED'],
    ['ensureChain', LEGACY, 4, unusable, 'XTABLES_LOCK_UNUSABLE'],
    ['flushChain', LEGACY, 0, '', true],
    ['flushChain', LEGACY, 1, noChain, false],
    ['deleteChain', LEGACY, 1, noChain, false],
    ['deleteChain', LEGACY, 1, 'iptables: Too many links.', 'IPTABLES_FAILED'],
    ['deleteChain', NFT, 4, busy, 'IPTABLES_FAILED'],
    ['deleteChain', LEGACY, 4, unusable, 'XTABLES_LOCK_UNUSABLE'],
    ['lookForChain', LEGACY, 0, '', 'present'],
    ['lookForChain', LEGACY, 1, noChain, 'absent'],
    ['lookForChain', NFT, 1, "chain `X' in table `nat' is incompatible, use 'nft' tool.", 'absent'],
    ['lookForChain', LEGACY, 3, "can't initialize iptables table `nat': Table does not exist", 'absent'],
    ['lookForChain', LEGACY, 4, LOCKED.stderr, 'unknown'],
    ['lookForChain', LEGACY, 4, unusable, 'unknown'],
    ['lookForChain', NFT, 4, 'Could not fetch rule set generation id: Permission denied', 'unknown'],
    ['checkRule', LEGACY, 0, '', true],
    ['checkRule', LEGACY, 1, 'iptables: Bad rule (does a matching rule exist in that chain?).', false],
    ['checkRule', LEGACY, 2, "Couldn't load target `X':No such file or directory", 'IPTABLES_FAILED'],
    ['checkRule', LEGACY, 4, LOCKED.stderr, 'XTABLES_LOCK_HELD'],
    ['deleteRule', LEGACY, 1, 'iptables: Bad rule (does a matching rule exist in that chain?).', false],
    ['deleteRule', NFT, 2, "iptables v1.8.9 (nf_tables): Chain 'X' does not exist", false],
    ['deleteRule', LEGACY, 2, 'unknown option "--bogus"', 'IPTABLES_FAILED'],
    ['save', LEGACY, 1, "Table `bogus' does not exist", 'IPTABLES_FAILED'],
    ['restore', LEGACY, 4, LOCKED.stderr, 'XTABLES_LOCK_HELD'],
    [
      'restore',
      NFT,
      4,
      'line 5: CHAIN_DEL failed (Device or resource busy): chain B',
      'IPTABLES_RESTORE_FAILED',
    ],
  ] as const)('%s of %s: %s %j is %s', async (method, version, code, stderr, expected) => {
    const { client } = await openFake(version, always({ code, stderr: stderr ?? '' }), {
      lockPath: '/nonexistent',
    });
    const outcome = await ask[method](client).catch((error: unknown) =>
      isJunctionError(error) ? error.code : error,
    );
    expect(outcome).toBe(expected);
  });

  it('a command that is killed for taking too long leaves the question open', async () => {
    const { client } = await openFake(LEGACY, always({ code: null, signal: 'SIGKILL' }));
    expect(await client.lookForChain('nat', 'X')).toMatchObject({
      state: 'unknown',
      error: { code: 'PROGRAM_KILLED', message: 'iptables -w 5 -S X -t nat was killed by SIGKILL' },
    });
  });
});

describe('a refused restore', () => {
  it('says which line, and shows the input around it', async () => {
    const { client } = await openFake(
      LEGACY,
      always({ code: 1, stderr: 'iptables-restore: line 3 failed\n' }),
    );
    await expect(client.restore('nat', '*nat\n:X - [0:0]\n-A Y -j X\nCOMMIT\n')).rejects.toMatchObject({
      code: 'IPTABLES_RESTORE_FAILED',
      line: 3,
      message:
        'iptables-restore -w 5 -T nat --noflush --counters failed with status 1: iptables-restore: line 3 failed (line 3)',
      detail:
        'iptables-restore: line 3 failed\n  1: *nat\n  2: :X - [0:0]\n> 3: -A Y -j X\n  4: COMMIT\n  5: ',
    });
  });
});

describe('order', () => {
  it('commands never overlap, also after a failure', async () => {
    let running = 0;
    let most = 0;
    const { runner } = fakeRunner(() => ({ stdout: 'v1.8.9' }));
    const client = await IptablesClient.open({
      family: 'IPv4',
      variant: 'system',
      runner: async (argv, options) => {
        running += 1;
        most = Math.max(most, running);
        await sleep(1);
        running -= 1;
        if (argv.includes('BAD')) return { code: 2, signal: null, stdout: '', stderr: '' };
        return runner(argv, options);
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
    expect(outcomes.map(({ status }) => status)).toEqual([
      'fulfilled',
      'rejected',
      'fulfilled',
      'fulfilled',
      'fulfilled',
    ]);
  });

  it('tells of every command', async () => {
    const told: string[] = [];
    const { client } = await openFake(LEGACY, always({}), {
      onCommand: ({ argv, code }) => told.push(`${argv[0]} ${code}`),
    });
    await client.save('nat');
    expect(told).toEqual(['iptables-save 0']);
  });
});

it('takes the locks itself around a restore that takes none', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'junction-'));
  const lockPath = join(directory, 'lock');
  const ownLocks = { socketName: `junction-client-${process.pid}`, timeoutMs: 20, retryMs: 10 };
  let other: IptablesClient | undefined;
  let failure: unknown;
  const { client } = await openFake('1.4.10', always({ code: 0 }), { lockPath, ownLocks });
  const nested = await openFake('1.4.10', () => undefined, {
    lockPath,
    ownLocks,
    onCommand: () => undefined,
    runner: async (argv) => {
      if (argv[0] === 'iptables-restore' && argv.includes('--noflush')) {
        failure = await other?.restore('nat', '').catch((error: unknown) => error);
      }
      return { code: 0, signal: null, stdout: argv[0] === 'iptables' ? 'v1.4.10' : '', stderr: '' };
    },
  });
  other = client;
  await nested.client.restore('nat', '');
  expect(failure).toMatchObject({
    code: 'XTABLES_LOCK_HELD',
    message: expect.stringContaining(`pid ${process.pid}`),
  });
  expect(await client.restore('nat', '')).toBeUndefined();
  rmSync(directory, { recursive: true });
});

/** Which families a start serves, by what iptables answers. */
import { describe, expect, test } from 'vitest';
import { type OpenedFamilies, openFamilies } from '../../src/modes/iptables/families.ts';
import { JunctionError } from '../../src/errors.ts';
import type { RunResult } from '../../src/system/processes.ts';
import { createLog } from '../../src/log/log.ts';
import { fromFlags, valid } from '../config/given.ts';
import { fakeRunner } from '../system/support/fakeRunner.ts';

type Answer = Partial<RunResult> | 'missing' | 'EMFILE' | 'EACCES';

const LOCKED: Answer = {
  code: 4,
  stderr: 'Another app is currently holding the xtables lock; still 2s 0us time ahead to have a chance',
};
const NO_LOCK_FILE: Answer = {
  code: 4,
  stderr: "Fatal: can't open lock file /run/xtables.lock: Read-only file system\n",
};
const NO_TABLE: Answer = {
  code: 3,
  stderr: "ip6tables v1.8.9 (legacy): can't initialize ip6tables table `nat': Table does not exist",
};
const KILLED: Answer = { code: null, signal: 'SIGKILL' };
const WORKS = { family: 'IPv4', answer: { state: 'works' }, isStartable: true };
const GOOD: Answer = { stdout: '-P POSTROUTING ACCEPT\n' };

/** The answers to each question for a nat table, in turn; the last one stands. */
async function open(answers: Readonly<Record<'iptables' | 'ip6tables', readonly Answer[]>>): Promise<{
  readonly opened: OpenedFamilies | JunctionError;
  readonly log: string;
  readonly locks: readonly (string | undefined)[];
}> {
  const left = new Map(Object.entries(answers).map(([program, all]) => [program, [...all]]));
  const locks: (string | undefined)[] = [];
  const { runner } = fakeRunner((command, { env }) => {
    if (command.endsWith('--version')) return { stdout: 'iptables v1.8.9 (legacy)' };
    const program = command.startsWith('ip6') ? 'ip6tables' : 'iptables';
    locks.push(env?.['XTABLES_LOCKFILE']);
    const turns = left.get(program) ?? [];
    const answer = (turns.length > 1 ? turns.shift() : turns[0]) ?? GOOD;
    if (answer === 'EMFILE' || answer === 'EACCES') {
      const cause = Object.assign(new Error(`spawn ${answer}`), { code: answer });
      throw new JunctionError('PROGRAM_NOT_STARTED', `cannot start ${program}: ${answer}`, { cause });
    }
    return answer;
  });
  let log = '';
  const write = (line: string): void => {
    log += line;
  };
  const opened = await openFamilies({
    config: valid(fromFlags('--iptables-variant=legacy')),
    log: createLog({ verbosity: 0, format: 'text', write }),
    runner,
    signal: new AbortController().signal,
    pauseMs: 1,
    patienceMs: answers.iptables.length > 1 || answers.ip6tables.length > 1 ? 60_000 : 20,
  }).catch((error: unknown) => {
    if (error instanceof JunctionError) return error;
    throw error;
  });
  return { opened, log, locks };
}

describe('a question that went unanswered is asked again', () => {
  test.each([
    ['the lock is held', LOCKED],
    ['the program is killed', KILLED],
    ['no descriptor is left to start it', 'EMFILE'],
  ] as const)('%s', async (_what, answer) => {
    const { opened, log } = await open({ iptables: [answer, answer, GOOD], ip6tables: [answer, GOOD] });
    expect(opened).toMatchObject({ families: [WORKS, { ...WORKS, family: 'IPv6' }] });
    expect(log.match(/Could not list the nat table; retrying" ipFamily="IPv4"/g)).toHaveLength(2);
  });

  test('for ever: one family is served, the other is not known to be absent', async () => {
    const { opened } = await open({ iptables: [GOOD], ip6tables: [LOCKED] });
    expect(opened).toMatchObject({
      families: [WORKS, { family: 'IPv6', answer: { state: 'unanswered' } }],
    });
    expect(opened).toHaveProperty('clients.length', 2);
  });

  test('for ever, in both: it ends, and says what it waited for', async () => {
    const { opened } = await open({ iptables: [LOCKED], ip6tables: [LOCKED] });
    expect(opened).toMatchObject({
      code: 'IPTABLES_FAILED',
      message: expect.stringMatching(/could not be asked for .* s: the xtables lock .* is held by/),
    });
  });
});

test('an answer stands: the kernel has no nat table of one family', async () => {
  const { opened, log } = await open({ iptables: [GOOD], ip6tables: [NO_TABLE] });
  const reason = expect.stringContaining('Table does not exist') as string;
  expect(opened).toMatchObject({
    families: [WORKS, { family: 'IPv6', answer: { state: 'absent', reason } }],
  });
  expect(log).toContain('Table does not exist');
});

test('an answer stands: programs that may not be started, in both families', async () => {
  const { opened } = await open({ iptables: ['EACCES'], ip6tables: ['EACCES'] });
  const message = 'iptables is not available on this host: cannot start iptables: EACCES';
  expect(opened).toMatchObject({ message });
});

test('a lock file that cannot be used is replaced by our own, and that is said', async () => {
  const { opened, log, locks } = await open({ iptables: [NO_LOCK_FILE, GOOD], ip6tables: [GOOD, GOOD] });
  expect(opened).toMatchObject({ families: [WORKS, { ...WORKS, family: 'IPv6' }] });
  expect(locks).toEqual([
    undefined,
    ...Array.from({ length: 2 }, () => expect.stringMatching(/junction-lock-.*\/xtables\.lock$/)),
  ]);
  expect(log).toMatch(/xtables lock cannot be used; going on.*Read-only file system.*consequence=.*hostPath/);
});

test('a lock file that no place helps with is named, not the nat table', async () => {
  const { opened } = await open({ iptables: [NO_LOCK_FILE], ip6tables: [NO_LOCK_FILE] });
  expect(opened).toMatchObject({
    message: expect.stringContaining("can't open lock file /run/xtables.lock: Read-only file system"),
    hint: expect.stringContaining('Mount /run/xtables.lock'),
  });
});

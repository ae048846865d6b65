import { expect, test } from 'vitest';
import { DoctorReports } from '../../../src/daemon/api/doctorReports.ts';
import type { DoctorReport } from '../../../src/explain/doctorReport.ts';
import type { ModeName } from '../../../src/model/mode.ts';
import { lightRun } from '../../../src/system/lightRun.ts';
import { type Argv, type CommandRunner, type RunResult, timedOut } from '../../../src/system/processes.ts';
import { FakeClock } from '../../time/fakeClock.ts';

const REPORT: DoctorReport = { node: 'node1', mode: 'nftables', at: 1, hasProblems: true, groups: [] };

interface Given {
  readonly isSmall?: boolean;
  readonly socket?: string;
  readonly mode?: ModeName;
}

function make(
  result: Partial<RunResult> | CommandRunner = {},
  { isSmall = true, socket = '/a.sock', mode = 'nftables' }: Given = {},
) {
  const clock = new FakeClock();
  const asked: Argv[] = [];
  const reports = new DoctorReports({
    clock,
    run: (argv) => {
      asked.push(argv);
      if (typeof result === 'function') return result(argv);
      return Promise.resolve({
        code: 1,
        signal: null,
        stdout: JSON.stringify(REPORT),
        stderr: '',
        ...result,
      });
    },
    socket: () => socket,
    isSmall: () => isSmall,
    mode,
    program: ['/junction.js'],
  });
  return { clock, asked, reports };
}

test('one process for all who ask within ten seconds', async () => {
  const { clock, asked, reports } = make();
  const [one, other] = await Promise.all([reports.report(), reports.report()]);
  expect(one).toBe(other);
  expect({ ...one, groups: [] }).toEqual(REPORT);
  await clock.advance(9999);
  await reports.report();
  expect(asked).toHaveLength(1);
  await clock.advance(1);
  await reports.report();
  expect(asked).toHaveLength(2);
});

test.each([
  [true, 'iptables', 'kernel'],
  [false, 'nftables', 'kernel routes rules packets services'],
  [false, 'iptables', 'kernel firewall routes rules packets services'],
] as const)('what is left out says so (few services: %s, %s)', async (isSmall, mode, expected) => {
  const { reports } = make({}, { isSmall, mode });
  const { groups } = await reports.report();
  expect(groups.map(({ name }) => name).join(' ')).toBe(expected);
  expect(groups[0]?.notEvaluated).toEqual([
    'kernel: what it can do is tried out, and this only reads; junction doctor does it',
  ]);
});

test.each([true, false])('it looks, and tries nothing (few services: %s)', async (isSmall) => {
  const { asked, reports } = make({}, { isSmall });
  await reports.report();
  const [argv = []] = asked;
  expect(argv.slice(2, 5)).toEqual(['/junction.js', 'doctor', '--output=json']);
  expect(argv.at(-1)).toBe('--api-socket=/a.sock');
  const groups = argv[5]?.replace('--only=', '').split(',') ?? [];
  for (const group of ['kernel', 'probe']) expect(groups).not.toContain(group);
  expect(groups.includes('sysctls')).toBe(true);
  expect(groups.includes('services')).toBe(isSmall);
});

test('a failure says why, and is not repeated at once', async () => {
  const { asked, reports } = make({ code: 2, stdout: '', stderr: 'one\njunction: no such thing\n' });
  const failure = { status: 503, message: 'junction doctor: junction: no such thing' };
  await expect(reports.report()).rejects.toMatchObject(failure);
  await expect(reports.report()).rejects.toMatchObject(failure);
  expect(asked).toHaveLength(1);
});

test('one that was killed', async () => {
  const { reports } = make({ code: null, signal: 'SIGKILL', stdout: '' });
  await expect(reports.report()).rejects.toMatchObject({ message: 'junction doctor: it ended with SIGKILL' });
});

test('one that takes too long: the machine is busy, nothing is wrong with the proxy', async () => {
  const { reports } = make(() => Promise.reject(timedOut(['junction', 'doctor'], 120_000)));
  await expect(reports.report()).rejects.toMatchObject({
    status: 503,
    code: 'doctor-failed',
    message: 'junction doctor did not end within 120 s, and was killed',
  });
});

test('without a socket there is nobody to ask', async () => {
  const { asked, reports } = make({}, { socket: '' });
  await expect(reports.report()).rejects.toMatchObject({ status: 404, code: 'no-socket' });
  expect(asked).toEqual([]);
});

test('it ends with the proxy', async () => {
  const reports = new DoctorReports({
    clock: new FakeClock(),
    run: lightRun,
    socket: () => '/a.sock',
    isSmall: () => true,
    mode: 'ipvs',
    program: ['-e', 'setInterval(() => undefined, 1000)', '--'],
  });
  const asked = reports.report();
  setTimeout(() => reports.close(), 50);
  await expect(asked).rejects.toMatchObject({ code: 'stopping' });
});

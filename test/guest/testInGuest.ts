/**
 * A kernel of our own, with what many machines' kernels lack: IPVS, dummy devices, SCTP, all of ipset. It is booted
 * once for a file of tests; each of these tests is one that runs in it.
 */
import { afterAll, beforeEach, describe, expect, type RunnerTask, test } from 'vitest';
import { runInGuest } from '../../lab/guest/machine.ts';
import { testProgram } from '../support/programs.ts';
import { requireGuest } from '../support/uml/guest.ts';
import { allTests } from './allTests.ts';
import { type Boot, GuestRun } from './guestRun.ts';
import { testKey } from './report.ts';
import type { GuestSuite } from './suite.ts';

const PROGRAMS = [
  'unshare',
  'nsenter',
  'setpriv',
  'ip',
  'iptables-legacy',
  'ip6tables-legacy',
  'ipset',
  'ipvsadm',
  'conntrack',
];
/** What nothing in the guest asks for by itself. */
const MODULES = ['veth', 'bridge', 'br_netfilter', 'dummy', 'ip_vs', 'ip_vs_rr', 'sctp'];
const LIMIT_MS = 2_400_000;

export function testInGuest(suites: readonly GuestSuite[]): void {
  let run: GuestRun | undefined;
  beforeEach((context) => {
    requireGuest(context, PROGRAMS);
    run ??= new GuestRun(bootFor(new Set(keysToRun(context.task.file.tasks))));
  });
  afterAll(() => run?.ended(), LIMIT_MS);

  // Not by '$name', which puts it in quotation marks.
  describe.each(suites.map((suite) => [suite.name, suite.tests] as const))('%s', (suite, tests) => {
    test.for(Object.keys(tests))('%s', { timeout: LIMIT_MS + 30_000 }, async (name) => {
      const result = await run?.result({ suite, name });
      // Not by a comparison: the message is one already, of what was expected and what was seen in the guest.
      if (result?.ok === false) expect.fail(result.message);
      expect(result?.ok).toBe(true);
    });
  });
}

function bootFor(keys: ReadonlySet<string>): Boot {
  const numbers = allTests().flatMap((each, number) => (keys.has(testKey(each)) ? [String(number)] : []));
  if (numbers.length < keys.size) throw new Error('there is a test here that the guest does not know');
  return (onLine) =>
    runInGuest(testProgram('guest'), { modules: MODULES, timeoutMs: LIMIT_MS, onLine, arguments: numbers });
}

/** `vitest -t` selects some tests, and the guest need not run the others. */
function keysToRun(tasks: readonly RunnerTask[]): readonly string[] {
  return tasks.flatMap((task) => {
    if (task.type === 'suite') return keysToRun(task.tasks);
    if (task.mode === 'skip' || task.mode === 'todo') return [];
    return [testKey({ suite: task.suite?.name ?? '', name: task.name })];
  });
}

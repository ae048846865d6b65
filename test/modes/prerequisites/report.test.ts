/** What the daemon makes of it before its first write. */
import { describe, expect, test } from 'vitest';
import { absent, type Check, present, report, unknown } from '../../../src/modes/prerequisites/check.ts';

function told(checks: readonly Check[]): { readonly warnings: readonly string[]; readonly error?: unknown } {
  const warnings: string[] = [];
  const log = {
    warn: (message: string, fields: object = {}) => warnings.push(`${message}: ${JSON.stringify(fields)}`),
    verbose: () => {},
  };
  try {
    report('ipvs', checks, log);
    return { warnings };
  } catch (error) {
    return { warnings, error };
  }
}

const there = present('a', 'always', 'there');

describe('at the start of the daemon', () => {
  test('what is there is not spoken of', () => {
    expect(told([there, unknown('b', 'for bridges', 'not tried', 'nothing')])).toEqual({ warnings: [] });
  });

  test('what is partly there is a warning with what to do', () => {
    const { warnings, error } = told([
      absent('match recent', 'for ClientIP', 'refused', 'modprobe xt_recent'),
    ]);
    expect(error).toBeUndefined();
    expect(warnings).toEqual([expect.stringMatching(/match recent.*for ClientIP.*modprobe xt_recent/)]);
  });

  test('what could not be tried is a warning: the first write will tell', () => {
    const { warnings, error } = told([unknown('nat table', 'always', 'the lock is held', 'try again')]);
    expect(error).toBeUndefined();
    expect(warnings).toHaveLength(1);
  });

  test('everything that is missing is named at once', () => {
    const missing = [
      absent('kernel module ip_vs', 'always', 'no IPVS', 'modprobe ip_vs'),
      there,
      absent('kernel module dummy', 'always', 'no dummy', 'modprobe dummy'),
    ];
    expect(told(missing).error).toMatchObject({
      code: 'PREFLIGHT_FAILED',
      message: 'ipvs mode cannot run here: 2 things are missing',
      detail:
        '- kernel module ip_vs: no IPVS\n  modprobe ip_vs\n- kernel module dummy: no dummy\n  modprobe dummy',
      hint: expect.stringContaining('junction check --proxy-mode=ipvs'),
    });
  });
});

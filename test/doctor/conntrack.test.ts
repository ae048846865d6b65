import { describe, expect, test } from 'vitest';
import { checkConntrack, readConntrackStatistics } from '../../src/doctor/conntrack.ts';
import { codesOf, fakeMachine, groupOf } from './fakeMachine.ts';

/** Counters are hexadecimal, in a row for each processor. */
function machineWith(count: number, max: number, drop = 0, insertFailed = 0) {
  const hex = (number: number): string => number.toString(16).padStart(8, '0');
  const statistics = `entries  clashres found new insert_failed drop early_drop
0000000c  00000000 00000000 00000000 ${hex(insertFailed)} ${hex(drop)} 00000000
0000000c  00000000 00000000 00000000 00000000 00000001 00000000
`;
  return fakeMachine({
    sysctls: { 'net/netfilter/nf_conntrack_count': `${count}`, 'net/netfilter/nf_conntrack_max': `${max}` },
    files: { 'net/stat/nf_conntrack': statistics },
  });
}

describe('conntrack', () => {
  test.each([
    [10, 100, 0, 0, 'info conntrack-was-full'],
    [85, 100, 0, 0, 'warning conntrack-nearly-full'],
    [99, 100, 0, 0, 'error conntrack-full'],
    // Drops while doctor looks mean that it is full now.
    [10, 100, 20, 0, 'error conntrack-full'],
    [10, 100, 0, 7, 'warning conntrack-insert-failed, info conntrack-was-full'],
  ])(
    '%i of %i, and meanwhile %i are dropped and %i not inserted',
    async (count, max, drop, failed, codes) => {
      const before = readConntrackStatistics(machineWith(count, max));
      const now = machineWith(count, max, drop, failed);
      const group = await groupOf((each) => checkConntrack(each, now, before));
      expect(codesOf(group).join(', ')).toBe(codes);
      if (failed > 0) return;
      expect(group.findings[0]?.evidence).toContain(`${count} of ${max} connections`);
      expect(group.findings[0]?.evidence).toContain(`${drop + 1}`);
      expect(group.findings[0]?.cure).toContain('sysctl -w net.netfilter.nf_conntrack_max=131072');
    },
  );

  test('clashes of one flow, long ago', async () => {
    const machine = machineWith(10, 100, 0, 7);
    const group = await groupOf((each) => checkConntrack(each, machine, readConntrackStatistics(machine)));
    expect(codesOf(group)).toEqual(['info conntrack-was-full', 'info conntrack-insert-failed']);
  });

  test('a kernel without it', async () => {
    const group = await groupOf((each) => checkConntrack(each, fakeMachine({}), new Map()));
    expect(group.notEvaluated.join()).toContain('nf_conntrack is not loaded');
  });
});

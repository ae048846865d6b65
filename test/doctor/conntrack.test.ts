import { describe, expect, test } from 'vitest';
import { checkConntrack, parseConntrackStatistics } from '../../src/doctor/conntrack.ts';
import { codesOf, fakeMachine, groupOf } from './fakeMachine.ts';

const statistics = (drop: number, insertFailed: number): string =>
  `entries  clashres found new insert_failed drop early_drop
0000000c  00000000 00000000 00000000 ${hex(insertFailed)} ${hex(drop)} 00000000
0000000c  00000000 00000000 00000000 00000000 00000001 00000000
`;
const hex = (number: number): string => number.toString(16).padStart(8, '0');

function look(count: number, max: number, now = statistics(0, 0), before = now) {
  const machine = fakeMachine({
    sysctls: { 'net/netfilter/nf_conntrack_count': `${count}`, 'net/netfilter/nf_conntrack_max': `${max}` },
    files: { 'net/stat/nf_conntrack': now },
  });
  return groupOf((group) => checkConntrack(group, machine, parseConntrackStatistics(before)));
}

describe('conntrack', () => {
  test('counters are hexadecimal, a row for each processor', () => {
    const parsed = parseConntrackStatistics(statistics(16, 255));
    expect(parsed.get('drop')).toBe(17);
    expect(parsed.get('insert_failed')).toBe(255);
    expect(parsed.get('entries')).toBe(12);
  });

  test.each([
    [10, 100, 'info conntrack-was-full'],
    [85, 100, 'warning conntrack-nearly-full'],
    [99, 100, 'error conntrack-full'],
    [100, 100, 'error conntrack-full'],
  ])('%i of %i', async (count, max, code) => {
    const group = await look(count, max);
    expect(codesOf(group)).toEqual([code]);
    expect(group.findings[0]?.evidence).toContain(`${count} of ${max} connections`);
    expect(group.findings[0]?.cure).toContain('sysctl -w net.netfilter.nf_conntrack_max=131072');
  });

  test('drops while doctor looks mean that it is full now', async () => {
    expect(codesOf(await look(10, 100, statistics(20, 0), statistics(4, 0)))).toEqual([
      'error conntrack-full',
    ]);
  });

  test('clashes of one flow are a warning while they go on', async () => {
    expect(codesOf(await look(10, 100, statistics(0, 7)))).toEqual([
      'info conntrack-was-full',
      'info conntrack-insert-failed',
    ]);
    expect(codesOf(await look(10, 100, statistics(0, 7), statistics(0, 6)))).toEqual([
      'warning conntrack-insert-failed',
      'info conntrack-was-full',
    ]);
  });

  test('a kernel without it', async () => {
    const group = await groupOf((each) => checkConntrack(each, fakeMachine({}), new Map()));
    expect(group.notEvaluated.join()).toContain('nf_conntrack is not loaded');
  });
});

import { describe, expect, test } from 'vitest';
import { kernelFindings } from '../../src/explain/kernelFindings.ts';
import type { KernelExplanation, KernelOutcome, KernelStep } from '../../src/explain/types.ts';

const step = (table: string, chain: string, rule: string, isForeign = true): KernelStep => ({
  hook: 'filter forward',
  table,
  chain,
  rule,
  found: [],
  packets: 1204,
  ...(isForeign && { isForeign }),
});
const outcome = (verdict: KernelOutcome['verdict'], ...steps: readonly KernelStep[]): KernelOutcome => ({
  verdict,
  probability: 1,
  steps,
});

function kernel(asPlanned: boolean, ...outcomes: readonly KernelOutcome[]): KernelExplanation {
  const differences = asPlanned ? [] : ['planned: forwarded; kernel: something else'];
  return { mode: 'iptables', readAt: 0, readMs: 0, asPlanned, differences, outcomes, notes: [] };
}

describe('findings of the kernel', () => {
  test('none where it does what is planned, or was not asked', () => {
    expect(kernelFindings('IPv4', undefined)).toEqual([]);
    expect(
      kernelFindings('IPv4', kernel(true, outcome('dropped', step('filter', 'FORWARD', '-j DROP')))),
    ).toEqual([]);
  });

  test.each([
    [
      'IPv4',
      'filter',
      'FORWARD',
      '-s 10.0.0.0/8 -j DROP',
      'iptables -t filter -D FORWARD -s 10.0.0.0/8 -j DROP',
    ],
    ['IPv6', 'raw', 'PREROUTING', '-j DROP', 'ip6tables -t raw -D PREROUTING -j DROP'],
    ['IPv4', 'filter', 'FORWARD', 'policy drop', 'iptables -t filter -P FORWARD ACCEPT'],
    [
      'IPv4',
      'inet firewalld',
      'filter_FORWARD',
      'reject',
      'nft delete rule inet firewalld filter_FORWARD handle NUMBER',
    ],
    ['IPv4', 'inet own', 'forward', 'policy drop', "nft chain inet own forward '{ policy accept; }'"],
  ] as const)('another program, %s %s %s: %s', (family, table, chain, rule, cure) => {
    const [finding] = kernelFindings(family, kernel(false, outcome('dropped', step(table, chain, rule))));
    expect(finding).toMatchObject({ code: 'foreign-rule', severity: 'error' });
    expect(finding?.text).toContain(`${table} ${chain}`);
    expect(finding?.evidence).toBe(`${table} ${chain}: ${rule}; 1,204 packets so far`);
    expect(finding?.cure).toContain(cure);
  });

  test('our own rules are not those that are planned', () => {
    const findings = kernelFindings(
      'IPv4',
      kernel(false, outcome('passed', step('nat', 'X', '-j ACCEPT', false))),
    );
    expect(findings).toMatchObject([
      { code: 'kernel-differs', evidence: 'planned: forwarded; kernel: something else' },
    ]);
    expect(findings[0]?.cure).toContain('junction diff');
  });
});

/** The kernel's word: as planned, or each difference named; and whose rule it is. */
import { describe, expect, test } from 'vitest';
import { kernelFindings } from '../../src/explain/kernelFindings.ts';
import { explainPackets } from '../../src/explain/packet.ts';
import { explainService } from '../../src/explain/service.ts';
import type { Subject } from '../../src/explain/subject.ts';
import type { KernelExplanation } from '../../src/explain/types.ts';
import type { Family } from '../../src/model/ip.ts';
import type { KernelReader, TraceStep, WalkOutcome } from '../../src/modes/kernelRules.ts';
import { service, slice } from '../scenarios/objects.ts';
import { ip } from '../scenarios/scenario.ts';
import { clusterOf, NOW, readBy } from './given.ts';

const BALANCED = {
  type: 'LoadBalancer',
  loadBalancerIPs: ['203.0.113.10'],
  sourceRanges: ['192.0.2.0/24'],
} as const;
const SUBJECT = clusterOf([
  service('web', { clusterIP: '10.96.1.1', ...BALANCED }),
  slice('web', '8080', 'pod-a', 'pod-c'),
  service('idle', { clusterIP: '10.96.1.2' }),
]);
const [WEB, BARRED, IDLE, NONE] = ['10.96.1.1:80', '203.0.113.10:80', '10.96.1.2:80', '198.18.0.9:80'];

const STEP: TraceStep = {
  hook: 'filter forward',
  table: 'filter',
  chain: 'FORWARD',
  ruleIndex: 0,
  text: '-s 10.0.0.0/8 -j DROP',
  found: [],
};
const RULE = 'filter FORWARD: -s 10.0.0.0/8 -j DROP';
const END = { path: [], lookups: 0, byAffinity: false, learned: [] };

function to(address: string, probability: number, masqueraded = true): WalkOutcome {
  return { kind: 'forward', to: ip(address), port: 8080, masqueraded, probability, ...END };
}

function stopped(kind: 'drop' | 'reject', probability = 1, isForeign = false): WalkOutcome {
  return { kind, probability, ...END, path: [{ ...STEP, isForeign }] };
}

const PASSED: WalkOutcome = { kind: 'pass', masqueraded: false, probability: 1, ...END };

function given(outcomes: readonly WalkOutcome[], more: Partial<KernelReader> = {}): Subject {
  return readBy(SUBJECT, { walk: () => Promise.resolve({ outcomes, notes: ['a note'] }), ...more });
}

async function kernelOf(subject: Subject, destination = WEB): Promise<KernelExplanation> {
  const [answer] = await explainPackets(subject, { from: 'outside', to: destination });
  if (!answer?.kernel) throw new Error('no kernel');
  return answer.kernel;
}

const A = '10.244.1.11';
const C = '10.244.2.11';
const GONE = '10.244.9.9';
const BOTH = `${A}:8080, ${C}:8080`;
const UNPLANNED = 'planned: nothing of the kind; kernel:';
const NO_C = `planned: 50 % forwarded to ${C}:8080; kernel: none`;

describe('compared with the plan', () => {
  test.for<readonly [string, string, readonly WalkOutcome[], ...string[]]>([
    ['equal, in halves that are rounded', WEB, [to(A, 0.499_99), to(C, 0.500_01)]],
    ['one endpoint by two ways', WEB, [to(A, 0.25), to(A, 0.25), to(C, 0.5)]],
    ['the client has an affinity entry', WEB, [{ ...to(C, 1), byAffinity: true }]],
    [
      'an affinity entry for an endpoint that is gone',
      WEB,
      [{ ...to(GONE, 1), byAffinity: true }],
      `${UNPLANNED} 100 % forwarded to ${GONE}:8080, masqueraded`,
    ],
    ['an endpoint is missing', WEB, [to(A, 1)], `planned: 50 % forwarded to ${A}:8080; kernel: 100 %`, NO_C],
    [
      'another endpoint',
      WEB,
      [to(A, 0.5), to(GONE, 0.5)],
      NO_C,
      `${UNPLANNED} 50 % forwarded to ${GONE}:8080, masqueraded`,
    ],
    [
      'not masqueraded',
      WEB,
      [to(A, 0.5, false), to(C, 0.5)],
      `planned: ${A}:8080 masqueraded; kernel: not masqueraded`,
    ],
    [
      'dropped by another program',
      WEB,
      [stopped('drop', 1, true)],
      `planned: forwarded to ${BOTH}; kernel: dropped by ${RULE} (another program's rule)`,
    ],
    [
      'half of it dropped',
      WEB,
      [to(A, 0.5), stopped('drop', 0.5)],
      NO_C,
      `${UNPLANNED} 50 % dropped by ${RULE}`,
    ],
    [
      'no rules',
      WEB,
      [PASSED],
      `planned: forwarded to ${BOTH}; kernel: left alone: no rule takes it to a service`,
    ],
    ['dropped as planned', BARRED, [stopped('drop')]],
    [
      'forwarded although it is to be dropped',
      BARRED,
      [to(A, 1)],
      `planned: dropped; kernel: forwarded to ${A}:8080, masqueraded`,
    ],
    ['rejected as planned', IDLE, [stopped('reject')]],
    ['dropped instead of rejected', IDLE, [stopped('drop')], `planned: rejected; kernel: dropped by ${RULE}`],
    ['passed as planned', NONE, [PASSED]],
    [
      'taken by another program',
      NONE,
      [to(A, 1, false)],
      `planned: left alone: no rule takes it to a service; kernel: forwarded to ${A}:8080, not masqueraded`,
    ],
  ])('%s', async ([, destination, outcomes, ...differences]) => {
    const kernel = await kernelOf(given(outcomes), destination);
    expect(kernel.differences).toEqual(differences);
    expect(kernel.asPlanned).toBe(differences.length === 0);
  });
});

test('equal ends are one outcome, with rules and counters; notes and times are kept', async () => {
  const step: TraceStep = { ...STEP, packets: 12, found: ['any-1 { x }'] };
  const outcomes = [{ ...to(A, 0.25), path: [step] }, to(A, 0.25), to(C, 0.5)];
  const kernel = await kernelOf(given(outcomes));
  expect(kernel).toMatchObject({ asPlanned: true, notes: ['a note'], readAt: NOW, readMs: 0 });
  const { hook, table, chain, text: rule, found, packets } = step;
  const end = { verdict: 'forwarded', masquerade: true, probability: 0.5 };
  expect(kernel.outcomes).toEqual([
    { ...end, to: `${A}:8080`, steps: [{ hook, table, chain, rule, found, packets }] },
    { ...end, to: `${C}:8080`, steps: [] },
  ]);
  expect((await kernelOf(given(outcomes, { readAt: 5 }))).readAt).toBe(5);
});

test('a walk that fails is a note', async () => {
  const kernel = await kernelOf(given([], { walk: () => Promise.reject(new Error('EPERM')) }));
  expect(kernel).toMatchObject({
    notes: ['not evaluated: the rules could not be read: EPERM'],
    outcomes: [],
    differences: [],
  });
  expect(kernel.asPlanned).toBeUndefined();
});

test('a service is told once what is wrong in the kernel', async () => {
  const { findings } = await explainService(given([stopped('drop', 1, true)]), { service: 'default/idle' });
  expect(findings.map(({ code }) => code)).toEqual(['no-endpoints', 'foreign-rule']);
});

describe('whose rule it is', () => {
  function found(family: Family, table: string, chain: string, rule: string, isForeign = true) {
    const step = { hook: 'filter forward', table, chain, rule, found: [], packets: 1204, isForeign };
    const outcomes = [{ verdict: 'dropped', probability: 1, steps: [step] }] as const;
    const differences = ['planned: forwarded; kernel: something else'];
    const read = { mode: 'iptables', readAt: 0, readMs: 0, notes: [] } as const;
    return kernelFindings(family, { ...read, asPlanned: false, differences, outcomes });
  }

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
    ['IPv4', 'inet x', 'filter_FORWARD', 'reject', 'nft delete rule inet x filter_FORWARD handle NUMBER'],
    ['IPv4', 'inet own', 'forward', 'policy drop', "nft chain inet own forward '{ policy accept; }'"],
  ] as const)("another program's, %s %s %s: %s", (family, table, chain, rule, cure) => {
    const [finding] = found(family, table, chain, rule);
    expect(finding).toMatchObject({ code: 'foreign-rule', severity: 'error' });
    expect(finding?.text).toContain(`${table} ${chain}`);
    expect(finding?.evidence).toBe(`${table} ${chain}: ${rule}; 1,204 packets so far`);
    expect(finding?.cure).toContain(cure);
  });

  test('ours, which is not the one that is planned', () => {
    expect(found('IPv4', 'nat', 'X', '-j ACCEPT', false)).toMatchObject([
      {
        code: 'kernel-differs',
        evidence: 'planned: forwarded; kernel: something else',
        cure: expect.stringContaining('junction diff'),
      },
    ]);
  });
});

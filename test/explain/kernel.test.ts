/** The kernel's word: as planned, or each difference named. */
import { describe, expect, test } from 'vitest';
import { explainPackets } from '../../src/explain/packet.ts';
import { explainService } from '../../src/explain/service.ts';
import type { Subject } from '../../src/explain/subject.ts';
import type { KernelExplanation } from '../../src/explain/types.ts';
import type { KernelReader } from '../../src/modes/kernelReader.ts';
import type { TraceStep, WalkOutcome, WalkResult } from '../../src/modes/walk.ts';
import { service, slice } from '../scenarios/objects.ts';
import { ip } from '../scenarios/scenario.ts';
import { clusterOf, NOW } from './given.ts';

const OBJECTS = [
  service('web', {
    clusterIP: '10.96.1.1',
    type: 'LoadBalancer',
    loadBalancerIPs: ['203.0.113.10'],
    sourceRanges: ['192.0.2.0/24'],
  }),
  slice('web', '8080', 'pod-a', 'pod-c'),
  service('idle', { clusterIP: '10.96.1.2' }),
];

const STEP: TraceStep = {
  hook: 'filter forward',
  table: 'filter',
  chain: 'FORWARD',
  ruleIndex: 0,
  text: '-s 10.0.0.0/8 -j DROP',
  found: [],
};

function to(address: string, probability: number, masqueraded = true): WalkOutcome<unknown> {
  return {
    kind: 'forward',
    to: ip(address),
    port: 8080,
    masqueraded,
    probability,
    path: [],
    lookups: 0,
    byAffinity: false,
    learned: [],
  };
}

function stopped(
  kind: 'drop' | 'reject' | 'pass',
  probability = 1,
  step: TraceStep = STEP,
): WalkOutcome<unknown> {
  const end = { probability, path: [step], lookups: 0, byAffinity: false, learned: [] };
  return kind === 'pass' ? { kind, masqueraded: false, ...end } : { kind, ...end };
}

function reading(
  outcomes: readonly WalkOutcome<unknown>[],
  notes: readonly string[] = [],
): KernelReader['walk'] {
  return () => Promise.resolve({ outcomes, notes } satisfies WalkResult<unknown>);
}

function given(walk: KernelReader['walk'], more: Partial<KernelReader> = {}): Subject {
  const subject = clusterOf(OBJECTS);
  const kernel: KernelReader = {
    walk,
    compare: () => Promise.resolve([]),
    dump: () => Promise.resolve(undefined),
    ...more,
  };
  return { ...subject, families: subject.families.map((family) => ({ ...family, kernel })) };
}

async function kernelOf(
  walk: KernelReader['walk'],
  destination = '10.96.1.1:80',
): Promise<KernelExplanation> {
  const [answer] = await explainPackets(given(walk), { from: 'outside', to: destination });
  if (!answer?.kernel) throw new Error('no kernel');
  return answer.kernel;
}

const A = '10.244.1.11';
const C = '10.244.2.11';

describe('compared with the plan', () => {
  test.each<readonly [string, string, readonly WalkOutcome<unknown>[], readonly string[]]>([
    ['equal', '10.96.1.1:80', [to(A, 0.5), to(C, 0.5)], []],
    ['a rounded probability', '10.96.1.1:80', [to(A, 0.499_99), to(C, 0.500_01)], []],
    ['one endpoint by two ways', '10.96.1.1:80', [to(A, 0.25), to(A, 0.25), to(C, 0.5)], []],
    ['the client has an affinity entry', '10.96.1.1:80', [{ ...to(C, 1), byAffinity: true }], []],
    [
      'an affinity entry for an endpoint that is gone',
      '10.96.1.1:80',
      [{ ...to('10.244.9.9', 1), byAffinity: true }],
      ['planned: nothing of the kind; kernel: 100 % forwarded to 10.244.9.9:8080, masqueraded'],
    ],
    [
      'an endpoint is missing',
      '10.96.1.1:80',
      [to(A, 1)],
      [
        `planned: 50 % forwarded to ${A}:8080; kernel: 100 %`,
        `planned: 50 % forwarded to ${C}:8080; kernel: none`,
      ],
    ],
    [
      'another endpoint',
      '10.96.1.1:80',
      [to(A, 0.5), to('10.244.9.9', 0.5)],
      [
        `planned: 50 % forwarded to ${C}:8080; kernel: none`,
        'planned: nothing of the kind; kernel: 50 % forwarded to 10.244.9.9:8080, masqueraded',
      ],
    ],
    [
      'not masqueraded',
      '10.96.1.1:80',
      [to(A, 0.5, false), to(C, 0.5)],
      [`planned: ${A}:8080 masqueraded; kernel: not masqueraded`],
    ],
    [
      'dropped by another program',
      '10.96.1.1:80',
      [stopped('drop', 1, { ...STEP, isForeign: true })],
      [
        `planned: forwarded to ${A}:8080, ${C}:8080; kernel: dropped by filter FORWARD: -s 10.0.0.0/8 -j DROP (another program's rule)`,
      ],
    ],
    [
      'half of it dropped',
      '10.96.1.1:80',
      [to(A, 0.5), stopped('drop', 0.5)],
      [
        `planned: 50 % forwarded to ${C}:8080; kernel: none`,
        'planned: nothing of the kind; kernel: 50 % dropped by filter FORWARD: -s 10.0.0.0/8 -j DROP',
      ],
    ],
    [
      'no rules',
      '10.96.1.1:80',
      [stopped('pass')],
      [`planned: forwarded to ${A}:8080, ${C}:8080; kernel: left alone: no rule takes it to a service`],
    ],
    ['dropped as planned', '203.0.113.10:80', [stopped('drop')], []],
    [
      'forwarded although it is to be dropped',
      '203.0.113.10:80',
      [to(A, 1)],
      [`planned: dropped; kernel: forwarded to ${A}:8080, masqueraded`],
    ],
    ['rejected as planned', '10.96.1.2:80', [stopped('reject')], []],
    [
      'dropped instead of rejected',
      '10.96.1.2:80',
      [stopped('drop')],
      ['planned: rejected; kernel: dropped by filter FORWARD: -s 10.0.0.0/8 -j DROP'],
    ],
    ['passed as planned', '198.18.0.9:80', [stopped('pass')], []],
    [
      'taken by another program',
      '198.18.0.9:80',
      [to(A, 1, false)],
      [`planned: left alone: no rule takes it to a service; kernel: forwarded to ${A}:8080, not masqueraded`],
    ],
  ])('%s', async (_, destination, outcomes, differences) => {
    const kernel = await kernelOf(reading(outcomes), destination);
    expect(kernel.differences).toEqual(differences);
    expect(kernel.asPlanned).toBe(differences.length === 0);
  });

  test('equal ends are one outcome, with rules and counters', async () => {
    const step: TraceStep = { ...STEP, packets: 12, found: ['any-1 { x }'] };
    const { outcomes } = await kernelOf(reading([{ ...to(A, 0.25), path: [step] }, to(A, 0.25), to(C, 0.5)]));
    expect(outcomes).toEqual([
      {
        verdict: 'forwarded',
        to: `${A}:8080`,
        masquerade: true,
        probability: 0.5,
        steps: [
          {
            hook: 'filter forward',
            table: 'filter',
            chain: 'FORWARD',
            rule: STEP.text,
            found: ['any-1 { x }'],
            packets: 12,
          },
        ],
      },
      { verdict: 'forwarded', to: `${C}:8080`, masquerade: true, probability: 0.5, steps: [] },
    ]);
  });
});

test('a walk that fails is a note', async () => {
  const kernel = await kernelOf(() => Promise.reject(new Error('EPERM')));
  expect(kernel).toMatchObject({
    notes: ['not evaluated: the rules could not be read: EPERM'],
    outcomes: [],
    differences: [],
  });
  expect(kernel.asPlanned).toBeUndefined();
});

test('notes and times are kept; a dump has the time at which it was read', async () => {
  expect(await kernelOf(reading([to(A, 0.5), to(C, 0.5)], ['a rule with -m bpf']))).toMatchObject({
    asPlanned: true,
    notes: ['a rule with -m bpf'],
    readAt: NOW,
    readMs: 0,
  });
  const dumped = given(reading([to(A, 0.5), to(C, 0.5)]), { readAt: 5 });
  const [answer] = await explainPackets(dumped, { from: 'outside', to: '10.96.1.1:80' });
  expect(answer?.kernel?.readAt).toBe(5);
});

test('a service is told once what is wrong in the kernel', async () => {
  const subject = given(reading([stopped('drop', 1, { ...STEP, isForeign: true })]));
  const { findings } = await explainService(subject, { service: 'default/idle' });
  expect(findings.map(({ code }) => code)).toEqual(['no-endpoints', 'foreign-rule']);
});

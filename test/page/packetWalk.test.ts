/** Where the kernel does something else than planned: which way it is on, at which hook, and in which words. */
import { describe, expect, test } from 'vitest';
import { stationsOf } from '../../page/src/views/packetStations.ts';
import { chosenWay, waysOf } from '../../page/src/views/packetWays.ts';
import type { KernelOutcome, KernelStep, PacketExplanation } from '../../src/explain/types.ts';
import { packetTo } from './support/ports.ts';

describe('where the kernel does something else', () => {
  const step = (hook: string, chain: string, rule: string, more: Partial<KernelStep> = {}): KernelStep => ({
    hook,
    table: hook.split(' ')[0] ?? '',
    chain,
    rule,
    found: [],
    ...more,
  });
  const endpoint = (address: string, probability: number): PacketExplanation['endpoints'][number] => ({
    address,
    isLocal: false,
    node: 'node2',
    probability,
    masquerade: false,
    masqueradeReason: 'the source is in the pod network',
  });
  const DNAT = step('nat prerouting', 'KUBE-SEP-A', '-j DNAT --to-destination 10.244.1.11:80');
  const to = (address: string, more: Partial<KernelOutcome> = {}): KernelOutcome => ({
    verdict: 'forwarded',
    to: address,
    masquerade: false,
    probability: 1,
    steps: [DNAT],
    ...more,
  });

  function answerWith(outcomes: readonly KernelOutcome[]): PacketExplanation {
    const answer = packetTo('10.96.0.10', 'pod');
    return {
      ...answer,
      mode: 'iptables',
      packet: { ...answer.packet, inInterface: 'eth0' },
      endpoints: [endpoint('10.244.1.11:80', 0.5), endpoint('10.244.2.11:80', 0.5)],
      kernel: {
        mode: 'iptables',
        readAt: 0,
        readMs: 1,
        asPlanned: false,
        differences: ['planned: …; kernel: …'],
        outcomes,
        notes: [],
      },
    };
  }

  const differencesAt = (answer: PacketExplanation, key?: string): readonly string[] => {
    const way = chosenWay(waysOf(answer), key);
    if (!way) throw new Error('no way');
    return stationsOf(answer, way).flatMap(({ point, differences }) =>
      differences.map(({ expected, found }) => `${point}: ${expected} | ${found}`),
    );
  };

  test('an endpoint is missing', () => {
    const answer = answerWith([to('10.244.1.11:80')]);
    expect(waysOf(answer).map(({ key, differences }) => [key, differences.length])).toEqual([
      ['10.244.1.11:80', 1],
      ['10.244.2.11:80', 1],
    ]);
    expect(differencesAt(answer, '10.244.1.11:80')).toEqual([
      'prerouting: 50 % forwarded to 10.244.1.11:80 | 100 %',
    ]);
    expect(differencesAt(answer, '10.244.2.11:80')).toEqual([
      'prerouting: 50 % forwarded to 10.244.2.11:80 | none',
    ]);
  });

  test('it goes to somebody else', () => {
    const answer = answerWith([
      to('10.244.1.11:80', { probability: 0.5 }),
      to('10.244.9.9:80', { probability: 0.5 }),
    ]);
    expect(differencesAt(answer, '10.244.9.9:80')).toEqual([
      'prerouting: nothing of the kind | 50 % forwarded to 10.244.9.9:80, not masqueraded',
    ]);
  });

  test('it is masqueraded', () => {
    const even = { probability: 0.5 };
    const answer = answerWith([
      to('10.244.1.11:80', { ...even, masquerade: true }),
      to('10.244.2.11:80', even),
    ]);
    // The first that is not as planned is shown first.
    expect(differencesAt(answer)).toEqual([
      'postrouting: client address kept: the source is in the pod network | masqueraded',
    ]);
    expect(differencesAt(answer, '10.244.2.11:80')).toEqual([]);
  });

  test("another program's rule drops it", () => {
    const drop = step('filter forward', 'FORWARD', '-j DROP', { isForeign: true });
    const answer = answerWith([{ verdict: 'dropped', probability: 1, steps: [DNAT, drop] }]);
    const way = chosenWay(waysOf(answer), 'dropped');
    if (!way) throw new Error('no way');
    const stations = stationsOf(answer, way);
    expect(stations.map(({ point, isEnd, differences }) => [point, isEnd, differences.length])).toEqual([
      ['prerouting', false, 0],
      ['forward', true, 1],
    ]);
    expect(stations[1]?.differences[0]).toEqual({
      where: 'end',
      expected: 'forwarded to 10.244.1.11:80, 10.244.2.11:80',
      found: "dropped by filter FORWARD: -j DROP (another program's rule)",
    });
  });

  test('nothing takes it to a service', () => {
    const answer = answerWith([{ verdict: 'passed', probability: 1, steps: [] }]);
    expect(differencesAt(answer, 'passed')).toEqual([
      'prerouting: forwarded to 10.244.1.11:80, 10.244.2.11:80 | left alone: no rule takes it to a service',
    ]);
  });

  test('an affinity entry is no difference', () => {
    const answer = answerWith([to('10.244.2.11:80', { byAffinity: true })]);
    expect(waysOf(answer).map(({ key, differences }) => [key, differences.length])).toEqual([
      ['10.244.2.11:80', 0],
    ]);
  });

  test('rules that could not be read are none either', () => {
    const answer = answerWith([]);
    if (!answer.kernel) throw new Error('no kernel');
    const { asPlanned: _, ...unread } = answer.kernel;
    expect(differencesAt({ ...answer, kernel: unread })).toEqual([]);
  });
});

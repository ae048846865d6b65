/** The way of a packet as stations: of every scenario in every mode, and where the kernel does something else. */
import { describe, expect, test } from 'vitest';
import { mapOf } from '../../page/src/views/packetDrawing.ts';
import { type Station, stationsOf } from '../../page/src/views/packetStations.ts';
import { chosenWay, type PacketWay, waysOf } from '../../page/src/views/packetWays.ts';
import { explainPacket } from '../../src/explain/packet.ts';
import { printPacket } from '../../src/explain/print.ts';
import type { KernelOutcome, KernelStep, PacketExplanation } from '../../src/explain/types.ts';
import { FAMILIES } from '../../src/model/ip.ts';
import { fakeMode, MECHANISMS, writtenSubject } from '../explain/mechanisms.ts';
import { SCENARIOS } from '../scenarios/cases/index.ts';
import { proxyOf } from '../scenarios/scenario.ts';

const ENDED: ReadonlySet<string> = new Set(['dropped', 'rejected']);

describe.each(MECHANISMS)('%s', (mechanism) => {
  test.each(SCENARIOS)('$name', async (scenario) => {
    for (const family of FAMILIES) {
      const rows = scenario.rows.filter((row) => row.family === family);
      if (rows.length === 0) continue;
      const mode = await fakeMode(mechanism, family);
      const proxy = proxyOf(family, scenario, mode.writer);
      await proxy.sync();
      const subject = await writtenSubject(mode, proxy);
      const [ofFamily] = subject.families;
      if (!ofFamily) throw new Error('no family');
      for (const { packet } of rows) {
        const answer = await explainPacket(subject, { family: ofFamily, packet });
        expectWhole(answer);
        const { kernel: _, ...planned } = answer;
        expectWhole(planned);
        // A node port, or an address of the node, is another's too: there the kernel knows better.
        if (answer.frontend?.kind === 'clusterIP' || answer.frontend?.kind === 'loadBalancerIP')
          expect(endsOf(planned)).toEqual(endsOf(answer));
      }
    }
  });
});

/** The hooks on the way of each packet that is stopped. */
function endsOf(answer: PacketExplanation): readonly string[] {
  if (!ENDED.has(answer.verdict)) return [];
  return waysOf(answer).map((way) =>
    stationsOf(answer, way)
      .map(({ point }) => point)
      .join(' '),
  );
}

/** Nothing of the answer is lost, nothing is said that is not in it, and the drawing has the way. */
function expectWhole(answer: PacketExplanation): void {
  const ways = waysOf(answer);
  const outcomes = answer.kernel?.outcomes ?? [];
  expect(ways.flatMap(({ differences }) => differences)).toEqual([]);
  expect(new Set(ways.map(({ key }) => key)).size).toBe(ways.length);
  expect(new Set(ways.flatMap(({ outcome }) => outcome ?? []))).toEqual(new Set(outcomes));
  const text = printPacket(answer, { paint: (_, words) => words, columns: 10_000, isWide: true });
  for (const way of ways) {
    const stations = stationsOf(answer, way);
    expect(stations.flatMap(({ stages }) => stages.flat())).toEqual(way.outcome?.steps ?? []);
    expect(new Set(stations.map(({ id }) => id)).size).toBe(stations.length);
    const isStopped = ENDED.has(answer.verdict);
    expect(stations.filter(({ isEnd }) => isEnd)).toHaveLength(isStopped ? 1 : 0);
    if (isStopped) expect(stations.at(-1)?.isEnd).toBe(true);
    expectWords(answer, way, stations, text);
    expectDrawn(answer, stations);
  }
}

function expectWords(
  { frontend, reason, verdict }: PacketExplanation,
  { planned }: PacketWay,
  stations: readonly Station[],
  text: string,
): void {
  const said = stations.flatMap((station) => station.planned);
  expect(said.length).toBeGreaterThan(0);
  if (frontend) expect(said[0]).toMatch(/ of /);
  if (planned) {
    expect(said.some((line) => line.endsWith(`forwarded to ${planned.address}`))).toBe(true);
    expect(said.some((line) => text.includes(line))).toBe(true);
  }
  if (ENDED.has(verdict)) expect(said).toContain(`${verdict}: ${reason}`);
}

function expectDrawn(answer: PacketExplanation, stations: readonly Station[]): void {
  const { places, lines, text } = mapOf(answer, stations);
  const way = text.split(' → ');
  expect(way.length).toBeGreaterThan(1);
  const taken = new Set(places.flatMap(({ name, isTaken }) => (isTaken ? name : [])));
  expect(stations.map(({ point }) => point).filter((point) => !taken.has(point))).toEqual([]);
  // Each part of the way is a line of the drawing.
  expect(lines.filter(({ isTaken }) => isTaken).length).toBe(
    new Set(way.slice(1).map((name, index) => `${way[index]} ${name}`)).size,
  );
  expect(lines.map(({ path }) => path).filter((path) => !/^M[\d. LC-]+$/.test(path))).toEqual([]);
}

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

  async function answerWith(
    outcomes: readonly KernelOutcome[],
    more: Partial<PacketExplanation> = {},
  ): Promise<PacketExplanation> {
    const [scenario] = SCENARIOS;
    if (!scenario) throw new Error('no scenario');
    const mode = await fakeMode('current', 'IPv4');
    const proxy = proxyOf('IPv4', scenario, mode.writer);
    await proxy.sync();
    const subject = await writtenSubject(mode, proxy);
    const [family] = subject.families;
    const row = scenario.rows.find((each) => each.family === 'IPv4' && each.packet.inInterface !== undefined);
    if (!family || !row) throw new Error('no packet');
    const answer = await explainPacket(subject, { family, packet: row.packet });
    return {
      ...answer,
      verdict: 'forwarded',
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
      ...more,
    };
  }

  const differencesAt = (answer: PacketExplanation, key?: string): readonly string[] => {
    const way = chosenWay(waysOf(answer), key);
    if (!way) throw new Error('no way');
    return stationsOf(answer, way).flatMap(({ point, differences }) =>
      differences.map(({ expected, found }) => `${point}: ${expected} | ${found}`),
    );
  };

  test('an endpoint is missing', async () => {
    const answer = await answerWith([to('10.244.1.11:80')]);
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

  test('it goes to somebody else', async () => {
    const answer = await answerWith([
      to('10.244.1.11:80', { probability: 0.5 }),
      to('10.244.9.9:80', { probability: 0.5 }),
    ]);
    expect(differencesAt(answer, '10.244.9.9:80')).toEqual([
      'prerouting: nothing of the kind | 50 % forwarded to 10.244.9.9:80, not masqueraded',
    ]);
  });

  test('it is masqueraded', async () => {
    const even = { probability: 0.5 };
    const answer = await answerWith([
      to('10.244.1.11:80', { ...even, masquerade: true }),
      to('10.244.2.11:80', even),
    ]);
    // The first that is not as planned is shown first.
    expect(differencesAt(answer)).toEqual([
      'postrouting: client address kept: the source is in the pod network | masqueraded',
    ]);
    expect(differencesAt(answer, '10.244.2.11:80')).toEqual([]);
  });

  test("another program's rule drops it", async () => {
    const drop = step('filter forward', 'FORWARD', '-j DROP', { isForeign: true });
    const answer = await answerWith([{ verdict: 'dropped', probability: 1, steps: [DNAT, drop] }]);
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

  test('nothing takes it to a service', async () => {
    const answer = await answerWith([{ verdict: 'passed', probability: 1, steps: [] }]);
    expect(differencesAt(answer, 'passed')).toEqual([
      'prerouting: forwarded to 10.244.1.11:80, 10.244.2.11:80 | left alone: no rule takes it to a service',
    ]);
  });

  test('an affinity entry is no difference', async () => {
    const answer = await answerWith([to('10.244.2.11:80', { byAffinity: true })], {});
    expect(waysOf(answer).map(({ key, differences }) => [key, differences.length])).toEqual([
      ['10.244.2.11:80', 0],
    ]);
  });

  test('rules that could not be read are none either', async () => {
    const answer = await answerWith([]);
    if (!answer.kernel) throw new Error('no kernel');
    const { asPlanned: _, ...unread } = answer.kernel;
    expect(differencesAt({ ...answer, kernel: unread })).toEqual([]);
  });
});

/** Random clusters: explain = decide, or the documented deviation = the rules in the kernel, whatever is asked. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { mechanismOf } from '../../src/modes/deviations.ts';
import { explainPacket, explainPackets } from '../../src/explain/packet.ts';
import { printPacket } from '../../src/explain/print.ts';
import { printService } from '../../src/explain/printService.ts';
import { QuestionError } from '../../src/explain/question.ts';
import { endpointRows, serviceRows } from '../../src/explain/rows.ts';
import { explainService } from '../../src/explain/service.ts';
import type { Subject } from '../../src/explain/subject.ts';
import { decide } from '../../src/plan/decide.ts';
import { insteadIn } from '../scenarios/expectations.ts';
import { cluster, settings } from '../scenarios/randomCluster.ts';
import { subjectsOf } from '../scenarios/randomPackets.ts';
import { family as anyFamily, type RandomWorld, startProxy, TIMEOUT } from '../scenarios/randomRun.ts';
import { NODE1 } from '../scenarios/scenario.ts';
import { MECHANISMS } from '../contract/memory.ts';
import { fakeMode, writtenSubject } from './mechanisms.ts';
import type { Mechanism } from '../../src/modes/deviations.ts';
import { numRuns, seed } from '../support/randomCases.ts';

const mechanism = fc.constantFrom(...MECHANISMS);
const world = fc.record({ family: anyFamily, settings, cluster });

async function subjectIn(ofMechanism: Mechanism, random: RandomWorld): Promise<Subject> {
  const mode = await fakeMode(ofMechanism, random.family);
  return writtenSubject(mode, await startProxy(random, mode.writer));
}

describe(`seed ${seed}`, () => {
  test('explain = decide = the kernel', { timeout: TIMEOUT }, async () => {
    await fc.assert(
      fc.asyncProperty(mechanism, world, async (ofMechanism, random) => {
        const subject = await subjectIn(ofMechanism, random);
        const [family] = subject.families;
        if (!family) throw new Error('no family');
        for (const asked of subjectsOf(family.plan)) {
          const { packet } = asked;
          const answer = await explainPacket(subject, { family, packet });
          expect({ packet: asked.text, ...answer.kernel }).toMatchObject({
            packet: asked.text,
            asPlanned: true,
            differences: [],
          });
          const decision = decide(family.plan, packet, NODE1);
          const instead = insteadIn(mechanismOf(subject.mode, subject.layout), family.plan, asked);
          expect(answer.deviation !== undefined).toBe(instead !== undefined);
          if (instead) continue;
          expect(answer.verdict).toBe(VERDICTS[decision.verdict]);
          if (decision.verdict !== 'forward') continue;
          expect(answer.endpoints.map(({ address, masquerade }) => ({ address, masquerade }))).toEqual(
            decision.targets.map(({ endpoint, masquerade }) => ({ address: endpoint.key, masquerade })),
          );
        }
      }),
      { seed, numRuns: Math.ceil(numRuns / 4) },
    );
  });

  test('each endpoint is used or has a reason', { timeout: TIMEOUT }, async () => {
    await fc.assert(
      fc.asyncProperty(mechanism, world, async (ofMechanism, random) => {
        const subject = await subjectIn(ofMechanism, random);
        for (const { service } of serviceRows(subject)) {
          const answer = await explainService(subject, { service });
          for (const { packets } of answer.ports)
            for (const { verdict, endpoints, leftOut, kernel, frontend } of packets) {
              expect(kernel?.differences).toEqual([]);
              if (!frontend) continue;
              const used = new Set(endpoints.map(({ address }) => address));
              const all = answer.ports
                .filter(({ servicePort }) => servicePort === frontend.servicePort)
                .flatMap((port) => port.endpoints.map(({ address }) => address));
              const unused = verdict === 'forwarded' ? all.filter((address) => !used.has(address)) : all;
              const reasons = new Set(leftOut.map(({ address }) => address));
              // What is dropped or refused may have endpoints that other sources reach.
              if (verdict === 'forwarded') expect([...reasons].sort()).toEqual([...new Set(unused)].sort());
            }
        }
      }),
      { seed, numRuns: Math.ceil(numRuns / 4) },
    );
  });

  test('any question is answered, or refused in words', { timeout: TIMEOUT }, async () => {
    const [from, to] = [words(SOURCES), words(DESTINATIONS)];
    await fc.assert(
      fc.asyncProperty(
        mechanism,
        world,
        fc.array(fc.tuple(from, to), { maxLength: 10 }),
        fc.integer({ min: 1, max: 200 }),
        async (ofMechanism, random, questions, columns) => {
          const subject = await subjectIn(ofMechanism, random);
          const style = { paint: (_: string, text: string) => text, columns };
          for (const [source, destination] of questions) {
            const text = await answered(async () =>
              (await explainPackets(subject, { from: source, to: destination }))
                .map((each) => printPacket(each, style))
                .join(''),
            );
            expect(text).not.toMatch(/undefined|NaN|\[object/);
            const service = await answered(async () =>
              printService(await explainService(subject, { service: destination }), style),
            );
            expect(service).not.toMatch(/undefined|NaN|\[object/);
            await answered(async () => JSON.stringify(await endpointRows(subject, destination)));
          }
        },
      ),
      { seed, numRuns: Math.ceil(numRuns / 4) },
    );
  });
});

const VERDICTS = { forward: 'forwarded', reject: 'rejected', drop: 'dropped', pass: 'passed' } as const;

const SOURCES = [
  'node',
  'outside',
  'pod/default/pod-a',
  '10.244.1.11',
  '192.168.100.2',
  '127.0.0.1',
  'fd00:244:1::11',
  '10.244.1.11%cni0',
  '::1',
  '198.18.0.10',
];
const DESTINATIONS = [
  '10.96.0.1:80',
  'svc/default/svc1',
  'svc/default/svc2:80',
  'svc/default/svc3:dns/udp',
  '192.168.100.2:30001',
  '[fd00:96::1]:80',
  '203.0.113.1:80/sctp',
  '127.0.0.1:30002',
  '10.244.1.11:8080',
  'default/svc0',
  'default/svc1:80',
  '[fd00:100::2]:30003/udp',
];

/** Well-formed, or nearly, or anything. */
function words(known: readonly string[]): fc.Arbitrary<string> {
  const some = fc.constantFrom(...known);
  const broken = fc
    .tuple(some, fc.nat(30), fc.string({ unit: 'binary', maxLength: 3 }))
    .map(([text, at, more]) => text.slice(0, at) + more + text.slice(at));
  return fc.oneof(
    { weight: 4, arbitrary: some },
    { weight: 2, arbitrary: broken },
    { weight: 1, arbitrary: fc.string({ unit: 'binary' }) },
  );
}

async function answered(ask: () => Promise<string>): Promise<string> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof QuestionError)) throw error;
    expect(error.hint).not.toBe('');
    return `${error.message} ${error.hint}`;
  }
}

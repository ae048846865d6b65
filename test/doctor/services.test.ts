import { describe, expect, test } from 'vitest';
import { checkRules } from '../../src/doctor/rules.ts';
import { checkServices, walkServices } from '../../src/doctor/services.ts';
import type { Subject } from '../../src/explain/subject.ts';
import type { KernelReader } from '../../src/modes/kernelReader.ts';
import { fakeMode, writtenSubject } from '../explain/mechanisms.ts';
import { type KubernetesObject, service, slice } from '../scenarios/objects.ts';
import { proxyOf, scenario } from '../scenarios/scenario.ts';
import { codesOf, groupOf } from './fakeMachine.ts';

async function subjectOf(...objects: readonly KubernetesObject[]): Promise<Subject> {
  const mode = await fakeMode('nftables', 'IPv4');
  const proxy = proxyOf('IPv4', scenario('looked at', objects, ''), mode.writer);
  await proxy.sync();
  return writtenSubject(mode, proxy);
}

const WEB = [
  service('web', { clusterIP: '10.96.1.1', ports: 'http=80' }),
  slice('web', 'http=8080', 'pod-a'),
];
const idle = (index: number): KubernetesObject =>
  service(`idle-${index}`, { clusterIP: `10.96.2.${index}`, ports: 'http=80' });

/** The subject with another reader. */
function read(subject: Subject, change: Partial<KernelReader>): Subject {
  const families = subject.families.map((family) => {
    const { kernel } = family;
    if (!kernel) throw new Error('no reader');
    const reader: KernelReader = {
      walk: (...asked) => kernel.walk(...asked),
      compare: (plan) => kernel.compare(plan),
      dump: () => kernel.dump(),
      ...change,
    };
    return { ...family, kernel: reader };
  });
  return { ...subject, families };
}

describe('services', () => {
  test('one that is well', async () => {
    const group = await groupOf(async (each) => checkServices(each, await subjectOf(...WEB)));
    expect(codesOf(group)).toEqual([]);
    expect(group.fine).toEqual(['1 of 1 services have no problem in the plan']);
  });

  test('errors come before warnings, and each names its service', async () => {
    const subject = await subjectOf(
      service('far', {
        clusterIP: '10.96.1.2',
        ports: 'http=80:30080',
        type: 'NodePort',
        externalTrafficPolicy: 'Local',
      }),
      slice('far', 'http=8080', 'pod-c'),
      idle(1),
    );
    const group = await groupOf((each) => checkServices(each, subject));
    expect(codesOf(group)).toEqual(['error no-endpoints', 'warning no-local-endpoints']);
    for (const { text, evidence, consequence, cure } of group.findings) {
      expect(text).toMatch(/default\/(?:far|idle-1)/);
      for (const part of [evidence, consequence, cure]) expect(part).not.toBe('');
    }
  });

  test('one that is named, alone', async () => {
    const subject = await subjectOf(...WEB, idle(1), idle(2));
    const group = await groupOf((each) => checkServices(each, subject, 'default/idle-2'));
    expect(group.findings.map(({ text }) => text)).toEqual([expect.stringContaining('default/idle-2')]);
    const walked = await groupOf((each) => walkServices(each, subject, 'default/web'));
    expect(walked.fine).toEqual(['the kernel does what is planned with 3 packets to 1 service']);
  });

  test('walking stops when it takes too long, and says so', async () => {
    const subject = await subjectOf(...WEB, idle(1));
    let now = 0;
    const slow = { ...subject, now: () => (now += 6000) };
    const group = await groupOf((each) => walkServices(each, slow));
    expect(group.notEvaluated).toEqual(['packets in the kernel: 1 of 2 services are left out after 10 s']);
  });

  test('a cluster full of problems is summed up', async () => {
    const subject = await subjectOf(...Array.from({ length: 60 }, (_, index) => idle(index + 1)));
    const group = await groupOf((each) => checkServices(each, subject));
    expect(group.findings).toHaveLength(41);
    expect(group.findings.at(-1)).toMatchObject({
      code: 'more-services',
      text: '20 more findings of services are not shown',
      evidence: '60 of 60 services have a problem',
    });
  });
});

describe('packets', () => {
  test('as planned', async () => {
    const subject = await subjectOf(...WEB);
    const group = await groupOf((each) => walkServices(each, subject));
    expect(codesOf(group)).toEqual([]);
    expect(group.fine).toEqual(['the kernel does what is planned with 3 packets to 1 service']);
  });

  test('one rule of another program is one finding, whatever it stops', async () => {
    const path = [
      {
        hook: 'filter forward',
        table: 'inet theirs',
        chain: 'forward',
        ruleIndex: 0,
        text: 'drop',
        found: [],
        isForeign: true,
      },
    ];
    const subject = read(await subjectOf(...WEB), {
      walk: () =>
        Promise.resolve({
          outcomes: [{ kind: 'drop', probability: 1, path, lookups: 0, learned: [], byAffinity: false }],
          notes: ['a match that is not known'],
        }),
    });
    const group = await groupOf((each) => walkServices(each, subject));
    expect(codesOf(group)).toEqual(['error foreign-rule']);
    expect(group.findings[0]?.evidence).toMatch(/3 of 3 packets, such as \S+ → 10\.96\.1\.1 port 80\/TCP/);
    expect(group.notEvaluated).toEqual(['packets in the kernel: a match that is not known']);
  });
});

describe('rules', () => {
  const look = (subject: Subject, isAnswering = true) =>
    groupOf((each) => checkRules(each, subject.families, isAnswering));

  test('as planned', async () => {
    expect((await look(await subjectOf(...WEB))).fine).toEqual([
      'the IPv4 rules in the kernel are those that are planned',
    ]);
  });

  test('what is missing is named, and the cure depends on whether a proxy runs', async () => {
    const missing = {
      kind: 'missing',
      object: 'element any-1',
      text: '{ x }',
      servicePort: 'default/web:http/TCP',
    } as const;
    const subject = read(await subjectOf(...WEB), { compare: () => Promise.resolve([missing]) });
    const group = await look(subject);
    expect(codesOf(group)).toEqual(['error kernel-differs']);
    expect(group.findings[0]).toMatchObject({
      evidence: 'missing: element any-1: { x }',
      consequence: 'packets to default/web:http/TCP go astray',
    });
    expect(group.findings[0]?.cure).toContain('Junction repairs');
    expect((await look(subject, false)).findings[0]?.cure).toContain('systemctl restart junction');
  });
});

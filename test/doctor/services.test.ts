import { describe, expect, test } from 'vitest';
import { checkRules } from '../../src/doctor/rules.ts';
import { checkServices, walkServices } from '../../src/doctor/services.ts';
import type { Subject } from '../../src/explain/subject.ts';
import { clusterOf, readBy } from '../explain/given.ts';
import { fakeMode, writtenSubject } from '../explain/mechanisms.ts';
import { type KubernetesObject, service, slice } from '../scenarios/objects.ts';
import { proxyOf, scenario } from '../scenarios/scenario.ts';
import { codesOf, groupOf } from './fakeMachine.ts';

const WEB = [
  service('web', { clusterIP: '10.96.1.1', ports: 'http=80' }),
  slice('web', 'http=8080', 'pod-a'),
];
const FAR = [
  service('far', {
    clusterIP: '10.96.1.2',
    ports: 'http=80:30080',
    type: 'NodePort',
    externalTrafficPolicy: 'Local',
  }),
  slice('far', 'http=8080', 'pod-c'),
];
const idle = (index: number): KubernetesObject =>
  service(`idle-${index}`, { clusterIP: `10.96.2.${index}`, ports: 'http=80' });

/** What nftables mode has written into the kernel. */
async function written(): Promise<Subject> {
  const mode = await fakeMode('nftables', 'IPv4');
  const proxy = proxyOf('IPv4', scenario('looked at', WEB, ''), mode.writer);
  await proxy.sync();
  return writtenSubject(mode, proxy);
}

describe('services', () => {
  const look = (objects: readonly KubernetesObject[], only?: string) =>
    groupOf((each) => checkServices(each, clusterOf(objects), only));

  test('one that is well', async () => {
    const group = await look(WEB);
    expect(codesOf(group)).toEqual([]);
    expect(group.fine).toEqual(['1 of 1 services have no problem in the plan']);
  });

  test('errors come before warnings, and each names its service', async () => {
    const group = await look([...FAR, idle(1)]);
    expect(codesOf(group)).toEqual(['error no-endpoints', 'warning no-local-endpoints']);
    for (const { text, evidence, consequence, cure } of group.findings) {
      expect(text).toMatch(/default\/(?:far|idle-1)/);
      for (const part of [evidence, consequence, cure]) expect(part).not.toBe('');
    }
  });

  test('one that is named, alone; a cluster full of problems is summed up', async () => {
    const objects = Array.from({ length: 60 }, (_, index) => idle(index + 1));
    const named = await look(objects, 'default/idle-2');
    expect(named.findings.map(({ text }) => text)).toEqual([expect.stringContaining('default/idle-2')]);
    const { findings } = await look(objects);
    expect(findings).toHaveLength(41);
    expect(findings.at(-1)).toMatchObject({
      code: 'more-services',
      text: '20 more findings of services are not shown',
      evidence: '60 of 60 services have a problem',
    });
  });
});

describe('packets', () => {
  test('as planned', async () => {
    const subject = await written();
    for (const only of [undefined, 'default/web']) {
      const group = await groupOf((each) => walkServices(each, subject, only));
      expect(codesOf(group)).toEqual([]);
      expect(group.fine).toEqual(['the kernel does what is planned with 3 packets to 1 service']);
    }
  });

  test('one rule of another program is one finding, whatever it stops', async () => {
    const rule = { hook: 'filter forward', table: 'inet theirs', chain: 'forward', ruleIndex: 0 };
    const path = [{ ...rule, text: 'drop', found: [], isForeign: true }];
    const drop = { kind: 'drop', probability: 1, path, lookups: 0, learned: [], byAffinity: false } as const;
    const walk = () => Promise.resolve({ outcomes: [drop], notes: ['a match that is not known'] });
    const group = await groupOf((each) => walkServices(each, readBy(clusterOf(WEB), { walk })));
    expect(codesOf(group)).toEqual(['error foreign-rule']);
    expect(group.findings[0]?.evidence).toMatch(/3 of 3 packets, such as \S+ → 10\.96\.1\.1 port 80\/TCP/);
    expect(group.notEvaluated).toEqual(['packets in the kernel: a match that is not known']);
  });

  test('walking stops when it takes too long, and says so', async () => {
    let now = 0;
    const slow = { ...clusterOf([...WEB, idle(1)]), now: () => (now += 6000) };
    const walk = () => Promise.resolve({ outcomes: [], notes: [] });
    const group = await groupOf((each) => walkServices(each, readBy(slow, { walk })));
    expect(group.notEvaluated).toContain('packets in the kernel: 1 of 2 services are left out after 10 s');
  });
});

test('rules: what is missing is named, and the cure depends on whether a proxy runs', async () => {
  const subject = await written();
  const fine = await groupOf((each) => checkRules(each, subject.families, true));
  expect(fine.fine).toEqual(['the IPv4 rules in the kernel are those that are planned']);
  const servicePort = 'default/web:http/TCP';
  const missing = { kind: 'missing', object: 'element any-1', text: '{ x }', servicePort } as const;
  const families = subject.families.flatMap(({ kernel, ...family }) =>
    kernel ? [{ ...family, kernel: { ...kernel, compare: () => Promise.resolve([missing]) } }] : [],
  );
  for (const [isAnswering, cure] of [
    [true, 'Junction repairs'],
    [false, 'systemctl restart junction'],
  ] as const) {
    const group = await groupOf((each) => checkRules(each, families, isAnswering));
    expect(codesOf(group)).toEqual(['error kernel-differs']);
    expect(group.findings[0]).toMatchObject({
      evidence: 'missing: element any-1: { x }',
      consequence: 'packets to default/web:http/TCP go astray',
      cure: expect.stringContaining(cure),
    });
  }
});

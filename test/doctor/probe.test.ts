import { createServer, type Server } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Dial, probe } from '../../src/doctor/probe.ts';
import type { FamilySubject } from '../../src/explain/subject.ts';
import type { Ip } from '../../src/model/ip.ts';
import { service, slice } from '../scenarios/objects.ts';
import { NODE1, proxyOf, scenario } from '../scenarios/scenario.ts';
import { codesOf, groupOf } from './fakeMachine.ts';

const NO_WRITER = {
  sync: () => Promise.reject(new Error('nothing is written')),
  requestFull: () => undefined,
};

function subjectOf(objects: Parameters<typeof scenario>[1]): FamilySubject {
  const proxy = proxyOf('IPv4', scenario('probed', objects, ''), NO_WRITER);
  proxy.replan();
  return { family: 'IPv4', plan: proxy.plan, host: NODE1, refused: new Map(), ...proxy.inputs };
}

const WEB = subjectOf([
  service('web', { clusterIP: '10.96.1.1', ports: 'http=80:30080', type: 'NodePort' }),
  slice('web', 'http=8080', 'pod-a', 'pod-c'),
]);
type Result = Awaited<ReturnType<Dial>>;

async function probed(subject: FamilySubject, answers: Readonly<Record<string, Result>>) {
  const asked: string[] = [];
  const dial: Dial = (ip, port) => {
    asked.push(`${ip}:${port}`);
    return Promise.resolve(answers[`${ip}:${port}`] ?? 'answered');
  };
  const group = await groupOf((each) => probe(each, [subject], { limitMs: 1000, dial }));
  return { group, asked };
}

describe('probe', () => {
  test('endpoints, then the frontends that the plan forwards', async () => {
    const { group, asked } = await probed(WEB, {});
    expect(asked).toEqual(['10.244.1.11:8080', '10.244.2.11:8080', '10.96.1.1:80', '192.168.100.2:30080']);
    expect(codesOf(group)).toEqual([]);
    expect(group.fine).toEqual(['default/web:http/TCP (IPv4): 2 endpoints and 2 frontends answer']);
  });

  test('endpoints answer directly, a frontend does not: the rules', async () => {
    const { group } = await probed(WEB, { '10.96.1.1:80': 'silent' });
    expect(codesOf(group)).toEqual(['error probe-frontend-fails']);
    expect(group.findings[0]?.text).toContain('its endpoints answer directly, 10.96.1.1:80 not: the rules');
    expect(group.findings[0]?.cure).toContain('junction explain --from node --to 10.96.1.1:80');
  });

  test('neither answers: the network or the pods', async () => {
    const all = ['10.244.1.11:8080', '10.244.2.11:8080', '10.96.1.1:80', '192.168.100.2:30080'];
    const { group } = await probed(WEB, Object.fromEntries(all.map((each) => [each, 'silent'])));
    expect(codesOf(group)).toEqual(['error probe-endpoint-fails']);
    expect(group.findings[0]?.text).toContain('do not answer directly: the network or the pod');
    expect(group.findings[0]?.cure).toContain('ip route get 10.244.1.11');
  });

  test('refused by the endpoints: nothing listens at the target port', async () => {
    const { group } = await probed(WEB, {
      '10.244.1.11:8080': 'refused',
      '10.244.2.11:8080': 'refused',
      '10.96.1.1:80': 'refused',
    });
    expect(codesOf(group)).toEqual(['error probe-endpoint-fails']);
    expect(group.findings[0]?.text).toContain('nothing listens at the target port');
    expect(group.findings[0]?.cure).toContain('targetPort');
  });

  test('one endpoint of two', async () => {
    const { group } = await probed(WEB, { '10.244.2.11:8080': 'unreachable' });
    expect(codesOf(group)).toEqual(['warning probe-endpoint-fails']);
    expect(group.findings[0]?.consequence).toBe('a part of the connections to the service fails');
  });

  test('a service without endpoints is not dialled', async () => {
    const idle = subjectOf([service('idle', { clusterIP: '10.96.1.2', ports: 'http=80' })]);
    const { group, asked } = await probed(idle, {});
    expect(asked).toEqual([]);
    expect(group.notEvaluated[0]).toContain('the plan forwards nothing that this node sends to it');
  });

  test('silence of UDP says nothing', async () => {
    const dns = subjectOf([
      service('dns', { clusterIP: '10.96.0.10', ports: 'dns=53/UDP' }),
      slice('dns', 'dns=53/UDP', 'pod-a'),
    ]);
    const { group } = await probed(dns, { '10.244.1.11:53': 'silent', '10.96.0.10:53': 'silent' });
    expect(codesOf(group)).toEqual([]);
    expect(group.notEvaluated[0]).toContain('says nothing of UDP');
  });
});

describe('real sockets', () => {
  let server: Server;
  let port = 0;
  beforeAll(async () => {
    server = createServer((socket) => socket.end());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    port = typeof address === 'object' ? (address?.port ?? 0) : 0;
  });
  afterAll(() => new Promise<void>((resolve) => server.close(() => resolve())));

  const LOCAL = '127.0.0.1' as Ip;
  const at = (number: number, protocol = ''): FamilySubject => {
    const subject = subjectOf([
      service('web', { clusterIP: '10.96.1.1', ports: `http=80${protocol}` }),
      slice('web', `http=${number}${protocol}`, 'pod-a'),
    ]);
    const plan = subject.plan;
    const [id, planned] = [...plan.servicePorts][0] ?? [];
    if (id === undefined || planned === undefined) throw new Error('nothing is planned');
    const endpoint = planned.pools.cluster?.[0];
    if (!endpoint) throw new Error('no endpoint');
    const here = { ...planned, frontends: [], pools: { cluster: [{ ...endpoint, ip: LOCAL }] } };
    return {
      ...subject,
      plan: Object.create(plan, { servicePorts: { value: new Map([[id, here]]) } }) as typeof plan,
    };
  };
  const evidenceOf = async (subject: FamilySubject): Promise<string> => {
    const group = await groupOf((each) => probe(each, [subject], { limitMs: 20_000 }));
    return group.findings[0]?.evidence ?? group.fine.join();
  };

  test('a listener answers', async () => {
    expect(await evidenceOf(at(port))).toBe('default/web:http/TCP (IPv4): 1 endpoint and 0 frontends answer');
  });

  test('a free port refuses, over TCP and over UDP', async () => {
    expect(await evidenceOf(at(1))).toBe('endpoints: 127.0.0.1:1 refused; frontends: none');
    expect(await evidenceOf(at(1, '/UDP'))).toBe('endpoints: 127.0.0.1:1 refused; frontends: none');
  });
});

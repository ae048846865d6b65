/** What `--probe` says of sockets of this machine; test/e2e/brokenProbe.test.ts has frontends, and pods that are gone. */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { probe } from '../../src/doctor/probe.ts';
import type { FamilySubject } from '../../src/explain/subject.ts';
import type { DoctorGroup } from '../../src/explain/doctorReport.ts';
import { LOOPBACK } from '../../src/model/ip.ts';
import { clusterOf } from '../explain/given.ts';
import { service, slice } from '../scenarios/objects.ts';
import { codesOf, groupOf } from './fakeMachine.ts';

describe('probe', () => {
  let tcp: Server;
  let udp: Socket;
  beforeAll(async () => {
    tcp = createServer((socket) => socket.end()).listen(0, '127.0.0.1');
    udp = createSocket('udp4').bind(0, '127.0.0.1');
    await Promise.all([once(tcp, 'listening'), once(udp, 'listening')]);
  });
  afterAll(() => {
    tcp.close();
    udp.close();
  });

  /** Of a service with these endpoints, of which each is at another port of this machine. */
  async function probed(protocol: string, ...ports: readonly number[]): Promise<DoctorGroup> {
    const objects = [
      service('web', { clusterIP: '10.96.1.1', ports: `http=80${protocol}` }),
      slice('web', `http=8080${protocol}`, 'pod-a', 'pod-c'),
    ];
    const [family] = clusterOf(objects).families;
    const [planned] = family?.plan.servicePorts.values() ?? [];
    if (!family || !planned) throw new Error('nothing is planned');
    const pool = ports.flatMap((port, index) => {
      const endpoint = planned.pools.cluster?.[index];
      return endpoint ? [{ ...endpoint, ip: LOOPBACK.IPv4, port }] : [];
    });
    const servicePorts = new Map([[planned.id, { ...planned, frontends: [], pools: { cluster: pool } }]]);
    const plan: FamilySubject['plan'] = Object.create(family.plan, { servicePorts: { value: servicePorts } });
    return groupOf((each) => probe(each, [{ ...family, plan }], { limitMs: 300 }));
  }

  const port = (socket: Server | Socket): number => {
    const address = socket.address();
    return typeof address === 'object' ? (address?.port ?? 0) : 0;
  };

  test('what answers, over TCP, is fine; what only the plan forwards is dialled', async () => {
    const group = await probed('', port(tcp));
    expect(codesOf(group)).toEqual([]);
    expect(group.fine).toEqual(['default/web:http/TCP (IPv4): 1 endpoint and 0 frontends answer']);
    expect(group.notEvaluated[0]).toContain('the plan forwards nothing that this node sends to it');
  });

  test.each([
    ['', 'error', [1]],
    ['', 'warning', [1, 0]],
    ['/UDP', 'error', [1]],
  ])('port 1 refuses: http=80%s is an %s', async (protocol, severity, ports) => {
    const group = await probed(protocol, ...ports.map((each) => each || port(tcp)));
    expect(codesOf(group)).toEqual([`${severity} probe-endpoint-fails`]);
    expect(group.findings[0]?.evidence).toContain('127.0.0.1:1 refused');
  });

  test('silence of UDP says nothing', async () => {
    const group = await probed('/UDP', port(udp));
    expect(codesOf(group)).toEqual([]);
    expect(group.notEvaluated.join()).toContain('says nothing of UDP');
  });
});

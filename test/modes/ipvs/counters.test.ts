import { expect, test } from 'vitest';
import { readServerConnections } from '../../../src/modes/ipvs/counters.ts';
import { desiredStateOf } from '../../../src/modes/ipvs/print.ts';
import type { Message } from '../../../src/netlink/codec.ts';
import { Cluster } from '../../plan/cluster.ts';
import { unhex } from '../../system/support/bytes.ts';
import { ip } from '../../plan/given.ts';

const IPVS = 30;
const NODE_IPS = [ip('192.0.2.10')];
const SETTINGS = { scheduler: 'rr', nodeIps: NODE_IPS, nodePortIps: NODE_IPS };

/** A real server at 10.1.0.1:8080 to which so many connections went. */
function realServer(connections: number): Message {
  const counted = `1c000c80 0c000100 0${connections}000000 00000000 0c000200 09000000 00000000`;
  const key = '14000100 0a010001 00000000 00000000 00000000 06000200 1f900000 06000b00 02000000';
  const state = '08000300 00000000 08000400 01000000 08000700 02000000 08000800 05000000';
  const payload = unhex(`05010000 64000280 ${key} ${state} ${counted}`);
  return { type: IPVS, flags: 0, sequence: 1, payload };
}

test('each real server, by the service port of its virtual server', async () => {
  const cluster = new Cluster();
  const lines = Array.from({ length: 20 }, (_, number) => `a/s${number} 10.96.0.${number + 1} 80`);
  cluster.tell(...lines, 'a/s3-1 of s3 80 | 10.1.0.1');
  cluster.takeDirty();
  const desired = desiredStateOf(cluster.planner, { family: 'IPv4', ...SETTINGS });
  let asked = 0;
  const generic = {
    list: async <T>(_: unknown, __: string, decode: (payload: Uint8Array) => T | undefined) => {
      const place = asked++;
      const found = place === 3 ? [realServer(1)] : place === 19 ? [realServer(2)] : [];
      return found.flatMap(({ payload }) => decode(payload) ?? []);
    },
  };
  const readings = await readServerConnections(generic, IPVS, desired.servers(), 'IPv4');
  expect(asked).toBe(20);
  const servers = [...desired.servers()];
  expect(readings).toEqual(
    [servers[3], servers[19]].map((server, index) => ({
      family: 'IPv4',
      servicePort: server?.[1].servicePort,
      protocol: 'TCP',
      endpoint: '10.1.0.1:8080',
      element: `${server?.[0]} -> 10.1.0.1:8080`,
      connections: index + 1,
      isCountedElsewhere: false,
    })),
  );
  expect(new Set(servers.map(([, { servicePort }]) => servicePort)).size).toBe(20);
});

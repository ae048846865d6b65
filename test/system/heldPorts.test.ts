import { spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { bindPort, type HeldPort, HeldPorts, heldPortsOf } from '../../src/system/heldPorts.ts';
import { FAMILIES, type Family, type Ip } from '../../src/model/ip.ts';
import { Cluster, cluster } from '../plan/cluster.ts';
import { cidr, ip, VIEW, VIEW_6 } from '../plan/given.ts';
import { freePort, holdPort, requireIpv6 } from '../telemetry/http/support.ts';

const LOCAL = ['127.0.0.1', '192.0.2.10', '198.51.100.7'].map(ip);

function print(ports: readonly HeldPort[]): readonly string[] {
  return ports.map((held) => `${held.ip}:${held.port}/${held.protocol} ${held.description}`).sort();
}

describe('what is held', () => {
  it.each<[what: string, services: readonly string[], expected: readonly string[]]>([
    [
      'node ports on every address, and external IPs that are ours',
      [
        'shop/web 10.96.0.1 http:80@30080 https:443 ext=198.51.100.7,203.0.113.9 lb=192.0.2.10',
        'shop/dns 10.96.0.2 dns:53/udp@30053',
        'shop/db 10.96.0.3 5432',
      ],
      [
        '198.51.100.7:443/TCP external IP of shop/web:https',
        '198.51.100.7:80/TCP external IP of shop/web:http',
        ':30053/UDP node port of shop/dns:dns',
        ':30080/TCP node port of shop/web:http',
      ],
    ],
    ['not SCTP', ['shop/sig 10.96.0.1 9/sctp@30009'], []],
    [
      'one socket where an external IP has the number of a node port',
      [
        'shop/a 10.96.0.1 80@30080',
        'shop/b 10.96.0.2 30080 ext=198.51.100.7',
        'shop/c 10.96.0.3 30080/udp ext=198.51.100.7',
      ],
      ['198.51.100.7:30080/UDP external IP of shop/c', ':30080/TCP node port of shop/a'],
    ],
  ])('%s', (_, services, expected) => {
    expect(print(heldPortsOf(cluster(...services).planner, LOCAL))).toEqual(expected);
  });

  it.each([
    { ranges: ['192.0.2.0/24'], loopback: false, expected: ['192.0.2.10'] },
    { ranges: ['192.0.2.0/24', '127.0.0.0/8'], loopback: true, expected: ['127.0.0.1', '192.0.2.10'] },
    { ranges: ['192.0.2.0/24', '127.0.0.0/8'], loopback: false, expected: ['192.0.2.10'] },
    { ranges: ['203.0.113.0/24'], loopback: false, expected: [] },
  ])('on node-port addresses $ranges', ({ ranges, loopback, expected }) => {
    const made = new Cluster({ ...VIEW, nodePorts: { ranges: ranges.map(cidr), loopback } });
    made.tell('shop/web 10.96.0.1 80@30080').replan();
    expect(heldPortsOf(made.planner, LOCAL).map((held) => held.ip)).toEqual(expected);
  });

  it('not on link-local addresses, which mean nothing without an interface', () => {
    const ranges = [cidr('fe80::/10'), cidr('2001:db8::/64')];
    const made = new Cluster({ ...VIEW_6, nodePorts: { ranges, loopback: false } }, 'IPv6');
    made.tell('shop/web fd00:96::1 80@30080').replan();
    const held = heldPortsOf(made.planner, [ip('fe80::1'), ip('2001:db8::10')]);
    expect(print(held)).toEqual(['2001:db8::10:30080/TCP node port of shop/web']);
  });
});

it('a port that is taken is logged once, until it is held or not wanted', async () => {
  const messages: string[] = [];
  const ports = new HeldPorts({ onEvent: (kind, message) => messages.push(`${kind}: ${message}`) });
  onTestFinished(() => ports.close());
  const squatter = await holdPort(0, '0.0.0.0');
  const { port } = squatter;
  const reconcile = (address?: Ip | ''): readonly string[] => {
    const description = 'node port of shop/web';
    const wanted = { family: 'IPv4', port, protocol: 'TCP', description } as const;
    ports.reconcile(address === undefined ? [] : [{ ...wanted, ip: address }]);
    return messages.splice(0);
  };
  const what = `${port}/TCP (IPv4), the node port of shop/web,`;
  const taken = `refused: ${what} is taken by another program, whose clients reach the service instead; find it with "ss -anp sport = :${port}", and move it to another port`;
  expect([reconcile(''), reconcile(''), reconcile(), reconcile('')]).toEqual([[taken], [], [], [taken]]);
  expect(ports.refused).toBe(1);
  await squatter.free();
  expect([reconcile(''), ports.refused]).toEqual([[`recovered: ${what} is held now`], 0]);
  expect(reconcile(ip('203.0.113.99'))).toEqual([
    expect.stringMatching(/^refused: .*203\.0\.113\.99.* cannot be held: EADDRNOTAVAIL$/),
  ]);
});

it.for(FAMILIES)(
  'a port held in %s answers nobody, keeps next to nothing, and goes to no program of ours',
  async (family, context) => {
    if (family === 'IPv6') requireIpv6(context);
    const host = family === 'IPv4' ? '127.0.0.1' : '::1';
    const port = await freePort();
    const bind = (protocol: 'TCP' | 'UDP') => bindPort({ family, ip: '', port, protocol });
    const held = [bind('TCP'), bind('UDP')];
    expect(bind('TCP')).toEqual({ kind: 'refused', errno: 'EADDRINUSE' });
    const child = spawn('sleep', ['60']);
    onTestFinished(() => void child.kill());
    await once(child, 'spawn');
    const [error] = (await once(connect({ host, port }), 'error')) as [NodeJS.ErrnoException];
    expect(error.code).toBe('ECONNREFUSED');
    const client = createSocket(family === 'IPv4' ? 'udp4' : 'udp6');
    for (let count = 0; count < 100; count++)
      await new Promise((resolve) => {
        client.send('x'.repeat(1000), port, host, resolve);
      });
    client.close();
    expect(queuedBytes(family, port)).toBeGreaterThan(0);
    expect(queuedBytes(family, port)).toBeLessThan(10_000);
    for (const each of held) if (each.kind === 'bound') each.close();
    const again = [bind('TCP'), bind('UDP')];
    expect(again.map(({ kind }) => kind)).toEqual(['bound', 'bound']);
    for (const each of again) if (each.kind === 'bound') each.close();
  },
);

/** What waits in the buffer of a UDP socket, with what the kernel needs around it. */
function queuedBytes(family: Family, port: number): number {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  const line = readFileSync(family === 'IPv4' ? '/proc/net/udp' : '/proc/net/udp6', 'utf8')
    .split('\n')
    .find((text) => text.trim().split(/\s+/)[1]?.endsWith(`:${hex}`));
  return Number.parseInt(line?.trim().split(/\s+/)[4]?.split(':')[1] ?? '', 16);
}

/** Real sockets on this machine's loopback. */
import { spawn } from 'node:child_process';
import { createSocket, type SocketType } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { networkInterfaces } from 'node:os';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { bindPort, socketAddress, type HeldPort, HeldPorts } from '../../src/system/heldPorts.ts';
import type { Family, Ip } from '../../src/model/ip.ts';
import { ip } from '../plan/given.ts';
import { bundle } from './support/bundle.ts';
import { openNamespace, requireNamespaces } from './support/namespace.ts';

const hasIpv6 = Object.values(networkInterfaces()).some((list) =>
  list?.some(({ address }) => address === '::1'),
);
const LOOPBACK = { IPv4: ip('127.0.0.1'), IPv6: ip('::1') };
const WILDCARD = { IPv4: '0.0.0.0', IPv6: '::' };
const CASES = (['IPv4', 'IPv6'] as const).flatMap((family) =>
  ([LOOPBACK[family], ''] as const).map((address) => ({ family, address })),
);

describe('addresses as the kernel takes them', () => {
  it.each([
    ['IPv4', ip('192.0.2.1'), '02001f90c00002010000000000000000'],
    ['IPv4', '', '02001f90000000000000000000000000'],
    ['IPv6', ip('2001:db8::1'), '0a001f900000000020010db800000000000000000000000100000000'],
  ] as const)('%s %j', (family, address, hex) => {
    expect(Buffer.from(socketAddress({ family, ip: address, port: 8080 })).toString('hex')).toBe(hex);
  });
});

describe.each(CASES)('a port held on "$address" ($family)', ({ family, address }) => {
  let port: number;
  let events: string[];
  let ports: HeldPorts;
  beforeEach(async (context) => {
    if (family === 'IPv6' && !hasIpv6) context.skip('this machine has no IPv6');
    port = await freePort(family);
    events = [];
    ports = new HeldPorts({ onEvent: (_, message) => events.push(message) });
  });
  afterEach(() => ports?.close());

  const held = (protocol: 'TCP' | 'UDP'): HeldPort => ({
    family,
    ip: address,
    port,
    protocol,
    description: 'node port of shop/web',
  });

  it('is refused to programs, until it is let go', async () => {
    ports.reconcile([held('TCP'), held('UDP')]);
    expect(ports.size).toBe(2);
    expect(await tryToListen(family, port)).toBe('EADDRINUSE');
    expect(await tryToBindUdp(family, port)).toBe('EADDRINUSE');
    ports.reconcile([held('UDP')]);
    expect(await tryToListen(family, port)).toBe('done');
    expect(await tryToBindUdp(family, port)).toBe('EADDRINUSE');
    ports.close();
    expect(await tryToBindUdp(family, port)).toBe('done');
  });

  it('never answers: a client is refused as if nobody were there', async () => {
    ports.reconcile([held('TCP')]);
    const client = connect({ host: LOOPBACK[family], port });
    const [error] = (await once(client, 'error')) as [NodeJS.ErrnoException];
    expect(error.code).toBe('ECONNREFUSED');
  });

  it('keeps next to nothing of what is sent to it', async () => {
    ports.reconcile([held('UDP')]);
    const client = createSocket(udpType(family));
    for (let count = 0; count < 100; count++) {
      await new Promise((resolve) => {
        client.send('x'.repeat(1000), port, LOOPBACK[family], resolve);
      });
    }
    client.close();
    const bytes = queuedBytes(family, port);
    expect(bytes).toBeGreaterThan(0);
    expect(bytes).toBeLessThan(10_000);
  });

  it('that a program has is told with its process, and held once it is free', async () => {
    const server = await listen(family, port, WILDCARD[family]);
    ports.reconcile([held('TCP')]);
    expect(events).toEqual([
      expect.stringMatching(
        new RegExp(
          `${port}/TCP \\(${family}\\), the node port of shop/web, is taken by pid ${process.pid} \\(.+\\)`,
        ),
      ),
    ]);
    await closed(server);
    ports.reconcile([held('TCP')]);
    expect(events.slice(1)).toEqual([expect.stringContaining('is held now')]);
  });

  it('is another than the same of the other family', async (context) => {
    if (!hasIpv6) context.skip('this machine has no IPv6');
    ports.reconcile([held('TCP')]);
    expect(await tryToListen(family === 'IPv4' ? 'IPv6' : 'IPv4', port)).toBe('done');
  });
});

describe('rules', () => {
  it('take packets before they come to the socket that holds the port', async (context) => {
    requireNamespaces(context);
    const namespace = await openNamespace();
    onTestFinished(() => namespace.close());
    const script = await bundle(
      'held',
      `import { connect, createServer } from 'node:net';
       import { HeldPorts } from './src/system/heldPorts.ts';
       const events = [];
       const ports = new HeldPorts({ onEvent: (_, message) => events.push(message) });
       ports.reconcile([{ family: 'IPv4', ip: '', port: 30080, protocol: 'TCP', description: 'node port of a/b' }]);
       const server = createServer((socket) => socket.end('from the endpoint'));
       server.listen(8080, '127.0.0.1', () => {
         const client = connect({ host: '127.0.0.1', port: 30080 });
         client.on('data', (data) => console.log(String(data)));
         client.on('error', (error) => console.log(error.message));
         client.on('close', () => server.close());
       });
       if (ports.size !== 1) console.log(events);`,
    );
    await namespace.runner(['ip', 'link', 'set', 'lo', 'up']);
    const rule = '-t nat -A OUTPUT -p tcp --dport 30080 -j DNAT --to-destination 127.0.0.1:8080';
    const run = async (): Promise<string> =>
      (await namespace.runner([process.execPath, script])).stdout.trim();
    expect(await run()).toBe('connect ECONNREFUSED 127.0.0.1:30080');
    expect(await namespace.runner(['iptables', ...rule.split(' ')])).toMatchObject({ code: 0 });
    expect(await run()).toBe('from the endpoint');
  });
});

describe('the owner of a port', () => {
  it('is found in another process, and for UDP', async () => {
    const script = `const s = require('node:dgram').createSocket('udp4');
      s.bind(0, '127.0.0.1', () => console.log(s.address().port));`;
    const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
    onTestFinished(() => void child.kill());
    const [line] = (await once(child.stdout, 'data')) as [Buffer];
    const messages: string[] = [];
    const ports = new HeldPorts({ onEvent: (_, message) => messages.push(message) });
    ports.reconcile([
      {
        family: 'IPv4',
        ip: ip('127.0.0.1'),
        port: Number(line),
        protocol: 'UDP',
        description: 'external IP of a/b',
      },
    ]);
    expect(messages).toEqual([expect.stringContaining(`is taken by pid ${child.pid} (node`)]);
  });

  it('is found behind a socket for both families', async (context) => {
    if (!hasIpv6) context.skip('this machine has no IPv6');
    const port = await freePort('IPv6');
    const server = createServer().listen({ host: '::', port });
    await once(server, 'listening');
    onTestFinished(() => closed(server));
    const messages: string[] = [];
    new HeldPorts({ onEvent: (_, message) => messages.push(message) }).reconcile([
      { family: 'IPv4', ip: '', port, protocol: 'TCP', description: 'node port of a/b' },
    ]);
    expect(messages).toEqual([expect.stringContaining(`is taken by pid ${process.pid}`)]);
  });
});

describe('binding', () => {
  it('says why not', () => {
    const elsewhere = ip('203.0.113.99');
    expect(bindPort({ family: 'IPv4', ip: elsewhere, port: 30080, protocol: 'TCP' })).toEqual({
      kind: 'refused',
      errno: 'EADDRNOTAVAIL',
    });
  });

  it('leaves nothing to the programs that we start', async () => {
    const port = await freePort('IPv4');
    const bound = bindPort({ family: 'IPv4', ip: '', port, protocol: 'TCP' });
    const child = spawn('sleep', ['60']);
    onTestFinished(() => void child.kill());
    await once(child, 'spawn');
    if (bound.kind === 'bound') bound.close();
    expect(bound.kind).toBe('bound');
    expect(await tryToListen('IPv4', port)).toBe('done');
  });
});

/** What waits in the buffer of a UDP socket, with what the kernel needs around it. */
function queuedBytes(family: Family, port: number): number {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  const line = readFileSync(family === 'IPv4' ? '/proc/net/udp' : '/proc/net/udp6', 'utf8')
    .split('\n')
    .find((text) => text.trim().split(/\s+/)[1]?.endsWith(`:${hex}`));
  return Number.parseInt(line?.trim().split(/\s+/)[4]?.split(':')[1] ?? '', 16);
}

async function listen(family: Family, port: number, host: Ip | string): Promise<Server> {
  const server = createServer().listen({ host, port, ipv6Only: family === 'IPv6' });
  await once(server, 'listening');
  return server;
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
  });
}

async function freePort(family: Family): Promise<number> {
  const server = await listen(family, 0, WILDCARD[family]);
  const address = server.address();
  await closed(server);
  return typeof address === 'object' && address ? address.port : 0;
}

async function tryToListen(family: Family, port: number): Promise<string> {
  try {
    await closed(await listen(family, port, WILDCARD[family]));
    return 'done';
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code);
  }
}

function udpType(family: Family): SocketType {
  return family === 'IPv4' ? 'udp4' : 'udp6';
}

async function tryToBindUdp(family: Family, port: number): Promise<string> {
  const socket = createSocket({ type: udpType(family), ipv6Only: family === 'IPv6' });
  try {
    socket.bind(port, WILDCARD[family]);
    await once(socket, 'listening');
    return 'done';
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code);
  } finally {
    socket.close();
  }
}

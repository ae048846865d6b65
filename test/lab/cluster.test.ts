import { describe, expect, test } from 'vitest';
import type { Transport } from '../../lab/protocol.ts';
import { addressOf, type HostName } from '../../lab/topology.ts';
import { FAMILIES } from '../../src/model/ip.ts';
import { useLab } from './requireLab.ts';

const TRANSPORTS: readonly Transport[] = ['tcp', 'udp'];
const PATHS: readonly (readonly [from: HostName, to: HostName])[] = [
  ['pod-a', 'pod-b'],
  ['pod-d', 'pod-b'],
  ['client', 'pod-d'],
];

const lab = useLab();

describe.each(FAMILIES)('%s', (family) => {
  describe.each(TRANSPORTS)('%s', (protocol) => {
    test.each(PATHS)('%s reaches %s and is seen by its own address', async (from, to) => {
      const address = addressOf(to, family);
      expect(await lab().host(from).request(protocol, address, 8080)).toEqual({
        outcome: 'answer',
        reply: { host: to, address, port: 8080, peer: addressOf(from, family), protocol },
      });
    });

    test('a client from its second address and a port of its choice, a closed port, nobody', async () => {
      const client = lab().host('client');
      const source = addressOf('client', family, 1);
      const named = { source, sourcePort: 40_000 };
      expect(await client.request(protocol, addressOf('pod-c', family), 53, named)).toMatchObject({
        outcome: 'answer',
        reply: { host: 'pod-c', peer: source },
      });
      expect(await client.request(protocol, addressOf('pod-a', family), 7)).toEqual({ outcome: 'refused' });
      const nowhere = family === 'IPv4' ? '10.96.0.77' : 'fd00:96::77';
      expect(await client.request(protocol, nowhere, 80, { timeoutMs: 150 })).toEqual({ outcome: 'timeout' });
    });
  });

  test('no route is told as unreachable, with its code', async () => {
    const nowhere = family === 'IPv4' ? '10.255.0.1' : 'fd00:255::1';
    const client = lab().host('client');
    await client.run(['ip', 'route', 'add', 'unreachable', nowhere]);
    expect(await client.request('tcp', nowhere, 80)).toEqual({
      outcome: 'unreachable',
      code: 'EHOSTUNREACH',
    });
  });
});

test('a session stays on one connection and ends when its server is cut off', async () => {
  const session = await lab().host('client').openSession('10.244.2.12', 8081);
  expect(await session.send()).toMatchObject({
    outcome: 'answer',
    reply: { host: 'pod-d', peer: '192.0.2.10' },
  });
  expect(await session.send()).toMatchObject({ outcome: 'answer', reply: { host: 'pod-d' } });

  const node1 = lab().host('node1');
  await node1.run(['iptables', '-I', 'FORWARD', '-p', 'tcp', '--dport', '8081', '-j', 'DROP']);
  expect(await session.send(150)).toEqual({ outcome: 'timeout' });
  await node1.run(['iptables', '-F', 'FORWARD']);
  await session.close();
  await expect(session.send()).rejects.toThrow(/closed/);
});

test('a server that stops refuses newcomers and keeps its open connections', async () => {
  const serving = await lab()
    .host('pod-a')
    .serve([
      { protocol: 'tcp', port: 7000 },
      { protocol: 'udp', port: 7000 },
    ]);
  const session = await lab().host('pod-c').openSession('10.244.1.11', 7000);
  // An answer shows that the server has accepted: closing it resets what still waits in its queue.
  expect(await session.send()).toMatchObject({ outcome: 'answer' });
  await serving.close();
  expect(await lab().host('pod-c').request('tcp', '10.244.1.11', 7000)).toEqual({ outcome: 'refused' });
  expect(await lab().host('pod-c').request('udp', '10.244.1.11', 7000)).toEqual({ outcome: 'refused' });
  expect(await session.send()).toMatchObject({ outcome: 'answer' });
  await session.close();
});

test('commands run in the network of their host', async () => {
  expect(await lab().host('pod-b').exec(['cat'], { stdin: 'grüße\u2028\n' })).toEqual({
    exitCode: 0,
    stdout: 'grüße\u2028\n',
    stderr: '',
    timedOut: false,
  });
  expect(await lab().host('pod-b').run(['ip', '-brief', 'address'])).toContain('10.244.1.12/24');
  expect(await lab().host('pod-b').exec(['sh', '-c', 'echo no >&2; exit 3'])).toMatchObject({
    exitCode: 3,
    stderr: 'no\n',
  });
  expect(await lab().host('pod-b').exec(['sh', '-c', 'sleep 60 | cat'], { timeoutMs: 100 })).toMatchObject({
    exitCode: null,
    timedOut: true,
  });
  await expect(lab().host('pod-b').exec(['no-such-command'])).rejects.toThrow('cannot run no-such-command');
});

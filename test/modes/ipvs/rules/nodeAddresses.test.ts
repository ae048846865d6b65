/** Addresses that are the node's own already, and node ports on them. */
import { describe, expect, test } from 'vitest';
import { ip } from '../../../plan/given.ts';
import { Harness, NODE_IPS } from './harness.ts';

const EXTERNAL = ip('198.51.100.1');
const WEB = ['a/x 10.96.0.1 80 ext=198.51.100.1', 'a/x-1 of x 80 | 10.244.0.1'];
const SERVED = [
  'KUBE-EXTERNAL-IP 198.51.100.1,tcp:80',
  '-A -t 198.51.100.1:80 -s rr',
  '-a -t 198.51.100.1:80 -r 10.244.0.1:80 -m -w 1',
];
const BOUND = ['KUBE-IPVS-IPS 198.51.100.1', 'addr 198.51.100.1'];

async function withNodeIps(harness: Harness, ...more: readonly (typeof EXTERNAL)[]): Promise<void> {
  const nodeIps = [...more, ...NODE_IPS];
  harness.settings = { ...harness.settings, nodeIps, nodePortIps: nodeIps };
  await harness.sync();
}

describe('an external IP', () => {
  test('is bound, and its other ports are closed', async () => {
    const harness = new Harness();
    await harness.sync(...WEB);
    expect(harness.world).toEqual(expect.arrayContaining([...SERVED, ...BOUND]));
    expect(harness.isBound(EXTERNAL)).toBe(true);
  });

  test('that the node gets is unbound, and goes on being served', async () => {
    const harness = new Harness();
    await harness.sync(...WEB);
    await withNodeIps(harness, EXTERNAL);
    expect(harness.kernel.sent).toEqual(['addr del 198.51.100.1', 'del KUBE-IPVS-IPS 198.51.100.1']);
    expect(harness.world).toEqual(expect.arrayContaining(SERVED));
    expect(harness.isBound(EXTERNAL)).toBe(false);
  });

  test('that the node loses is bound', async () => {
    const harness = new Harness();
    await harness.sync(...WEB);
    await withNodeIps(harness, EXTERNAL);
    await withNodeIps(harness);
    expect(harness.kernel.sent).toEqual(['add KUBE-IPVS-IPS 198.51.100.1', 'addr add 198.51.100.1']);
    expect(harness.everything).toEqual(await harness.fromScratch());
  });
});

describe('node ports', () => {
  const NODE_PORT = ['a/x 10.96.0.1 80@30080', 'a/x-1 of x 80 | 10.244.0.1'];

  test('follow the addresses of the node', async () => {
    const harness = new Harness();
    await harness.sync(...NODE_PORT);
    await withNodeIps(harness, EXTERNAL);
    expect(harness.kernel.sent).toEqual([
      '-A -t 198.51.100.1:30080 -s rr',
      '-a -t 198.51.100.1:30080 -r 10.244.0.1:80 -m -w 1',
    ]);
    await withNodeIps(harness);
    expect(harness.kernel.sent).toEqual(['-D -t 198.51.100.1:30080']);
    expect(harness.everything).toEqual(await harness.fromScratch());
  });

  test('on an address that the node loses go, also when the first attempt fails', async () => {
    const harness = new Harness();
    await harness.sync(...NODE_PORT);
    await withNodeIps(harness, EXTERNAL);
    harness.kernel.before = () => {
      throw new Error('no answer');
    };
    await expect(withNodeIps(harness)).rejects.toThrow('no answer');
    harness.kernel.before = () => {};
    await harness.sync();
    expect(harness.everything).toEqual(await harness.fromScratch());
  });
});

describe('a node port and an external IP at one address and port', () => {
  const NODE_PORT = ['a/x 10.96.0.1 80@30080', 'a/x-1 of x 80 | 10.244.0.1'];
  const ADDRESS = ['b/y 10.96.0.2 30080 ext=192.0.2.10', 'b/y-1 of y 30080 | 10.244.0.2'];
  const OF_ADDRESS = '-a -t 192.0.2.10:30080 -r 10.244.0.2:30080 -m -w 1';
  const OF_NODE_PORT = '-a -t 192.0.2.10:30080 -r 10.244.0.1:80 -m -w 1';
  const ELSEWHERE = '-a -t 192.0.2.11:30080 -r 10.244.0.1:80 -m -w 1';

  test.each([
    ['node port first', [NODE_PORT, ADDRESS]],
    ['address first', [ADDRESS, NODE_PORT]],
    ['at once', [[...NODE_PORT, ...ADDRESS]]],
  ])('the address wins: %s', async (_, rounds) => {
    const harness = new Harness();
    for (const lines of rounds) await harness.sync(...lines);
    expect(harness.world).toContain(OF_ADDRESS);
    expect(harness.world).toContain(ELSEWHERE);
    expect(harness.world).not.toContain(OF_NODE_PORT);
    expect(harness.everything).toEqual(await harness.fromScratch());
  });

  test('the node port comes back when the address goes, without a moment without a server', async () => {
    const harness = new Harness();
    await harness.sync(...NODE_PORT, ...ADDRESS);
    await harness.sync('- b/y', '- b/y-1');
    expect(harness.kernel.sent.filter((line) => line.includes('192.0.2.10:30080'))).toEqual([
      OF_NODE_PORT,
      '-e -t 192.0.2.10:30080 -r 10.244.0.2:30080 -m -w 0',
      '-d -t 192.0.2.10:30080 -r 10.244.0.2:30080',
    ]);
    expect(harness.everything).toEqual(await harness.fromScratch());
  });

  test('the address keeps the server when the node port goes', async () => {
    const harness = new Harness();
    await harness.sync(...NODE_PORT, ...ADDRESS);
    await harness.sync('- a/x', '- a/x-1');
    expect(harness.kernel.sent.filter((line) => line.includes('192.0.2.10:30080'))).toEqual([]);
    expect(harness.world).toContain(OF_ADDRESS);
  });

  test('the silence of a node port without local endpoints is not the address’s', async () => {
    const harness = new Harness();
    await harness.sync('a/x 10.96.0.1 80@30080 etp=Local', 'a/x-1 of x 80 | 10.244.1.1 node-b', ...ADDRESS);
    expect(harness.world).toContain('KUBE-NO-LOCAL-OUTSIDE 192.0.2.11,tcp:30080');
    expect(harness.world).not.toContain('KUBE-NO-LOCAL-OUTSIDE 192.0.2.10,tcp:30080');
    await harness.sync('- b/y', '- b/y-1');
    expect(harness.world).toContain('KUBE-NO-LOCAL-OUTSIDE 192.0.2.10,tcp:30080');
    expect(harness.everything).toEqual(await harness.fromScratch());
  });
});

test('an address that two services share goes with the second of them', async () => {
  const harness = new Harness();
  await harness.sync('a/x 10.96.0.1 80 lb=203.0.113.1', 'b/y 10.96.0.2 81 lb=203.0.113.1');
  await harness.sync('- a/x');
  expect(harness.world).toContain('addr 203.0.113.1');
  expect(harness.world).toContain('KUBE-IPVS-IPS 203.0.113.1');
  await harness.sync('- b/y');
  expect(harness.world).toEqual([]);
});

test('an endpoint that two services share solves the hairpin until the second goes', async () => {
  const harness = new Harness();
  const entry = 'KUBE-LOOP-BACK 10.244.0.1,tcp:80,10.244.0.1';
  await harness.sync('a/x 10.96.0.1 80', 'a/x-1 of x 80 | 10.244.0.1 node-a');
  await harness.sync('b/y 10.96.0.2 80', 'b/y-1 of y 80 | 10.244.0.1 node-a');
  await harness.sync('- a/x', '- a/x-1');
  expect(harness.world).toContain(entry);
  await harness.sync('- b/y', '- b/y-1');
  expect(harness.world).not.toContain(entry);
});

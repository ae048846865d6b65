/** An ordinary change costs what changed, whatever the number of services. */
import { describe, expect, test } from 'vitest';
import { Harness } from './harness.ts';

function world(count: number): readonly string[] {
  return Array.from({ length: count }, (_, n) => [
    `a/s${n} 10.96.${n >> 8}.${n & 255} 80@${20_000 + n}`,
    `a/s${n}-1 of s${n} 80 | 10.244.${n >> 8}.${n & 255} node-b`,
  ]).flat();
}

describe.each([2, 200, 2000])('among %i services', (count) => {
  test('an endpoint more is three messages, and nothing is read', async () => {
    const harness = new Harness();
    await harness.sync(...world(count));
    const report = await harness.sync('a/s1-1 of s1 80 | 10.244.0.1 node-b | 10.245.0.1 node-b');
    expect(report.kind).toBe('incremental');
    expect(harness.kernel.sent).toEqual([
      '-a -t 10.96.0.1:80 -r 10.245.0.1:80 -m -w 1',
      '-a -t 192.0.2.10:20001 -r 10.245.0.1:80 -m -w 1',
      '-a -t 192.0.2.11:20001 -r 10.245.0.1:80 -m -w 1',
    ]);
    expect(harness.kernel.reads).toBe(0);
    expect(harness.kernel.destinationReads).toBe(0);
    expect(harness.kernel.iptables.saves).toBe(0);
    expect(harness.kernel.iptables.attempts).toEqual([]);
  });

  test('a service more is its own entries, servers and address', async () => {
    const harness = new Harness();
    await harness.sync(...world(count));
    await harness.sync('b/y 10.97.0.1 80@31000', 'b/y-1 of y 80 | 10.245.0.1 node-b');
    expect([...harness.kernel.sent].sort()).toEqual([
      '-A -t 10.97.0.1:80 -s rr',
      '-A -t 192.0.2.10:31000 -s rr',
      '-A -t 192.0.2.11:31000 -s rr',
      '-a -t 10.97.0.1:80 -r 10.245.0.1:80 -m -w 1',
      '-a -t 192.0.2.10:31000 -r 10.245.0.1:80 -m -w 1',
      '-a -t 192.0.2.11:31000 -r 10.245.0.1:80 -m -w 1',
      'add KUBE-CLUSTER-IP 10.97.0.1,tcp:80',
      'add KUBE-IPVS-IPS 10.97.0.1',
      'add KUBE-NODE-PORT-TCP 31000',
      'addr add 10.97.0.1',
    ]);
    expect(harness.kernel.reads + harness.kernel.destinationReads + harness.kernel.iptables.saves).toBe(0);
  });

  test('an endpoint that goes is looked at, and no other server', async () => {
    const harness = new Harness();
    await harness.sync(...world(count));
    await harness.sync('a/s1-1 of s1 80');
    expect(harness.kernel.reads).toBe(0);
    expect([...harness.kernel.asked].sort()).toEqual([
      'TCP 10.96.0.1:80',
      'TCP 192.0.2.10:20001',
      'TCP 192.0.2.11:20001',
    ]);
  });
});

test('endpoints that drain already are not looked at when others go', async () => {
  const harness = new Harness();
  await harness.sync(...world(3));
  harness.kernel.destination('TCP 10.96.0.1:80', '10.244.0.1:80').connections = 1;
  await harness.sync('a/s1-1 of s1 80');
  expect(harness.isDraining).toBe(true);
  await harness.sync('a/s2-1 of s2 80');
  expect(harness.kernel.asked).not.toContain('TCP 10.96.0.1:80');
});

test('nothing changed: nothing is sent, and nothing read', async () => {
  const harness = new Harness();
  await harness.sync(...world(3));
  expect((await harness.sync()).kind).toBe('nothing');
  expect(harness.kernel.sent).toEqual([]);
  expect(harness.kernel.reads).toBe(0);
});

test('a change that means nothing here sends nothing', async () => {
  const harness = new Harness();
  await harness.sync('a/x 10.96.0.1 80', 'a/x-1 of x 80 | 10.244.0.1 node-b');
  await harness.sync('a/x-1 of x 80 | 10.244.0.1 node-b | 10.244.0.2 node-b unready');
  expect(harness.kernel.sent).toEqual([]);
});

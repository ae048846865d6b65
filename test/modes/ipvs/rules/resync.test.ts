/** What a process without memory takes over, what it mends, and what it leaves to others. */
import { describe, expect, test } from 'vitest';
import type { IpvsEdit } from '../../../../src/modes/ipvs/rules/client.ts';
import { cidr, ip } from '../../../plan/given.ts';
import { FakeIpvsKernel } from './fakeKernel.ts';
import { Harness } from './harness.ts';

const WEB = [
  'a/x LoadBalancer 10.96.0.1 80@30080 lb=203.0.113.1 ext=198.51.100.1 ranges=9.9.9.9/32',
  'a/x-1 of x 80 | 10.244.0.1 node-a | 10.244.1.1 node-b',
];

function newServer(address: string, port: number, protocol: 'TCP' | 'UDP' = 'TCP'): IpvsEdit {
  const key = { protocol, ip: ip(address), port };
  return { kind: 'newServer', server: { ...key, scheduler: 'rr', flags: 0, timeout: 0, clientPrefix: 32 } };
}

async function expectMended(harness: Harness): Promise<void> {
  expect(harness.everything).toEqual(await harness.fromScratch());
}

describe('a restart', () => {
  test('changes nothing where nothing has changed', async () => {
    const harness = new Harness();
    await harness.sync(...WEB);
    const next = harness.restarted();
    expect((await next.sync()).kind).toBe('full');
    expect(next.kernel.sent).toEqual([]);
    expect(next.kernel.iptables.restores).toEqual([]);
  });

  test('removes everything of services that went meanwhile', async () => {
    const harness = new Harness();
    await harness.sync(...WEB, 'b/y 10.96.0.2 80@30081', 'b/y-1 of y 80 | 10.244.0.9');
    harness.cluster.tell('- a/x', '- a/x-1').replan();
    const next = harness.restarted();
    await next.sync();
    expect(next.world.join('\n')).not.toMatch(/30080|10\.96\.0\.1|203\.0\.113\.1/);
    await expectMended(next);
  });

  test.each(['tcp', 'udp', 'sctp'])('removes node ports of %s too', async (protocol) => {
    const harness = new Harness();
    await harness.sync(`a/x 10.96.0.1 80/${protocol}@30080`);
    harness.cluster.tell('- a/x').replan();
    const next = harness.restarted();
    await next.sync();
    expect(next.world).toEqual([]);
  });

  test('with another scheduler changes servers without taking them away', async () => {
    const harness = new Harness();
    await harness.sync(...WEB);
    harness.settings = { ...harness.settings, scheduler: 'mh' };
    const next = harness.restarted();
    await next.sync();
    expect(next.kernel.sent.every((line) => /^-E .* -s mh -b mh-port$/.test(line))).toBe(true);
    expect(next.kernel.sent).toHaveLength(5);
    await expectMended(next);
  });
});

describe('a change of settings', () => {
  test('of the scheduler is written without a restart', async () => {
    const harness = new Harness();
    await harness.sync(...WEB);
    harness.settings = { ...harness.settings, scheduler: 'wrr' };
    expect((await harness.sync()).kind).toBe('full');
    await expectMended(harness);
  });

  test('of affinity changes the server', async () => {
    const harness = new Harness();
    await harness.sync('a/x 10.96.0.1 80', 'a/x-1 of x 80 | 10.244.0.1');
    await harness.sync('a/x 10.96.0.1 80 affinity=10800');
    expect(harness.kernel.sent).toEqual(['-E -t 10.96.0.1:80 -s rr -p 10800']);
    await harness.sync('a/x 10.96.0.1 80 affinity=60');
    expect(harness.kernel.sent).toEqual(['-E -t 10.96.0.1:80 -s rr -p 60']);
  });
});

describe('virtual servers of others', () => {
  test('stay, with their endpoints, at a start, at every look, and at a restart', async () => {
    const kernel = new FakeIpvsKernel();
    kernel.tamper(
      newServer('203.0.113.99', 80),
      newServer('192.0.2.10', 8080),
      newServer('192.0.2.10', 30_080, 'UDP'),
    );
    const before = new Harness({ kernel }).world;
    const harness = new Harness({ kernel });
    await harness.sync(...WEB);
    await harness.syncFull();
    const next = harness.restarted();
    await next.sync('- a/x', '- a/x-1');
    expect(next.world).toEqual(before);
  });

  test('stay with the port of one of our node ports, on an address that is not the node’s', async () => {
    const harness = new Harness();
    await harness.sync(...WEB);
    harness.kernel.tamper(newServer('203.0.113.99', 30_080));
    const next = harness.restarted();
    await next.sync();
    expect(next.world).toContain('-A -t 203.0.113.99:30080 -s rr');
  });

  test('stay where a service of ours was once', async () => {
    const harness = new Harness();
    await harness.sync(...WEB);
    await harness.sync('- a/x', '- a/x-1');
    harness.kernel.tamper(newServer('198.51.100.1', 80));
    await harness.syncFull();
    expect(harness.world).toEqual(['-A -t 198.51.100.1:80 -s rr']);
  });

  test('on an address of the device, or named by one of our sets, are taken for leftovers', async () => {
    const harness = new Harness();
    await harness.sync(...WEB);
    harness.kernel.tamper(newServer('10.96.0.1', 9999));
    await harness.syncFull();
    expect(harness.world.join('\n')).not.toContain(':9999');
  });

  test('stay in excluded ranges even there', async () => {
    const harness = new Harness({ excludeCIDRs: [cidr('10.96.0.0/30')] });
    await harness.sync(...WEB);
    harness.kernel.tamper(newServer('10.96.0.1', 9999));
    const next = harness.restarted();
    await next.sync();
    expect(next.world).toContain('-A -t 10.96.0.1:9999 -s rr');
  });

  test('that a new service needs are taken over', async () => {
    const kernel = new FakeIpvsKernel();
    const server = { protocol: 'TCP', ip: ip('10.96.0.1'), port: 80 } as const;
    const destination = { ip: ip('10.9.9.9'), port: 80, key: '10.9.9.9:80' };
    const harness = new Harness({ kernel });
    await harness.sync('b/y 10.96.0.2 80');
    kernel.tamper(newServer('10.96.0.1', 80), { kind: 'newDestination', server, destination, weight: 1 });
    expect((await harness.sync('a/x 10.96.0.1 80 affinity=60', 'a/x-1 of x 80 | 10.244.0.1')).kind).toBe(
      'full',
    );
    await expectMended(harness);
  });
});

describe('sets', () => {
  test('of others are not touched', async () => {
    const kernel = new FakeIpvsKernel();
    kernel.tamper(
      { kind: 'createSet', set: 'KUBE-SOMETHING', type: 'hash:ip', capacity: 5 },
      { kind: 'addEntry', set: 'KUBE-SOMETHING', entry: { type: 'hash:ip', ip: ip('10.96.0.1') } },
    );
    const harness = new Harness({ kernel });
    await harness.sync(...WEB);
    await harness.sync('- a/x', '- a/x-1');
    expect(harness.world).toEqual(['KUBE-SOMETHING 10.96.0.1']);
  });

  test('of our names and another type are somebody else’s: nothing is written', async () => {
    const kernel = new FakeIpvsKernel();
    kernel.tamper({ kind: 'createSet', set: 'KUBE-CLUSTER-IP', type: 'hash:ip', capacity: 5 });
    const harness = new Harness({ kernel });
    await expect(harness.sync(...WEB)).rejects.toThrow(
      expect.objectContaining({
        code: 'IPSET_TAKEN',
        message: expect.stringContaining(
          'the set KUBE-CLUSTER-IP is there already and is of type hash:ip, not hash:ip,port',
        ),
        hint: expect.stringContaining('ipset destroy KUBE-CLUSTER-IP'),
      }),
    );
    expect(kernel.sent).toEqual([]);
    kernel.tamper({ kind: 'destroySet', set: 'KUBE-CLUSTER-IP' });
    await harness.sync();
    await expectMended(harness);
  });

  test('whose entries somebody changed are mended at the next look', async () => {
    const harness = new Harness();
    await harness.sync(...WEB);
    const { entries } = harness.kernel.set('KUBE-CLUSTER-IP');
    entries.clear();
    harness.kernel.tamper({
      kind: 'addEntry',
      set: 'KUBE-IPVS-IPS',
      entry: { type: 'hash:ip', ip: ip('8.8.8.8') },
    });
    await harness.syncFull();
    expect(harness.kernel.sent).toEqual([
      'add KUBE-CLUSTER-IP 10.96.0.1,tcp:80',
      'del KUBE-IPVS-IPS 8.8.8.8',
    ]);
    await expectMended(harness);
  });

  test('that the rules match on demand are made by the first service that needs them, and may stay empty', async () => {
    const harness = new Harness();
    await harness.sync('a/x 10.96.0.1 80 itp=Local', 'a/x-1 of x 80 | 10.244.0.1 node-a');
    expect(harness.kernel.sets.has('KUBE-NO-LOCAL')).toBe(false);
    await harness.sync('a/x-1 of x 80 | 10.244.1.1 node-b');
    expect(harness.kernel.sent).toContain('create KUBE-NO-LOCAL hash:ip,port 65536');
    expect(harness.world).toContain('KUBE-NO-LOCAL 10.96.0.1,tcp:80');
    expect(harness.rules.join('\n')).toContain('--match-set KUBE-NO-LOCAL dst,dst');
    await harness.sync('a/x-1 of x 80 | 10.244.0.1 node-a');
    expect(harness.rules.join('\n')).not.toContain('KUBE-NO-LOCAL');
    expect(harness.kernel.set('KUBE-NO-LOCAL').entries.size).toBe(0);
    await expectMended(harness);
  });
});

describe('what somebody removed by hand', () => {
  test('a virtual server: noticed when its endpoints change, and mended at once', async () => {
    const harness = new Harness();
    await harness.sync(...WEB);
    harness.kernel.servers.delete('TCP 10.96.0.1:80');
    const report = await harness.sync('a/x-1 of x 80 | 10.244.0.1 node-a | 10.244.1.2 node-b');
    expect(report.kind).toBe('full');
    expect(report.refused.size).toBe(0);
    await expectMended(harness);
  });

  test('a virtual server: mended by a look at everything', async () => {
    const harness = new Harness();
    await harness.sync(...WEB);
    harness.kernel.servers.clear();
    await harness.syncFull();
    await expectMended(harness);
  });

  test('a set, with the rules that match it: noticed by the next entry', async () => {
    const harness = new Harness();
    await harness.sync(...WEB);
    harness.kernel.sets.delete('KUBE-CLUSTER-IP');
    expect((await harness.sync('b/y 10.96.0.2 80')).kind).toBe('full');
    await expectMended(harness);
  });

  test('an endpoint that was to go: no reason to look', async () => {
    const harness = new Harness();
    await harness.sync(...WEB);
    harness.kernel.servers.get('TCP 10.96.0.1:80')?.destinations.delete('10.244.1.1:80');
    expect((await harness.sync('a/x-1 of x 80 | 10.244.0.1 node-a')).kind).toBe('incremental');
    await expectMended(harness);
  });

  test('an endpoint that was added by hand and is now wanted is given its weight', async () => {
    const harness = new Harness();
    await harness.sync(...WEB);
    const server = { protocol: 'TCP', ip: ip('10.96.0.1'), port: 80 } as const;
    const destination = { ip: ip('10.244.1.2'), port: 80, key: '10.244.1.2:80' };
    harness.kernel.tamper({ kind: 'newDestination', server, destination, weight: 9 });
    await harness.sync('a/x-1 of x 80 | 10.244.0.1 node-a | 10.244.1.1 node-b | 10.244.1.2 node-b');
    await expectMended(harness);
  });
});

test('somebody who changes things faster than they are mended is named', async () => {
  const harness = new Harness();
  await harness.sync(...WEB);
  harness.kernel.before = (edit) => {
    if (edit?.kind === 'newDestination') harness.kernel.servers.clear();
  };
  await expect(harness.sync('b/y 10.96.0.2 80', 'b/y-1 of y 80 | 10.244.0.9')).rejects.toThrow(
    expect.objectContaining({ code: 'IPVS_CHANGED' }),
  );
  harness.kernel.before = () => {};
  const report = await harness.sync();
  expect(report.repaired).toContain('virtual server TCP 10.96.0.1:80');
  await expectMended(harness);
  expect((await harness.sync()).repaired).toEqual([]);
});

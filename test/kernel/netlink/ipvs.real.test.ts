/**
 * IPVS beside what `ipvsadm` and `ip` say of the same kernel. Many kernels lack it, so this is one of our own, booted
 * once; each test looks at one of the steps that were taken in it.
 */
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { jsonFromGuest, requireGuest, whyNoGuest } from '../../support/uml/guest.ts';

const PROGRAMS = ['ipvsadm', 'ipset', 'ip'];

type Steps = Readonly<Record<string, unknown>>;

describe('in a kernel that has IPVS', () => {
  let steps: Steps = {};
  beforeEach((context) => requireGuest(context, PROGRAMS));
  beforeAll(async () => {
    if (whyNoGuest(PROGRAMS) !== undefined) return;
    const source = `import './test/kernel/netlink/ipvsSteps.ts';`;
    const modules = ['ip_vs', 'ip_vs_rr', 'dummy'];
    steps = (await jsonFromGuest('ipvs', source, { modules, timeoutMs: 90_000 })) as Steps;
  }, 100_000);

  it('finds the family, and says which module one needs', () => {
    expect(steps['unknownFamily']).toEqual({
      state: 'absent',
      reason: 'the kernel has no NO_SUCH: load the module no_such',
    });
    expect(steps['info']).toEqual({ version: '1.2.1', connectionTableSize: 4096 });
  });

  it('makes services and destinations, in one batch with refusals among them', () => {
    expect(steps['created']).toEqual([
      'done',
      'done',
      'done',
      'exists',
      'ENOENT',
      'absent',
      'absent',
      'done',
      'done',
      'exists',
      'absent',
      'done',
      'done',
      'done',
      'absent',
      'absent',
    ]);
    expect(steps['saved']).toEqual([
      '-A --sctp-service [fd00::1]:9 -s rr',
      '-A -t 10.96.0.1:443 -s rr',
      '-A -u 10.96.0.10:53 -s rr -p 10800',
      '-a --sctp-service [fd00::1]:9 -r [fd00:1::1]:90 -m -w 1',
      '-a -t 10.96.0.1:443 -r 10.1.0.1:6443 -m -w 1',
      '-a -t 10.96.0.1:443 -r 10.1.0.2:6443 -m -w 0',
      '-a -u 10.96.0.10:53 -r 10.1.0.3:5353 -m -w 1',
    ]);
    expect(steps['listing']).toContain(
      [
        'TCP  10.96.0.1:443 rr',
        '  -> 10.1.0.1:6443                Masq    1      0          0         ',
        '  -> 10.1.0.2:6443                Masq    0      0          0         ',
      ].join('\n'),
    );
  });

  it('reads back what it made, each service with the bit of the kernel', () => {
    const plain = { scheduler: 'rr', flags: 2, timeout: 0, clientPrefix: 32 };
    expect(steps['services']).toHaveLength(3);
    expect(steps['services']).toEqual(
      expect.arrayContaining([
        { protocol: 'TCP', ip: '10.96.0.1', port: 443, ...plain },
        { protocol: 'UDP', ip: '10.96.0.10', port: 53, ...plain, flags: 3, timeout: 10_800 },
        { protocol: 'SCTP', ip: 'fd00::1', port: 9, ...plain, clientPrefix: 128 },
      ]),
    );
    const idle = { forwarding: 'masquerade', activeConnections: 0, inactiveConnections: 0 };
    expect(steps['destinations']).toEqual([
      expect.arrayContaining([
        { ip: '10.1.0.1', port: 6443, weight: 1, ...idle },
        { ip: '10.1.0.2', port: 6443, weight: 0, ...idle },
      ]),
      [{ ip: 'fd00:1::1', port: 90, weight: 1, ...idle }],
      [],
    ]);
  });

  it('changes and deletes them', () => {
    expect(steps['changed']).toEqual(['done', 'done', 'done', 'done']);
    expect(steps['savedAfterChange']).toEqual([
      '-A -t 10.96.0.1:443 -s wrr -p 60',
      '-A -u 10.96.0.10:53 -s rr',
      '-a -t 10.96.0.1:443 -r 10.1.0.2:6443 -m -w 0',
      '-a -u 10.96.0.10:53 -r 10.1.0.3:5353 -m -w 1',
    ]);
  });

  it('reads what others made, without services for firewall marks', () => {
    expect(steps['ofOthers']).toEqual([
      [
        {
          protocol: 'TCP',
          ip: '192.0.2.1',
          port: 80,
          scheduler: 'mh',
          flags: 0x13,
          timeout: 30,
          clientPrefix: 24,
        },
      ],
      [
        {
          ip: '192.0.2.2',
          port: 80,
          weight: 5,
          forwarding: 'route',
          activeConnections: 0,
          inactiveConnections: 0,
        },
      ],
    ]);
  });

  it('sets time-outs, and leaves those that are 0', () => {
    expect(steps['timeouts']).toEqual([
      { tcp: 900, tcpFin: 120, udp: 300 },
      'done',
      { tcp: 901, tcpFin: 120, udp: 301 },
      'Timeout (tcp tcpfin udp): 901 120 301',
    ]);
  });

  it('flushes', () => expect(steps['flushed']).toEqual(['done', [], []]));

  it('makes a dummy device that is down, whose addresses are local all the same', () => {
    expect(steps['device']).toEqual({
      made: ['done', 'exists'],
      kind: 'dummy',
      isUp: false,
      bound: ['done', 'done', 'exists', 'absent'],
      shown: ['10.96.0.1/32', 'fd00::1/128'],
      listed: ['10.96.0.1/32', 'fd00::1/128'],
      route: 'local',
    });
  });

  it('counts a real connection', () => {
    const { heard, counts, theirCounts, gone } = steps['connections'] as Steps;
    expect(heard).toBe('hello');
    expect(counts).toEqual([theirCounts]);
    expect((theirCounts as readonly number[]).reduce((sum, count) => sum + count)).toBe(1);
    expect(gone).toBe('done');
  });

  it('has sets beside it', () => {
    expect(steps['sets']).toEqual([['done', 'done'], ['10.96.0.1,tcp:443'], '10.96.0.1,tcp:443']);
  });

  it('makes thousands at once', () => {
    expect(steps['many']).toEqual({ states: ['done'], services: 500, destinations: 5000 });
  });
});

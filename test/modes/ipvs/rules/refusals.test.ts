/** The kernel refuses something: who is told, who is served all the same, and when it is tried again. */
import { describe, expect, test } from 'vitest';
import type { IpvsEdit } from '../../../../src/modes/ipvs/rules/client.ts';
import type { Fault } from './fakeKernel.ts';
import { Harness } from './harness.ts';
import { printEdit } from './cluster.ts';

const X = ['a/x 10.96.0.1 80@30080 ext=198.51.100.1', 'a/x-1 of x 80 | 10.244.0.1 node-a'];
const Y = ['b/y 10.96.0.2 80', 'b/y-1 of y 80 | 10.244.0.2 node-a'];
const Y_WORLD = [
  'KUBE-CLUSTER-IP 10.96.0.2,tcp:80',
  '-a -t 10.96.0.2:80 -r 10.244.0.2:80 -m -w 1',
  'addr 10.96.0.2',
];

function refusing(pattern: RegExp, name = 'ENOMEM'): Fault {
  return (edit: IpvsEdit) => (pattern.test(printEdit(edit)) ? name : undefined);
}

const OF_X: readonly (readonly [string, RegExp, string])[] = [
  ['an entry', /^add KUBE-EXTERNAL-IP /, 'add 198.51.100.1,tcp:80 to the set KUBE-EXTERNAL-IP: ENOMEM'],
  [
    'a virtual server',
    /^-A -t 198/,
    'write the virtual server TCP 198.51.100.1:80 with scheduler rr: ENOMEM',
  ],
  [
    'an endpoint',
    /^-a -t 198/,
    'write the endpoint 10.244.0.1:80 of the virtual server TCP 198.51.100.1:80: ENOMEM',
  ],
  ['an address', /^addr add 198/, 'add 198.51.100.1 to the device kube-ipvs0: ENOMEM'],
];

describe.each(OF_X)('%s of one service', (_, pattern, message) => {
  test('at a start: it is named, and all others are served', async () => {
    const harness = new Harness();
    harness.kernel.fault = refusing(pattern);
    const report = await harness.sync(...X, ...Y);
    expect([...report.refused]).toEqual([
      [
        'a/x/TCP',
        expect.objectContaining({ code: 'IPVS_REFUSED', message: expect.stringContaining(message) }),
      ],
    ]);
    expect(harness.world).toEqual(expect.arrayContaining(Y_WORLD));
  });

  test('in a change: the same', async () => {
    const harness = new Harness();
    await harness.sync(...Y);
    harness.kernel.fault = refusing(pattern);
    const report = await harness.sync(...X, 'b/y-1 of y 80 | 10.244.0.2 node-a | 10.244.0.3 node-a');
    expect([...report.refused.keys()]).toEqual(['a/x/TCP']);
    expect(harness.world).toEqual(expect.arrayContaining(Y_WORLD));
    expect(harness.world).toContain('-a -t 10.96.0.2:80 -r 10.244.0.3:80 -m -w 1');
  });

  test('it is tried again by every sync, and named until the kernel relents', async () => {
    const harness = new Harness();
    harness.kernel.fault = refusing(pattern);
    await harness.sync(...X, ...Y);
    expect([...(await harness.sync()).refused.keys()]).toEqual(['a/x/TCP']);
    expect([...(await harness.sync('c/z 10.96.0.3 80')).refused.keys()]).toEqual(['a/x/TCP']);
    harness.kernel.fault = () => undefined;
    expect((await harness.sync()).refused.size).toBe(0);
    expect(harness.everything).toEqual(await harness.fromScratch());
    expect((await harness.sync(...Y)).kind).toBe('nothing');
  });

  test('when it is deleted all is well', async () => {
    const harness = new Harness();
    harness.kernel.fault = refusing(pattern);
    await harness.sync(...X, ...Y);
    expect((await harness.sync('- a/x', '- a/x-1')).refused.size).toBe(0);
    expect(harness.everything).toEqual(await harness.fromScratch());
  });
});

describe('a scheduler that the kernel has not', () => {
  test('is what every service is told', async () => {
    const harness = new Harness({ settings: { scheduler: 'lblc' } });
    const report = await harness.sync(...X, ...Y);
    expect([...report.refused.keys()]).toEqual(['a/x/TCP', 'b/y/TCP']);
    expect(report.refused.get('b/y/TCP')).toMatchObject({
      message: expect.stringContaining('10.96.0.2:80 with scheduler lblc: ENOENT'),
      hint: 'The kernel has no scheduler lblc: modprobe ip_vs_lblc',
    });
  });

  test('everything is served once it is there', async () => {
    const harness = new Harness({ settings: { scheduler: 'lblc' } });
    await harness.sync(...X, ...Y);
    harness.kernel.schedulers = new Set(['lblc']);
    expect((await harness.sync()).refused.size).toBe(0);
    expect(harness.everything).toEqual(await harness.fromScratch());
  });
});

describe('what belongs to no service', () => {
  test.each<[string, RegExp, string]>([
    ['a set', /^create KUBE-CLUSTER-IP/, 'create the set KUBE-CLUSTER-IP (hash:ip,port): ENOMEM'],
    ['the device', /^link add/, 'create the device kube-ipvs0: ENOMEM'],
  ])('%s at a start: the sync fails by its name, and the next one succeeds', async (_, pattern, message) => {
    const harness = new Harness();
    harness.kernel.fault = refusing(pattern);
    await expect(harness.sync(...X)).rejects.toThrow(
      expect.objectContaining({ code: 'IPVS_REFUSED', message }),
    );
    harness.kernel.fault = () => undefined;
    expect((await harness.sync()).refused.size).toBe(0);
    expect(harness.everything).toEqual(await harness.fromScratch());
  });

  test.each<[string, RegExp, string]>([
    ['a virtual server', /^-D /, 'delete the virtual server'],
    ['an address', /^addr del/, 'remove 10.96.0.1 from the device kube-ipvs0'],
    ['an entry', /^del /, 'from the set KUBE-'],
    ['an endpoint', /^-[ed] /, '10.244.0.2:80'],
  ])(
    '%s that should go: the sync fails by its name, and the next one finishes',
    async (_, pattern, message) => {
      const harness = new Harness();
      await harness.sync(...X, ...Y);
      harness.kernel.fault = refusing(pattern);
      await expect(harness.sync('- a/x', '- a/x-1', '- b/y-1')).rejects.toThrow(
        expect.objectContaining({ code: 'IPVS_REFUSED', message: expect.stringContaining(message) }),
      );
      harness.kernel.fault = () => undefined;
      expect((await harness.sync()).refused.size).toBe(0);
      await harness.endConnections();
      expect(harness.everything).toEqual(await harness.fromScratch());
    },
  );

  test('a virtual server that could not be deleted keeps its entry, so that a restart finds it', async () => {
    const harness = new Harness();
    await harness.sync(...X);
    harness.kernel.fault = refusing(/^-D /);
    await expect(harness.sync('- a/x', '- a/x-1')).rejects.toThrow('delete the virtual server');
    harness.kernel.fault = () => undefined;
    const next = harness.restarted();
    await next.sync();
    expect(next.everything).toEqual(await next.fromScratch());
  });

  test('a kind of set that the kernel has not: the module is named', async () => {
    const harness = new Harness();
    harness.kernel.fault = refusing(/^create .* hash:ip,port,net/, 'IPSET_ERR_FIND_TYPE');
    await expect(harness.sync(...X)).rejects.toThrow(
      expect.objectContaining({ hint: expect.stringContaining('modprobe ip_set_hash_ipportnet') }),
    );
  });
});

test('the rules are refused: the addresses wait for them, and the next sync looks at everything', async () => {
  const harness = new Harness();
  const { fault } = harness.kernel.iptables;
  harness.kernel.iptables.fault = () => new Error('somebody has the lock');
  await expect(harness.sync(...X)).rejects.toThrow('somebody has the lock');
  expect(harness.kernel.device?.addresses.size).toBe(0);
  harness.kernel.iptables.fault = fault;
  expect((await harness.sync()).kind).toBe('full');
  expect(harness.everything).toEqual(await harness.fromScratch());
});

test('a look that is asked for during a sync is not forgotten', async () => {
  const harness = new Harness();
  harness.kernel.before = () => harness.requestFull();
  await harness.sync(...X);
  harness.kernel.before = () => {};
  expect((await harness.sync()).kind).toBe('full');
  expect((await harness.sync()).kind).toBe('nothing');
});

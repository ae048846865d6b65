/** The device kube-ipvs0: not there, somebody else's, broken, gone. */
import { describe, expect, test } from 'vitest';
import { ip } from '../../../plan/given.ts';
import { FakeIpvsKernel } from './fakeKernel.ts';
import { Harness } from './harness.ts';

const WEB = ['a/x 10.96.0.1 80 ext=198.51.100.1', 'a/x-1 of x 80 | 10.244.0.1'];

test('is made where there is none, before anything is bound', async () => {
  const harness = new Harness();
  await harness.sync(...WEB);
  expect(harness.kernel.sent[0]).toBe('link add');
  expect(harness.kernel.sent.slice(-2)).toEqual(['addr add 10.96.0.1', 'addr add 198.51.100.1']);
});

test('that is there is used, and cleared of what nobody wants', async () => {
  const kernel = new FakeIpvsKernel();
  kernel.device = { type: 'dummy', addresses: new Set([ip('10.96.0.1'), ip('10.96.7.7')]), isBroken: false };
  const harness = new Harness({ kernel });
  await harness.sync(...WEB);
  expect(kernel.sent.filter((line) => /^(addr|link)/.test(line))).toEqual([
    'addr add 198.51.100.1',
    'addr del 10.96.7.7',
  ]);
});

test('of another kind is somebody else’s: nothing is written', async () => {
  const kernel = new FakeIpvsKernel();
  kernel.device = { type: 'bridge', addresses: new Set(), isBroken: false };
  const harness = new Harness({ kernel });
  await expect(harness.sync(...WEB)).rejects.toThrow(
    expect.objectContaining({
      code: 'DEVICE_TAKEN',
      message: expect.stringContaining('kube-ipvs0 that is a bridge'),
      hint: expect.stringContaining('ip link delete kube-ipvs0'),
    }),
  );
  expect(kernel.sent).toEqual([]);
  kernel.device = undefined;
  await harness.sync();
  expect(harness.everything).toEqual(await harness.fromScratch());
});

test('whose addresses are no longer local is made anew', async () => {
  const harness = new Harness();
  await harness.sync(...WEB);
  if (harness.kernel.device) harness.kernel.device.isBroken = true;
  await harness.syncFull();
  expect(harness.kernel.sent).toEqual([
    'link del',
    'link add',
    'addr add 10.96.0.1',
    'addr add 198.51.100.1',
  ]);
  expect(harness.everything).toEqual(await harness.fromScratch());
});

describe('that is gone', () => {
  test('is noticed by the next address, and made again with all of them', async () => {
    const harness = new Harness();
    await harness.sync(...WEB);
    harness.kernel.device = undefined;
    const report = await harness.sync('b/y 10.96.0.2 80');
    expect(report.kind).toBe('full');
    expect(harness.everything).toEqual(await harness.fromScratch());
  });

  test('is noticed by an address that should go', async () => {
    const harness = new Harness();
    await harness.sync(...WEB, 'b/y 10.96.0.2 80');
    harness.kernel.device = undefined;
    await harness.sync('- b/y');
    expect(harness.everything).toEqual(await harness.fromScratch());
  });

  test('is mended by a look at everything', async () => {
    const harness = new Harness();
    await harness.sync(...WEB);
    harness.kernel.device = undefined;
    await harness.syncFull();
    expect(harness.everything).toEqual(await harness.fromScratch());
  });
});

test('that the kernel cannot make: that is what is said, and everything else is written', async () => {
  const harness = new Harness();
  harness.kernel.fault = ({ kind }) => (kind === 'makeDevice' ? 'EOPNOTSUPP' : undefined);
  await expect(harness.sync(...WEB)).rejects.toThrow(
    expect.objectContaining({
      code: 'IPVS_REFUSED',
      message: 'create the device kube-ipvs0: EOPNOTSUPP',
      hint: expect.stringContaining('modprobe dummy'),
    }),
  );
  expect(harness.world).toContain('-a -t 10.96.0.1:80 -r 10.244.0.1:80 -m -w 1');
  harness.kernel.fault = () => undefined;
  await harness.sync();
  expect(harness.everything).toEqual(await harness.fromScratch());
});

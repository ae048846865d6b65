/** Sets that become too small. */
import { describe, expect, test } from 'vitest';
import { capacityFor } from '../../../../src/modes/ipvs/rules/sets.ts';
import { FakeIpvsKernel } from './fakeKernel.ts';
import { Harness } from './harness.ts';

const services = (from: number, to: number): readonly string[] =>
  Array.from({ length: to - from }, (_, n) => `a/s${from + n} 10.96.1.${from + n} 80`);
const gone = (from: number, to: number): readonly string[] =>
  Array.from({ length: to - from }, (_, n) => `- a/s${from + n}`);

/** A kernel in which this set is there already, with little room. */
function small(capacity: number, set = 'KUBE-CLUSTER-IP'): FakeIpvsKernel {
  const kernel = new FakeIpvsKernel();
  kernel.tamper({
    kind: 'createSet',
    set,
    type: set === 'KUBE-IPVS-IPS' ? 'hash:ip' : 'hash:ip,port',
    capacity,
  });
  return kernel;
}

test.each([
  [0, 65_536, 65_536],
  [65_536, 65_536, 65_536],
  [65_537, 65_536, 131_072],
  [300_000, 65_536, 524_288],
  [5, 4, 8],
  [3, 0, 4],
])('%i entries in a set for %i: one for %i', (size, capacity, enough) => {
  expect(capacityFor(size, capacity)).toBe(enough);
});

describe('a set', () => {
  test('is made for as many as kube-proxy makes it for', async () => {
    const harness = new Harness();
    await harness.sync(...services(0, 3));
    expect(harness.kernel.set('KUBE-CLUSTER-IP').capacity).toBe(65_536);
  });

  test('of another size is used while it suffices', async () => {
    const harness = new Harness({ kernel: small(4) });
    await harness.sync(...services(0, 4));
    expect(harness.kernel.set('KUBE-CLUSTER-IP').capacity).toBe(4);
    expect(harness.everything).toEqual(await harness.fromScratch());
  });

  test('that is too small at a start is made anew, in the place of the old one', async () => {
    const harness = new Harness({ kernel: small(4) });
    const report = await harness.sync(...services(0, 5));
    expect(report.refused.size).toBe(0);
    expect(harness.kernel.set('KUBE-CLUSTER-IP').capacity).toBe(8);
    expect(harness.everything).toEqual(await harness.fromScratch());
  });

  test('that becomes too small grows while rules match it, and without a moment in which an entry is missing', async () => {
    const harness = new Harness({ kernel: small(4) });
    await harness.sync(...services(0, 4));
    harness.kernel.before = () => {
      expect(harness.kernel.set('KUBE-CLUSTER-IP').entries.size).toBeGreaterThanOrEqual(4);
    };
    const report = await harness.sync(...services(4, 5));
    expect(report).toMatchObject({ kind: 'incremental' });
    expect(report.refused.size).toBe(0);
    const cluster = (n: number): string => `KUBE-GROWING 10.96.1.${n},tcp:80`;
    expect(harness.kernel.sent.slice(0, 9)).toEqual([
      'destroy KUBE-GROWING',
      'create KUBE-GROWING hash:ip,port 8',
      ...[0, 1, 2, 3, 4].map((n) => `add ${cluster(n)}`),
      'swap KUBE-CLUSTER-IP KUBE-GROWING',
      'destroy KUBE-GROWING',
    ]);
    expect(harness.everything).toEqual(await harness.fromScratch());
  });

  test('grows again and again', async () => {
    const harness = new Harness({ kernel: small(1) });
    for (let n = 0; n < 20; n++) {
      expect((await harness.sync(...services(n, n + 1))).refused.size).toBe(0);
    }
    expect(harness.kernel.set('KUBE-CLUSTER-IP').capacity).toBe(32);
    expect(harness.everything).toEqual(await harness.fromScratch());
  });

  test('has room for what comes while what goes is still in it', async () => {
    const harness = new Harness({ kernel: small(4) });
    await harness.sync(...services(0, 4));
    const report = await harness.sync(...gone(0, 4), ...services(4, 8));
    expect(report.refused.size).toBe(0);
    expect(harness.everything).toEqual(await harness.fromScratch());
  });

  test('has room for what comes while a former process’s entries are still in it', async () => {
    const harness = new Harness({ kernel: small(4) });
    await harness.sync(...services(0, 4));
    harness.cluster.tell(...gone(0, 4), ...services(4, 8)).replan();
    const next = harness.restarted();
    expect((await next.sync()).refused.size).toBe(0);
    expect(next.everything).toEqual(await next.fromScratch());
  });

  test('that grows keeps what goes until its server has gone', async () => {
    const harness = new Harness({ kernel: small(4) });
    await harness.sync(...services(0, 4));
    harness.kernel.before = (edit) => {
      if (edit?.kind === 'deleteServer')
        expect(harness.world).toContain(`KUBE-CLUSTER-IP ${edit.server.ip},tcp:80`);
    };
    await harness.sync(...gone(0, 4), ...services(4, 8));
    expect(harness.kernel.sent.filter((line) => line.startsWith('-D'))).toHaveLength(4);
  });

  test('left half grown by a process that died is finished by the next', async () => {
    const harness = new Harness({ kernel: small(4) });
    await harness.sync(...services(0, 4));
    let left = 4;
    harness.kernel.before = () => {
      if (left-- === 0) throw new Error('killed');
    };
    await expect(harness.sync(...services(4, 5))).rejects.toThrow('killed');
    expect(harness.kernel.sets.has('KUBE-GROWING')).toBe(true);
    const next = harness.restarted();
    await next.sync();
    expect(next.everything).toEqual(await next.fromScratch());
  });

  test('of which an entry was refused while it grew is completed by the next sync', async () => {
    const harness = new Harness({ kernel: small(4) });
    await harness.sync(...services(0, 4));
    let refusals = 1;
    harness.kernel.fault = (edit) =>
      edit.kind === 'addEntry' && edit.set === 'KUBE-GROWING' && refusals-- > 0 ? 'ENOMEM' : undefined;
    await expect(harness.sync(...services(4, 5))).rejects.toThrow(
      expect.objectContaining({ code: 'IPVS_REFUSED' }),
    );
    await harness.sync();
    expect(harness.everything).toEqual(await harness.fromScratch());
  });
});

test('70,000 cluster IPs have room', async () => {
  const harness = new Harness();
  const address = (n: number): string => `10.${96 + (n >> 16)}.${(n >> 8) & 255}.${n & 255}`;
  harness.cluster.tell(...Array.from({ length: 70_000 }, (_, n) => `a/s${n} ${address(n)} 80`));
  const report = await harness.sync();
  expect(report.refused.size).toBe(0);
  const set = harness.kernel.set('KUBE-CLUSTER-IP');
  expect([set.capacity, set.entries.size]).toEqual([131_072, 70_000]);
  expect(harness.kernel.set('KUBE-IPVS-IPS').entries.size).toBe(70_000);
});

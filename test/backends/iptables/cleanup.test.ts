/** Everything that is ours goes, known by the kernel's state alone, and nothing else does. */
import { describe, expect, test } from 'vitest';
import { planCleanup } from '../../../src/backends/iptables/cleanup.ts';
import { printStep } from '../../../src/backends/iptables/edit.ts';
import type { LayoutName } from '../../../src/backends/iptables/fragment.ts';
import { LAYOUT_NAMES } from '../../../src/backends/iptables/layouts/index.ts';
import { EMPTY, FakeKernel } from './fakeKernel.ts';
import { FOREIGN, KUBELET } from './foreign.ts';
import { WORLD_4 } from './goldenWorld.ts';
import { chainName, Harness } from './harness.ts';

async function cleanup(kernel: FakeKernel): Promise<ReturnType<typeof planCleanup>> {
  const plan = planCleanup(kernel.tables);
  kernel.forget();
  for (const step of plan.steps) await kernel.restore(step.table, printStep(step));
  return plan;
}

async function started(layout: LayoutName, text: string, ...lines: readonly string[]): Promise<FakeKernel> {
  const harness = new Harness({ layout, kernel: new FakeKernel(text) });
  await harness.sync(WORLD_4, ...lines);
  for (const table of ['mangle', 'nat', 'filter'] as const) {
    harness.kernel.tamper(table, ':KUBE-PROXY-CANARY - [0:0]');
  }
  return harness.kernel;
}

describe.each(LAYOUT_NAMES)('layout %s', (layout) => {
  test.each([
    ['nobody else', EMPTY],
    ['a firewall and docker', FOREIGN],
    ['kubelet', KUBELET],
  ])('beside %s the state is what it was', async (_, text) => {
    const kernel = await started(layout, text);
    const plan = await cleanup(kernel);
    expect(kernel.text).toBe(new FakeKernel(text).text);
    expect(plan.kept).toEqual([]);
  });

  test('both layouts at once, after a switch that never ended', async () => {
    const kernel = await started(layout, FOREIGN);
    const other = new Harness({ layout: layout === 'current' ? 'classic' : 'current', kernel });
    let left = 3;
    kernel.fault = () => (left-- > 0 ? undefined : new Error('killed'));
    await expect(other.sync(WORLD_4)).rejects.toThrow('killed');
    kernel.fault = () => undefined;
    await cleanup(kernel);
    expect(kernel.text).toBe(new FakeKernel(FOREIGN).text);
  });

  test('a second time there is nothing to do', async () => {
    const kernel = await started(layout, FOREIGN);
    await cleanup(kernel);
    expect(planCleanup(kernel.tables)).toEqual({ steps: [], chains: [], rules: [], kept: [] });
  });

  test('more chains than one restore should have', async () => {
    const many = Array.from({ length: 400 }, (_, n) => [
      `x/s${n} 10.97.${n >> 8}.${n & 255} 80@${20000 + n} etp=Local lb=198.18.${n >> 8}.${n & 255}`,
      `x/s${n}-1 of s${n} 80 | 10.244.${n >> 8}.${n & 255} node-a`,
    ]).flat();
    const kernel = await started(layout, FOREIGN, ...many);
    await cleanup(kernel);
    expect(kernel.text).toBe(new FakeKernel(FOREIGN).text);
    const sizes = kernel.restores.map(
      ({ text }) => text.split('\n').filter((line) => line.startsWith(':')).length,
    );
    expect(Math.max(...sizes)).toBeLessThanOrEqual(500);
  });

  test('a jump that is there twice goes twice', async () => {
    const kernel = await started(layout, EMPTY);
    const [jump = ''] = kernel.rulesOf('nat', 'PREROUTING');
    kernel.tamper('nat', `-A PREROUTING ${jump}`);
    await cleanup(kernel);
    expect(kernel.text).toBe(new FakeKernel(EMPTY).text);
  });
});

describe('what others use', () => {
  test.each(['-j', '-g'])('a chain that they call (%s) stays, empty', async (call) => {
    const kernel = await started('current', FOREIGN);
    kernel.tamper('nat', `-A CNI-HOSTPORT-SETMARK ${call} KUBE-MARK-MASQ`);
    const plan = await cleanup(kernel);
    expect(plan.kept).toEqual([{ table: 'nat', chain: 'KUBE-MARK-MASQ' }]);
    expect(kernel.rulesOf('nat', 'CNI-HOSTPORT-SETMARK').at(-1)).toBe(`${call} KUBE-MARK-MASQ`);
    expect(kernel.chains('nat').filter((chain) => chain.startsWith('KUBE-'))).toEqual(['KUBE-MARK-MASQ']);
    expect(kernel.rulesOf('nat', 'KUBE-MARK-MASQ')).toEqual([]);
  });

  test('their own jump from a built-in chain is not ours', async () => {
    const kernel = await started('current', EMPTY);
    kernel.tamper('nat', '-A PREROUTING -i eth7 -j KUBE-SERVICES');
    const plan = await cleanup(kernel);
    expect(plan.kept).toEqual([{ table: 'nat', chain: 'KUBE-SERVICES' }]);
    expect(kernel.rulesOf('nat', 'PREROUTING')).toEqual(['-i eth7 -j KUBE-SERVICES']);
  });

  test('their rules in KUBE-FIREWALL keep that chain, without ours', async () => {
    const kernel = await started('classic', EMPTY);
    kernel.tamper('filter', '-A KUBE-FIREWALL -s 6.6.6.6 -j DROP');
    await cleanup(kernel);
    expect(kernel.rulesOf('filter', 'KUBE-FIREWALL')).toEqual(['-s 6.6.6.6 -j DROP']);
    expect(kernel.rulesOf('filter', 'INPUT')).toEqual(['-j KUBE-FIREWALL']);
  });

  test('chains that only look like ours', async () => {
    const text = EMPTY.replace(
      ':POSTROUTING ACCEPT [0:0]\nCOMMIT\n*mangle',
      ':POSTROUTING ACCEPT [0:0]\n:KUBE-SVC-MINE - [0:0]\n:KUBE-ROUTER - [0:0]\n:KUBE-IPTABLES-HINT - [0:0]\nCOMMIT\n*mangle',
    );
    const kernel = await started('current', text);
    await cleanup(kernel);
    expect(kernel.text).toBe(new FakeKernel(text).text);
  });
});

test('what kube-proxy left is ours too', async () => {
  const svc = chainName('SVC', 'default/kubernetes:https');
  const sep = chainName('SEP', 'default/kubernetes:https', '192.168.0.1:6443');
  const kernel = new FakeKernel(EMPTY);
  kernel.tamper(
    'nat',
    ':KUBE-SERVICES - [0:0]',
    `:${svc} - [0:0]`,
    `:${sep} - [0:0]`,
    '-I PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES',
    `-A KUBE-SERVICES -d 10.96.0.1/32 -p tcp -m comment --comment "default/kubernetes:https cluster IP" -m tcp --dport 443 -j ${svc}`,
    `-A ${svc} -m comment --comment "default/kubernetes:https -> 192.168.0.1:6443" -j ${sep}`,
  );
  await cleanup(kernel);
  expect(kernel.text).toBe(new FakeKernel(EMPTY).text);
});

test('a node on which nothing is ours', () => {
  expect(planCleanup(new FakeKernel(FOREIGN).tables).steps).toEqual([]);
  expect(planCleanup(new Map()).steps).toEqual([]);
});

test('it says what goes', async () => {
  const kernel = await started('current', EMPTY);
  const plan = planCleanup(kernel.tables);
  expect(plan.chains).toContainEqual({ table: 'nat', chain: 'KUBE-SERVICES' });
  expect(plan.chains).toContainEqual({ table: 'mangle', chain: 'KUBE-PROXY-CANARY' });
  expect(plan.rules).toContainEqual({
    table: 'nat',
    rule: 'POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING',
  });
});

/** Everything that is ours goes, known by the kernel's state alone, and nothing else does. */
import { describe, expect, test } from 'vitest';
import { IptablesRules } from '../../../../src/modes/iptables/reconcile.ts';
import { type CleanupScope, planCleanup } from '../../../../src/modes/iptables/rules/cleanup.ts';
import type { LayoutName } from '../../../../src/modes/iptables/rules/fragment.ts';
import { LAYOUT_NAMES } from './layoutNames.ts';
import { ipvsLayout } from '../../../../src/modes/ipvs/rules/rules.ts';
import { VIEW } from '../../../plan/given.ts';
import { EMPTY, FakeKernel } from './fakeKernel.ts';
import { FOREIGN, KUBELET } from './foreign.ts';
import { WORLD_4 } from './goldenCluster.ts';
import { chainName, Harness, OPTIONS } from './harness.ts';

const GUARD =
  '-m comment --comment "block incoming localnet connections" -d 127.0.0.0/8 ! -s 127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP';
const OFF = { routesLocalnet: false };
const ON = { routesLocalnet: true };

async function cleanup(
  kernel: FakeKernel,
  options: CleanupScope = OFF,
): Promise<ReturnType<typeof planCleanup>> {
  const plan = planCleanup(kernel.tables, options);
  kernel.forget();
  for (const step of plan.steps) await kernel.commit(step);
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

  test('each table in one transaction: nobody can jump to a chain before it goes', async () => {
    const kernel = await started(layout, FOREIGN);
    const { steps } = planCleanup(kernel.tables, OFF);
    expect(steps.map(({ table }) => table)).toEqual(['filter', 'nat', 'mangle']);
  });

  test('in many steps where a table has more chains than fit: jumps first', async () => {
    const kernel = await started(layout, FOREIGN);
    const plan = await cleanup(kernel, { ...OFF, chainsPerRestore: 3 });
    expect(plan.steps.length).toBeGreaterThan(6);
    expect(kernel.text).toBe(new FakeKernel(FOREIGN).text);
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
    expect(planCleanup(kernel.tables, OFF)).toEqual({ steps: [], chains: [], rules: [], kept: [] });
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
    expect(plan.kept).toEqual([{ table: 'nat', chain: 'KUBE-MARK-MASQ', reason: 'called' }]);
    expect(kernel.rulesOf('nat', 'CNI-HOSTPORT-SETMARK').at(-1)).toBe(`${call} KUBE-MARK-MASQ`);
    expect(kernel.chains('nat').filter((chain) => chain.startsWith('KUBE-'))).toEqual(['KUBE-MARK-MASQ']);
    expect(kernel.rulesOf('nat', 'KUBE-MARK-MASQ')).toEqual([]);
  });

  test('their own jump from a built-in chain is not ours', async () => {
    const kernel = await started('current', EMPTY);
    kernel.tamper('nat', '-A PREROUTING -i eth7 -j KUBE-SERVICES');
    const plan = await cleanup(kernel);
    expect(plan.kept).toEqual([{ table: 'nat', chain: 'KUBE-SERVICES', reason: 'called' }]);
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

describe('while route_localnet is on', () => {
  test.each(LAYOUT_NAMES)('the guard of 127.0.0.0/8 stays, and the way to it: layout %s', async (layout) => {
    const kernel = await started(layout, EMPTY);
    const plan = await cleanup(kernel, ON);
    expect(kernel.rulesOf('filter', 'KUBE-FIREWALL')).toEqual([GUARD]);
    expect(kernel.rulesOf('filter', 'INPUT')).toEqual(['-j KUBE-FIREWALL']);
    expect(kernel.rulesOf('filter', 'OUTPUT')).toEqual(['-j KUBE-FIREWALL']);
    expect(kernel.rulesOf('filter', 'FORWARD')).toEqual([]);
    expect(plan.kept).toEqual([{ table: 'filter', chain: 'KUBE-FIREWALL', reason: 'routeLocalnet' }]);
    expect(planCleanup(kernel.tables, ON).steps).toEqual([]);
    await cleanup(kernel, OFF);
    expect(kernel.text).toBe(new FakeKernel(EMPTY).text);
  });

  test('no step of a clean-up goes without it', async () => {
    const kernel = await started('classic', EMPTY);
    for (const step of planCleanup(kernel.tables, ON).steps) {
      await kernel.commit(step);
      expect(kernel.rulesOf('filter', 'KUBE-FIREWALL')).toContain(GUARD);
      expect(kernel.rulesOf('filter', 'INPUT')).toContain('-j KUBE-FIREWALL');
    }
  });

  test('a KUBE-FIREWALL without the guard goes', async () => {
    const view = { ...VIEW, nodePorts: { ...VIEW.nodePorts, loopback: false } };
    const harness = new Harness({ kernel: new FakeKernel(EMPTY), view });
    await harness.sync('a/b 10.96.0.1 80', 'a/b-1 of b 80 | 10.244.0.1');
    const plan = await cleanup(harness.kernel, ON);
    expect(plan.kept).toEqual([]);
    expect(harness.kernel.text).toBe(new FakeKernel(EMPTY).text);
  });
});

describe('of one mode', () => {
  /** Another program runs in the ipvs mode, and chains of a former iptables mode are still here; or the reverse. */
  async function both(last: 'iptables' | 'ipvs'): Promise<FakeKernel> {
    const kernel = await started('current', EMPTY);
    const rules = new IptablesRules(ipvsLayout, kernel, { now: () => 0 });
    const { planner } = new Harness().cluster;
    // Killed before it could delete what nobody needs.
    kernel.fault = ({ text }) => (text.includes('-X KUBE-') ? new Error('killed') : undefined);
    await rules.sync(planner, [], { ...OPTIONS, filledSets: ['clusterIP'] }).catch(() => undefined);
    if (last === 'iptables') await new Harness({ kernel }).sync(WORLD_4).catch(() => undefined);
    kernel.fault = () => undefined;
    return kernel;
  }
  const names = (kernel: FakeKernel): readonly string[] => [
    ...kernel.chains('nat'),
    ...kernel.chains('filter'),
  ];

  test('iptables, beside an ipvs mode: what that uses stays', async () => {
    const kernel = await both('ipvs');
    const before = kernel.rulesOf('nat', 'KUBE-SERVICES');
    expect(names(kernel).some((chain) => chain.startsWith('KUBE-SVC-'))).toBe(true);
    await cleanup(kernel, { ...OFF, mode: 'iptables' });
    expect(names(kernel).filter((chain) => /KUBE-(?:S[VE][CLP]|EXT|FW|NODEPORTS)/.test(chain))).toEqual([]);
    expect(kernel.rulesOf('nat', 'KUBE-SERVICES')).toEqual(before);
    expect(kernel.rulesOf('nat', 'PREROUTING').join()).toContain('-j KUBE-SERVICES');
    expect(kernel.rulesOf('filter', 'FORWARD').join()).toContain('-j KUBE-FORWARD');
    expect(names(kernel)).toContain('KUBE-IPVS-FILTER');
  });

  test('ipvs, beside an iptables mode: what that uses stays', async () => {
    const kernel = await both('iptables');
    const before = kernel.rulesOf('nat', 'KUBE-SERVICES');
    await cleanup(kernel, { ...OFF, mode: 'ipvs' });
    expect(
      names(kernel).filter((chain) => /IPVS|NODE-PORT$|SOURCE-RANGES|LOAD-BALANCER/.test(chain)),
    ).toEqual([]);
    expect(kernel.rulesOf('nat', 'KUBE-SERVICES')).toEqual(before);
    expect(names(kernel)).toContain('KUBE-FIREWALL');
    expect(kernel.rulesOf('filter', 'INPUT')).toContain('-j KUBE-FIREWALL');
  });

  test.each(LAYOUT_NAMES)('iptables alone: everything, layout %s', async (layout) => {
    const kernel = await started(layout, FOREIGN);
    await cleanup(kernel, { ...OFF, mode: 'iptables' });
    expect(kernel.text).toBe(new FakeKernel(FOREIGN).text);
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
  expect(planCleanup(new FakeKernel(FOREIGN).tables, OFF).steps).toEqual([]);
  expect(planCleanup(new Map(), OFF).steps).toEqual([]);
});

test('it says what goes', async () => {
  const kernel = await started('current', EMPTY);
  const plan = planCleanup(kernel.tables, OFF);
  expect(plan.chains).toContainEqual({ table: 'nat', chain: 'KUBE-SERVICES' });
  expect(plan.chains).toContainEqual({ table: 'mangle', chain: 'KUBE-PROXY-CANARY' });
  expect(plan.rules).toContainEqual({
    table: 'nat',
    rule: 'POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING',
  });
});

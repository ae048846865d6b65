/** The guard of 127.0.0.0/8: written by itself before anything else, and never taken out by a sync. */
import { describe, expect, test } from 'vitest';
import { LAYOUTS } from '../../../../src/modes/iptables/rules/layouts/index.ts';
import { LAYOUT_NAMES } from './layoutNames.ts';
import { guardStep } from '../../../../src/modes/iptables/rules/chainEdits.ts';
import { IptablesRules } from '../../../../src/modes/iptables/reconcile.ts';
import { ipvsLayout } from '../../../../src/modes/ipvs/rules/rules.ts';
import { VIEW } from '../../../plan/given.ts';
import { EMPTY, FakeKernel } from './fakeKernel.ts';
import { KUBELET } from './foreign.ts';
import { Harness, OPTIONS } from './harness.ts';

const WORLD = ['a/b 10.96.0.1 80@30080', 'a/b-1 of b 80 | 10.244.0.1'];

function isGuarded(kernel: FakeKernel): boolean {
  return (
    kernel.rulesOf('filter', 'INPUT').includes('-j KUBE-FIREWALL') &&
    kernel.rulesOf('filter', 'KUBE-FIREWALL').some((rule) => rule.includes('block incoming localnet'))
  );
}

describe.each(LAYOUT_NAMES)('layout %s', (name) => {
  const layout = LAYOUTS[name];

  test('is written by itself, once, and a sync adds nothing to it', async () => {
    const kernel = new FakeKernel(EMPTY);
    const step = guardStep(kernel.tables, layout);
    if (step) await kernel.commit(step);
    expect(isGuarded(kernel)).toBe(true);
    expect(guardStep(kernel.tables, layout)).toBeUndefined();
    await new Harness({ layout: name, kernel }).sync(...WORLD);
    const rules = kernel.rulesOf('filter', 'KUBE-FIREWALL');
    expect(rules.filter((rule) => rule.includes('localnet'))).toHaveLength(1);
    expect(kernel.rulesOf('filter', 'INPUT').filter((rule) => rule === '-j KUBE-FIREWALL')).toHaveLength(1);
  });

  test('stays when localhost node ports are turned off', async () => {
    const before = new Harness({ layout: name });
    await before.sync(...WORLD);
    const view = { ...VIEW, nodePorts: { ...VIEW.nodePorts, loopback: false } };
    const after = new Harness({ layout: name, kernel: before.kernel, view });
    await after.sync(...WORLD);
    expect(isGuarded(after.kernel)).toBe(true);
  });

  test('stays in the ipvs mode', async () => {
    const before = new Harness({ layout: name });
    await before.sync(...WORLD);
    const { kernel, cluster } = before;
    const rules = new IptablesRules(ipvsLayout, kernel, { now: () => 0 });
    await rules.sync(cluster.planner, [], { ...OPTIONS, filledSets: ['clusterIP'] });
    expect(kernel.chains('nat')).toContain('KUBE-LOAD-BALANCER');
    expect(isGuarded(kernel)).toBe(true);
  });
});

test('kubelet has it already', () => {
  expect(guardStep(new FakeKernel(KUBELET).tables, LAYOUTS.current)).toBeUndefined();
});

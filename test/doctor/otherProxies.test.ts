import { expect, test } from 'vitest';
import { checkOtherProxies } from '../../src/doctor/otherProxies.ts';
import type { ModeName } from '../../src/model/mode.ts';
import { codesOf, type FakeMachine, fakeMachine, groupOf } from './fakeMachine.ts';

const table = (name: string): FakeMachine => ({ tables: [{ family: 'ip', table: name, objects: 7 }] });
const KUBE_PROXY = { processes: { 'kube-proxy': ['pid 7 (kube-proxy --config=x)'] } };
const DEVICE = { links: [{ index: 9, name: 'kube-ipvs0', kind: 'dummy', isUp: false, addresses: [] }] };

test.each<readonly [ModeName, FakeMachine, string, string]>([
  ['nftables', table('junction'), '', ''],
  ['nftables', KUBE_PROXY, 'error kube-proxy-running', 'kubectl label node node1 service-proxy=junction'],
  ['nftables', table('kube-proxy'), 'warning stale-table', 'nft delete table ip kube-proxy'],
  ['iptables', table('junction'), 'warning stale-table', 'junction cleanup --mode nftables'],
  ['nftables', { staleChains: 12 }, 'warning stale-iptables-rules', 'iptables'],
  ['iptables', { staleChains: 12 }, '', ''],
  ['nftables', DEVICE, 'warning stale-ipvs-device', 'junction cleanup --mode ipvs'],
  ['ipvs', DEVICE, '', ''],
])('beside %s mode: %j', async (mode, fake, code, cure) => {
  const group = await groupOf((each) => checkOtherProxies(each, fakeMachine(fake), mode, 'node1'));
  expect(codesOf(group).join()).toBe(code);
  expect(group.findings[0]?.cure ?? '').toContain(cure);
  if (fake === KUBE_PROXY) expect(group.findings[0]?.evidence).toBe('pid 7 (kube-proxy --config=x)');
});

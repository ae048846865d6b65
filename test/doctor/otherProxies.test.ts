import { describe, expect, test } from 'vitest';
import { checkOtherProxies } from '../../src/doctor/otherProxies.ts';
import type { ModeName } from '../../src/model/mode.ts';
import { codesOf, type FakeMachine, fakeMachine, groupOf } from './fakeMachine.ts';

const look = (mode: ModeName, fake: FakeMachine) =>
  groupOf((group) => checkOtherProxies(group, fakeMachine(fake), mode, 'node1'));
const table = (name: string) => ({ family: 'ip', table: name, objects: 7 }) as const;

describe('other proxies', () => {
  test.each(['iptables', 'ipvs', 'nftables'] as const)('none, beside %s mode', async (mode) => {
    expect(codesOf(await look(mode, {}))).toEqual([]);
  });

  test('kube-proxy runs, and its table is there', async () => {
    const group = await look('nftables', {
      processes: { 'kube-proxy': ['pid 7 (kube-proxy --config=x)'] },
      tables: [table('kube-proxy'), table('junction')],
    });
    expect(codesOf(group)).toEqual(['error kube-proxy-running', 'warning stale-table']);
    expect(group.findings[0]?.evidence).toBe('pid 7 (kube-proxy --config=x)');
    expect(group.findings[0]?.cure).toContain('kubectl label node node1 service-proxy=junction');
    expect(group.findings[1]?.cure).toContain('nft delete table ip kube-proxy');
  });

  test('our own table beside another mode', async () => {
    const group = await look('iptables', { tables: [table('junction')] });
    expect(codesOf(group)).toEqual(['warning stale-table']);
    expect(group.findings[0]?.cure).toBe('junction cleanup --mode nftables');
  });

  test('rules of iptables beside nftables mode, and not beside their own', async () => {
    expect(codesOf(await look('nftables', { staleChains: 12 }))).toEqual(['warning stale-iptables-rules']);
    expect(codesOf(await look('iptables', { staleChains: 12 }))).toEqual([]);
  });

  test('the device of IPVS', async () => {
    const links = [{ index: 9, name: 'kube-ipvs0', kind: 'dummy', isUp: false, addresses: [] }];
    expect(codesOf(await look('nftables', { links }))).toEqual(['warning stale-ipvs-device']);
    expect(codesOf(await look('ipvs', { links }))).toEqual([]);
  });
});

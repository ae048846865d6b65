import { expect, test } from 'vitest';
import { toSettings } from '../../src/config/settings.ts';
import { nodeView, type ViewSettings } from '../../src/plan/view.ts';
import { fromFlags, valid } from './given.ts';

function settings(...argv: readonly string[]): ViewSettings {
  return toSettings(valid(fromFlags(...argv)), 'node1');
}

test('the defaults', () => {
  expect(settings()).toMatchObject({
    nodeName: 'node1',
    bindAddress: '0.0.0.0',
    detectLocal: { mode: 'ClusterCIDR', cidrs: [] },
    masqueradeAll: false,
    nodePortAddresses: [],
    localhostNodePorts: true,
    bindsAddresses: false,
  });
  expect(nodeView(settings(), undefined, 'IPv4').nodeIp).toBe('127.0.0.1');
});

test.each<[readonly string[], Partial<Record<keyof ViewSettings, unknown>>]>([
  [['--bind-address=010.0.0.1'], { bindAddress: '10.0.0.1' }],
  [
    ['--cluster-cidr=10.1.2.3/8,FD00::/8'],
    { detectLocal: { mode: 'ClusterCIDR', cidrs: ['10.0.0.0/8', 'fd00::/8'] } },
  ],
  [['--detect-local-mode=NodeCIDR'], { detectLocal: { mode: 'NodeCIDR' } }],
  [
    ['--detect-local-mode=BridgeInterface', '--pod-bridge-interface=cni0'],
    { detectLocal: { mode: 'BridgeInterface', name: 'cni0' } },
  ],
  [
    ['--detect-local-mode=InterfaceNamePrefix', '--pod-interface-name-prefix=veth'],
    { detectLocal: { mode: 'InterfaceNamePrefix', prefix: 'veth' } },
  ],
  [['--masquerade-all'], { masqueradeAll: true }],
  [['--nodeport-addresses=192.0.2.1/24'], { nodePortAddresses: ['192.0.2.0/24'] }],
  [['--proxy-mode=nftables'], { nodePortAddresses: 'primary', localhostNodePorts: false }],
  [['--proxy-mode=ipvs'], { nodePortAddresses: [], localhostNodePorts: false }],
  [['--iptables-localhost-nodeports=false'], { localhostNodePorts: false }],
])('%j', (argv, expected) => {
  expect(settings(...argv)).toMatchObject(expected);
});

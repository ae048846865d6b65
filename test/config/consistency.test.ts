import { expect, test } from 'vitest';
import { consistencyWarnings, localhostRanges, type NodeFacts } from '../../src/config/consistency.ts';
import { fromFile } from './given.ts';

const V4: NodeFacts = { primaryFamily: 'IPv4', dualStack: false, podCIDRs: [] };
const V6: NodeFacts = { primaryFamily: 'IPv6', dualStack: false, podCIDRs: [] };
const BOTH: NodeFacts = { ...V4, dualStack: true };

const UNSET =
  'nodePortAddresses is unset; NodePort connections will be accepted on all local IPs. Consider using `--nodeport-addresses primary`';
const ONLY_V4 =
  'cluster appears to be dual-stack but nodePortAddresses contains only IPv4 addresses; NodePort connections will be accepted on all local IPv6 IPs';
const ONLY_V6 =
  'cluster appears to be IPv4-primary but nodePortAddresses contains only IPv6 addresses; NodePort connections will be accepted on all local IPv4 IPs';

const quiet = { nodePortAddresses: ['primary'] };

test.each<[object, NodeFacts, ...(readonly [string, boolean])[]]>([
  [{}, V4, [UNSET, false]],
  [quiet, V4],
  // The default of this mode is the primary address.
  [{ mode: 'nftables' }, V4],
  [{ mode: 'nftables' }, { ...BOTH, podCIDRs: ['10.0.0.0/24', 'fd00::/64'] }],
  [{ nodePortAddresses: ['10.0.0.0/8'], clusterCIDR: '10.0.0.0/8,fd00::/8' }, BOTH, [ONLY_V4, false]],
  [
    { nodePortAddresses: ['10.0.0.0/8'] },
    { ...BOTH, podCIDRs: ['10.0.0.0/24', 'fd00::/64'] },
    [ONLY_V4, false],
  ],
  [{ nodePortAddresses: ['fd00::/8'] }, BOTH, [ONLY_V6, false]],
  [{ nodePortAddresses: ['10.0.0.0/8', 'fd00::/8'] }, BOTH],
  [
    { ...quiet, clusterCIDR: 'fd00::/8' },
    V4,
    ['cluster is IPv4-only but clusterCIDRs contains only IPv6 addresses', true],
  ],
  [
    { ...quiet, clusterCIDR: 'fd00::/8' },
    BOTH,
    ['cluster is IPv4-primary but clusterCIDRs contains only IPv6 addresses', false],
  ],
  [
    { ...quiet, clusterCIDR: 'fd00::/8', detectLocalMode: 'NodeCIDR' },
    V4,
    ['cluster is IPv4-only but clusterCIDRs contains only IPv6 addresses', false],
  ],
  [
    { ...quiet, detectLocalMode: 'NodeCIDR' },
    { ...BOTH, podCIDRs: ['fd00::/64'] },
    ['cluster is IPv4-primary but node.spec.podCIDRs contains only IPv6 addresses', true],
  ],
  [
    quiet,
    { ...V6, dualStack: true, podCIDRs: ['10.0.0.0/24'] },
    ['cluster is IPv6-primary but node.spec.podCIDRs contains only IPv4 addresses', false],
  ],
  [
    { ...quiet, winkernel: { sourceVip: 'fd00::1' } },
    BOTH,
    ['cluster is IPv4-primary but winkernel.sourceVip is IPv6', false],
  ],
  [
    { ...quiet, ipvs: { excludeCIDRs: ['fd00::/8'] } },
    V4,
    ['cluster is IPv4-only but ipvs.excludeCIDRs contains only IPv6 addresses', false],
  ],
  [{ ...quiet, ipvs: { excludeCIDRs: ['fd00::/8'] } }, BOTH],
  [
    { ...quiet, healthzBindAddress: '[fd00::1]:80', metricsBindAddress: '[::]:81' },
    V4,
    ['cluster is IPv4-only but healthzBindAddress is IPv6', false],
  ],
  [quiet, V6, ['cluster is IPv6-only but metricsBindAddress is IPv4', false]],
])('%j on %j', (fields, facts, ...expected) => {
  expect(consistencyWarnings(fromFile(fields), facts)).toEqual(
    expected.map(([message, fatal]) => ({ message, fatal })),
  );
});

test.each<[string, readonly string[], readonly string[]]>([
  ['nftables', ['primary'], []],
  ['nftables', ['10.0.0.0/8', 'fd00::/8'], []],
  ['nftables', ['10.0.0.0/8', '127.0.0.0/8', '::1/128'], ['127.0.0.0/8', '::1/128']],
  ['nftables', ['127.0.0.5/32', '64.0.0.0/2'], ['127.0.0.5/32', '64.0.0.0/2']],
  // "Everywhere" was never meant to include it.
  ['nftables', ['0.0.0.0/0', '::/0', '127.0.0.0/8'], []],
  ['nftables', ['0.0.0.0/0', '::1/128'], ['::1/128']],
  ['iptables', ['127.0.0.0/8'], []],
])('localhost in the %s mode, of %j', (mode, nodePortAddresses, expected) => {
  expect(localhostRanges(fromFile({ mode, nodePortAddresses }))).toEqual(expected);
});

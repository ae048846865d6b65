import { expect, test } from 'vitest';
import { consistencyWarnings, type NodeFacts } from '../../src/config/index.ts';
import { type Ip, parseIp } from '../../src/model/ip.ts';
import { fromFile } from './given.ts';

function ips(...texts: readonly string[]): readonly Ip[] {
  return texts.flatMap((text) => parseIp(text) ?? []);
}

const V4: NodeFacts = { primaryFamily: 'IPv4', dualStack: false, nodeIps: ips('192.0.2.1'), podCIDRs: [] };
const V6: NodeFacts = { primaryFamily: 'IPv6', dualStack: false, nodeIps: ips('2001:db8::1'), podCIDRs: [] };
const BOTH: NodeFacts = { ...V4, dualStack: true, nodeIps: ips('192.0.2.1', '2001:db8::1') };

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
  [quiet, BOTH],
  // What the node has no address for cannot be restricted to it.
  [quiet, { ...V4, nodeIps: ips('127.0.0.1', '::1') }, [UNSET, false]],
  [{ nodePortAddresses: ['10.0.0.0/8'] }, V4],
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

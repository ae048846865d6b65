import { describe, expect, test } from 'vitest';
import type { EffectiveConfig } from '../../src/config/effective.ts';
import { gateStates, isGateEnabled } from '../../src/config/featureGates.ts';
import { isValid, validate } from '../../src/config/validate.ts';
import { fromFile, fromFlags } from './given.ts';

const NOT_NEGATIVE = 'must be greater than or equal to 0';
const CIDR_PAIR =
  'must be a either a single CIDR or dual-stack pair of CIDRs (e.g. [10.100.0.0/16, fde4:8dba:82e1::/48]';
const CIDR_BLOCK = 'must be a valid CIDR block (e.g. 10.100.0.0/16 or fde4:8dba:82e1::/48)';
const INTERFACE = 'must be the name of an interface: 1 to 15 letters, digits, or any of _ . : -';
const PREFIX = 'must be the name of an interface: 1 to 14 letters, digits, or any of _ . : -';
const ALPHA = 'Forbidden: Feature LoggingAlphaOptions is disabled';

function withStage(problem: string): string {
  if (problem.startsWith('cannot set feature gate')) return `failed complete: ${problem}`;
  return problem.startsWith('logging.')
    ? `initialize logging: ${problem}`
    : `failed validate: KubeProxyConfiguration.${problem}`;
}

function check(config: EffectiveConfig, problems: readonly string[]): void {
  expect(validate(config)).toEqual(problems.map(withStage));
  expect(isValid(config)).toBe(problems.length === 0);
}

describe('by file', () => {
  test.each<[object, ...string[]]>([
    [
      { iptables: { masqueradeBit: 40 } },
      'KubeProxyIPTablesConfiguration.MasqueradeBit: Invalid value: 40: must be within the range [0, 31]',
    ],
    [
      { iptables: { masqueradeBit: -1 } },
      'KubeProxyIPTablesConfiguration.MasqueradeBit: Invalid value: -1: must be within the range [0, 31]',
    ],
    [{ iptables: { masqueradeBit: 31 } }],
    [{ nftables: { masqueradeBit: 32 } }],
    [
      { mode: 'nftables', nftables: { masqueradeBit: 32 } },
      'KubeProxyNFTablesConfiguration.MasqueradeBit: Invalid value: 32: must be within the range [0, 31]',
    ],
    [
      { mode: 'ipvs', ipvs: { tcpTimeout: '-1s', tcpFinTimeout: '-2s', udpTimeout: '-3s' } },
      `KubeProxyIPVSConfiguration.TCPTimeout: Invalid value: "-1s": ${NOT_NEGATIVE}`,
      `KubeProxyIPVSConfiguration.TCPFinTimeout: Invalid value: "-2s": ${NOT_NEGATIVE}`,
      `KubeProxyIPVSConfiguration.UDPTimeout: Invalid value: "-3s": ${NOT_NEGATIVE}`,
    ],
    [{ mode: 'iptables', ipvs: { tcpTimeout: '-1s', excludeCIDRs: ['x'] } }],
    [
      { mode: 'ipvs', ipvs: { excludeCIDRs: ['10.0.0.0/8', '10.0.0.0'] } },
      'KubeProxyIPVSConfiguration.ExcludeCidrs[1]: Invalid value: "10.0.0.0": must be a valid CIDR',
    ],
    [
      { conntrack: { maxPerCore: -1, min: -2, tcpEstablishedTimeout: '-1s', udpStreamTimeout: '-1m' } },
      `KubeProxyLinuxConfiguration.KubeProxyConntrackConfiguration.MaxPerCore: Invalid value: -1: ${NOT_NEGATIVE}`,
      `KubeProxyLinuxConfiguration.KubeProxyConntrackConfiguration.Min: Invalid value: -2: ${NOT_NEGATIVE}`,
      `KubeProxyLinuxConfiguration.KubeProxyConntrackConfiguration.TCPEstablishedTimeout: Invalid value: "-1s": ${NOT_NEGATIVE}`,
      `KubeProxyLinuxConfiguration.KubeProxyConntrackConfiguration.UDPStreamTimeout: Invalid value: "-1m0s": ${NOT_NEGATIVE}`,
    ],
    [
      { oomScoreAdj: -1001 },
      'KubeProxyLinuxConfiguration.OOMScoreAdj: Invalid value: -1001: must be within the range [-1000, 1000]',
    ],
    [
      { mode: 'userspace' },
      'Mode.ProxyMode: Invalid value: "userspace": must be iptables, ipvs, nftables or blank (blank means the best-available proxy [currently iptables])',
    ],
    [{ clientConnection: { burst: -5 } }, `ClientConnection.Burst: Invalid value: -5: ${NOT_NEGATIVE}`],
    [{ configSyncPeriod: '-1s' }, 'ConfigSyncPeriod: Invalid value: "-1s": must be greater than 0'],
    [
      { iptables: { syncPeriod: '-1s' } },
      'SyncPeriod: Invalid value: "-1s": must be greater than 0',
      'SyncPeriod: Invalid value: "1s": must be greater than or equal to KubeProxyConfiguration.MinSyncPeriod',
    ],
    [{ iptables: { minSyncPeriod: '-1s' } }, `MinSyncPeriod: Invalid value: "-1s": ${NOT_NEGATIVE}`],
    [
      { iptables: { syncPeriod: '5s', minSyncPeriod: '10s' } },
      'SyncPeriod: Invalid value: "10s": must be greater than or equal to KubeProxyConfiguration.MinSyncPeriod',
    ],
    [
      { bindAddress: '10.0.0.1:80', healthzBindAddress: '1.1.1.1:1', metricsBindAddress: '1.1.1.1:1' },
      'BindAddress: Invalid value: "10.0.0.1:80": not a valid textual representation of an IP address',
    ],
    [
      { bindAddress: '[::1]', healthzBindAddress: 'x', metricsBindAddress: 'y:0' },
      'BindAddress: Invalid value: "[::1]": not a valid textual representation of an IP address',
      'HealthzBindAddress: Invalid value: "x": must be IP:port',
      'MetricsBindAddress: Invalid value: "y": must be a valid IP',
      'MetricsBindAddress: Invalid value: "0": must be a valid port',
    ],
    [{ healthzBindAddress: '[fd00::5]' }, 'HealthzBindAddress: Invalid value: "[fd00::5]": must be IP:port'],
    [
      { healthzBindAddress: '1.2.3.4:65536' },
      'HealthzBindAddress: Invalid value: "65536": must be a valid port',
    ],
    [{ nodePortAddresses: ['primary'] }],
    [
      { nodePortAddresses: ['10.0.0.1', '10.0.0.0/8', 'primary', 'x'] },
      'NodePortAddresses[0]: Invalid value: "10.0.0.1": must be a valid CIDR',
      `NodePortAddresses[2]: Invalid value: "primary": can't use both 'primary' and CIDRs`,
    ],
    [{ showHiddenMetricsForVersion: '1.35' }],
    [
      { showHiddenMetricsForVersion: '1.20' },
      `ShowHiddenMetricsForVersion: Invalid value: "1.20": invalid showHiddenMetricsForVersion: showHiddenMetricsForVersion: Invalid value: "1.20": must be omitted or have the value '1.35'; only the previous minor version is allowed`,
    ],
    [
      { detectLocalMode: 'Guess' },
      'DetectLocalMode: Unsupported value: "Guess": supported values: "ClusterCIDR", "NodeCIDR", "BridgeInterface", "InterfaceNamePrefix", ""',
    ],
    [
      { detectLocalMode: 'BridgeInterface' },
      'DetectLocalConfiguration.InterfaceName: Invalid value: "": must not be empty',
    ],
    [
      { detectLocalMode: 'InterfaceNamePrefix' },
      'DetectLocalConfiguration.InterfacePrefix: Invalid value: "": must not be empty',
    ],
    [{ detectLocalMode: 'BridgeInterface', detectLocal: { bridgeInterface: 'cni0.100:1' } }],
    [
      { detectLocalMode: 'BridgeInterface', detectLocal: { bridgeInterface: 'cni0 -j ACCEPT' } },
      `DetectLocalConfiguration.InterfaceName: Invalid value: "cni0 -j ACCEPT": ${INTERFACE}`,
    ],
    [
      { detectLocalMode: 'BridgeInterface', detectLocal: { bridgeInterface: '-j' } },
      `DetectLocalConfiguration.InterfaceName: Invalid value: "-j": ${INTERFACE}`,
    ],
    [
      { detectLocalMode: 'InterfaceNamePrefix', detectLocal: { interfaceNamePrefix: 'veth56789012345' } },
      `DetectLocalConfiguration.InterfacePrefix: Invalid value: "veth56789012345": ${PREFIX}`,
    ],
    [{ detectLocalMode: 'NodeCIDR', clusterCIDR: 'x' }],
    [{ clusterCIDR: '10.0.0.0/8' }],
    [{ clusterCIDR: 'fd00::/8,10.0.0.0/8' }],
    [
      { clusterCIDR: '10.0.0.0' },
      `DetectLocalConfiguration.ClusterCIDRs[0]: Invalid value: "10.0.0.0": ${CIDR_BLOCK}`,
    ],
    [
      { clusterCIDR: '10.0.0.0/8, fd00::/8' },
      `DetectLocalConfiguration.ClusterCIDRs[1]: Invalid value: " fd00::/8": ${CIDR_BLOCK}`,
    ],
    [
      { clusterCIDR: '10.0.0.0/8,11.0.0.0/8' },
      `DetectLocalConfiguration.ClusterCIDRs: Invalid value: ["10.0.0.0/8","11.0.0.0/8"]: ${CIDR_PAIR}`,
    ],
    [
      { clusterCIDR: '10.0.0.0/8,fd00::/8,11.0.0.0/8' },
      `DetectLocalConfiguration.ClusterCIDRs: Invalid value: ["10.0.0.0/8","fd00::/8","11.0.0.0/8"]: ${CIDR_PAIR}`,
    ],
    [{ featureGates: { AllowServiceExternalIPs: false, MultiCIDRServiceAllocator: true } }],
    [{ featureGates: { KubeletInUserNamespace: true, AllAlpha: false } }],
    [
      { featureGates: { PreferSameTrafficDistribution: false } },
      'cannot set feature gate PreferSameTrafficDistribution to false, feature is locked to true',
    ],
    [{ logging: { format: 'json' } }],
    [{ logging: { format: 'xml' } }, 'logging.format: Invalid value: "xml": Unsupported log format'],
    [
      { logging: { format: 'json' }, featureGates: { LoggingBetaOptions: false } },
      'logging.format: Forbidden: Log format json is disabled, see LoggingBetaOptions feature',
    ],
    [
      { logging: { format: 'json', vmodule: [{ filePattern: 'a=b', verbosity: 1 }, { verbosity: 1 }] } },
      'logging.vmodule: Forbidden: Only supported for text log format',
      'logging.vmodule[0]: Invalid value: "a=b": File pattern must not contain equal sign or comma',
      'logging.vmodule[1]: Required value: File pattern must not be empty',
    ],
    [
      { logging: { verbosity: 4294967295 } },
      'logging.verbosity: Invalid value: 4294967295: Must be <= 2147483647',
    ],
    [
      { logging: { options: { json: { infoBufferSize: '1Ki' } } } },
      `logging.options.json.infoBufferSize: ${ALPHA}`,
    ],
    [
      {
        logging: { options: { json: { infoBufferSize: '1Ki' } } },
        featureGates: { LoggingAlphaOptions: true },
      },
    ],
    [
      { junction: { iptablesLayout: 'modern', iptablesVariant: 'ebpf' } },
      'junction.iptablesLayout: Unsupported value: "modern": supported values: "current", "classic"',
      'junction.iptablesVariant: Unsupported value: "ebpf": supported values: "auto", "nft", "legacy"',
    ],
    [{ junction: { manifests: ['a'] } }],
    [
      { junction: { manifests: ['a', ''] } },
      'junction.manifests: Invalid value: ["a",""]: must not hold an empty name',
    ],
    [
      { junction: { manifests: ['a'] }, clientConnection: { kubeconfig: '/k' } },
      'junction.manifests: Forbidden: may not be set together with clientConnection.kubeconfig: objects come from one source',
    ],
  ])('%j', (fields, ...problems) => {
    check(fromFile(fields), problems);
  });
});

describe('by flags', () => {
  test.each<[readonly string[], ...string[]]>([
    [[]],
    [['--iptables-min-sync-period=0']],
    [['--healthz-port=0']],
    [['--log-text-split-stream'], `logging.options.text.splitStream: ${ALPHA}`],
    [['--metrics-port=0'], 'MetricsBindAddress: Invalid value: "": must be IP:port'],
    [
      ['--iptables-sync-period=0'],
      'SyncPeriod: Invalid value: "0s": must be greater than 0',
      'SyncPeriod: Invalid value: "1s": must be greater than or equal to KubeProxyConfiguration.MinSyncPeriod',
    ],
    [
      ['--manifests=a', '--master=https://x'],
      'junction.manifests: Forbidden: may not be set together with --master: objects come from one source',
    ],
  ])('%j', (argv, ...problems) => {
    check(fromFlags(...argv), problems);
  });
});

test('everything is found at once', () => {
  const config = fromFile({ mode: 'x', oomScoreAdj: 2000, detectLocalMode: 'y', logging: { format: 'z' } });
  expect(validate(config)).toHaveLength(4);
});

test('gates follow their stage when they are not named', () => {
  expect(isGateEnabled({}, 'AllowServiceExternalIPs')).toBe(true);
  expect(isGateEnabled({ AllowServiceExternalIPs: false }, 'AllowServiceExternalIPs')).toBe(false);
  expect(isGateEnabled({ AllBeta: false }, 'ComponentFlagz')).toBe(false);
  expect(isGateEnabled({ AllBeta: false, ComponentFlagz: true }, 'ComponentFlagz')).toBe(true);
  expect(isGateEnabled({ AllAlpha: true }, 'LoggingAlphaOptions')).toBe(true);
  expect(isGateEnabled({ AllBeta: false }, 'AllowServiceExternalIPs')).toBe(true);
});

test('the states of all gates, for the metric', () => {
  const states = gateStates({ AllBeta: false, AllowServiceExternalIPs: false });
  expect(states).toContainEqual({ name: 'AllowServiceExternalIPs', stage: '', enabled: false });
  expect(states).toContainEqual({ name: 'ComponentFlagz', stage: 'BETA', enabled: false });
  expect(states).toContainEqual({ name: 'AllAlpha', stage: 'ALPHA', enabled: false });
  expect(states).toContainEqual({ name: 'MultiCIDRServiceAllocator', stage: '', enabled: true });
});

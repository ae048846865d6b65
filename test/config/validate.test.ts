import { describe, expect, test } from 'vitest';
import type { EffectiveConfig } from '../../src/config/effective.ts';
import { gateStates, isGateEnabled } from '../../src/config/featureGates.ts';
import { isValid, validate } from '../../src/config/validate.ts';
import { fromFile, fromFlags } from './given.ts';

const INTERFACE = 'must be the name of an interface: 1 to 15 letters, digits, or any of _ . : -';
const PREFIX = 'must be the name of an interface: 1 to 14 letters, digits, or any of _ . : -';

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

// What kube-proxy says to the same is in kubeProxyRefusals.yaml; here is what it was not asked, and what Junction alone has.
describe('by file', () => {
  test.each<[object, ...string[]]>([
    [{ iptables: { masqueradeBit: 31 } }],
    [{ mode: 'iptables', ipvs: { tcpTimeout: '-1s', excludeCIDRs: ['x'] } }],
    [
      { bindAddress: '10.0.0.1:80', healthzBindAddress: '1.1.1.1:1', metricsBindAddress: '1.1.1.1:1' },
      'BindAddress: Invalid value: "10.0.0.1:80": not a valid textual representation of an IP address',
    ],
    [{ healthzBindAddress: '[fd00::5]' }, 'HealthzBindAddress: Invalid value: "[fd00::5]": must be IP:port'],
    [{ nodePortAddresses: ['primary'] }],
    [{ showHiddenMetricsForVersion: '1.35' }],
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
    [{ clusterCIDR: 'fd00::/8,10.0.0.0/8' }],
    [{ featureGates: { AllowServiceExternalIPs: false, MultiCIDRServiceAllocator: true } }],
    [{ featureGates: { KubeletInUserNamespace: true, AllAlpha: false } }],
    [
      { featureGates: { PreferSameTrafficDistribution: false } },
      'cannot set feature gate PreferSameTrafficDistribution to false, feature is locked to true',
    ],
    [{ logging: { format: 'json' } }],
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
    [['--metrics-port=0'], 'MetricsBindAddress: Invalid value: "": must be IP:port'],
    [
      ['--manifests=a', '--master=https://x'],
      'junction.manifests: Forbidden: may not be set together with --master: objects come from one source',
    ],
  ])('%j', (argv, ...problems) => {
    check(fromFlags(...argv), problems);
  });
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

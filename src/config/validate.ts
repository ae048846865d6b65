/**
 * Everything that is wrong with a configuration, in the order and the words of kube-proxy. It looks at gates first, then
 * at logging, then at the rest, and ends with the first of these that has a problem; here all are reported.
 */
import { parseCidr, parseIp } from '../model/ip.ts';
import type { EffectiveConfig, ValidConfig } from './effective.ts';
import { gateProblems } from './featureGates.ts';
import { invalid, invalidDuration } from './fieldError.ts';
import { isPort, splitHostPort } from './hostPort.ts';
import { validateJunction } from './validateJunction.ts';
import { LOCAL_TRAFFIC_CHECKS } from './validateLocalTraffic.ts';
import { validateLogging } from './validateLogging.ts';
import { KIND } from './table.ts';

type Check = (config: EffectiveConfig) => readonly string[];

const NOT_NEGATIVE = 'must be greater than or equal to 0';
const POSITIVE = 'must be greater than 0';
const VALID_CIDR = 'must be a valid CIDR';
const MODES: ReadonlySet<string> = new Set(['', 'iptables', 'ipvs', 'nftables']);

/** The minor version before the one that Junction stands in for. */
const PREVIOUS_VERSION = '1.35';

export function validate(config: EffectiveConfig): readonly string[] {
  return [
    ...gateProblems(config.featureGates).map((problem) => `failed complete: ${problem}`),
    ...validateLogging(config).map((problem) => `initialize logging: ${problem}`),
    ...CHECKS.flatMap((check) => check(config)).map((problem) => `failed validate: ${KIND}.${problem}`),
  ];
}

export function isValid(config: EffectiveConfig): config is ValidConfig {
  return validate(config).length === 0;
}

const masqueradeBits: Check = ({ mode, iptables, nftables }) => [
  ...masqueradeBit('KubeProxyIPTablesConfiguration', iptables.masqueradeBit),
  ...(mode === 'nftables' ? masqueradeBit('KubeProxyNFTablesConfiguration', nftables.masqueradeBit) : []),
];

function masqueradeBit(section: string, bit: number): readonly string[] {
  return within(`${section}.MasqueradeBit`, bit, 0, 31);
}

function within(path: string, value: number, least: number, most: number): readonly string[] {
  if (value >= least && value <= most) return [];
  return [invalid(path, value, `must be within the range [${least}, ${most}]`)];
}

const ipvs: Check = ({ mode, ipvs }) => {
  if (mode !== 'ipvs') return [];
  const path = 'KubeProxyIPVSConfiguration';
  return [
    ...durationsNotNegative(path, {
      TCPTimeout: ipvs.tcpTimeout,
      TCPFinTimeout: ipvs.tcpFinTimeout,
      UDPTimeout: ipvs.udpTimeout,
    }),
    ...(ipvs.excludeCIDRs ?? []).flatMap((cidr, index) =>
      parseCidr(cidr) ? [] : [invalid(`${path}.ExcludeCidrs[${index}]`, cidr, VALID_CIDR)],
    ),
  ];
};

function durationsNotNegative(path: string, durations: Readonly<Record<string, number>>): readonly string[] {
  return Object.entries(durations).flatMap(([name, ms]) =>
    ms < 0 ? [invalidDuration(`${path}.${name}`, ms, NOT_NEGATIVE)] : [],
  );
}

const kernelAndProcess: Check = ({ conntrack, oomScoreAdj }) => {
  const path = 'KubeProxyLinuxConfiguration.KubeProxyConntrackConfiguration';
  return [
    ...notNegative(`${path}.MaxPerCore`, conntrack.maxPerCore),
    ...notNegative(`${path}.Min`, conntrack.min),
    ...durationsNotNegative(path, {
      TCPEstablishedTimeout: conntrack.tcpEstablishedTimeout,
      TCPCloseWaitTimeout: conntrack.tcpCloseWaitTimeout,
      UDPTimeout: conntrack.udpTimeout,
      UDPStreamTimeout: conntrack.udpStreamTimeout,
    }),
    ...within('KubeProxyLinuxConfiguration.OOMScoreAdj', oomScoreAdj, -1000, 1000),
  ];
};

function notNegative(path: string, value: number): readonly string[] {
  return value < 0 ? [invalid(path, value, NOT_NEGATIVE)] : [];
}

const mode: Check = ({ mode }) =>
  MODES.has(mode)
    ? []
    : [
        invalid(
          'Mode.ProxyMode',
          mode,
          'must be iptables, ipvs, nftables or blank (blank means the best-available proxy [currently iptables])',
        ),
      ];

const client: Check = ({ clientConnection }) => notNegative('ClientConnection.Burst', clientConnection.burst);

const periods: Check = ({ configSyncPeriod, syncPeriodMs, minSyncPeriodMs }) => [
  ...(configSyncPeriod > 0 ? [] : [invalidDuration('ConfigSyncPeriod', configSyncPeriod, POSITIVE)]),
  ...(syncPeriodMs > 0 ? [] : [invalidDuration('SyncPeriod', syncPeriodMs, POSITIVE)]),
  ...(minSyncPeriodMs < 0 ? [invalidDuration('MinSyncPeriod', minSyncPeriodMs, NOT_NEGATIVE)] : []),
  ...(minSyncPeriodMs > syncPeriodMs
    ? [
        invalidDuration(
          'SyncPeriod',
          minSyncPeriodMs,
          `must be greater than or equal to ${KIND}.MinSyncPeriod`,
        ),
      ]
    : []),
];

const addresses: Check = ({ bindAddress, healthzBindAddress, metricsBindAddress }) => [
  ...(parseIp(bindAddress)
    ? []
    : [invalid('BindAddress', bindAddress, 'not a valid textual representation of an IP address')]),
  ...(healthzBindAddress === '' ? [] : hostPort('HealthzBindAddress', healthzBindAddress)),
  ...hostPort('MetricsBindAddress', metricsBindAddress),
];

function hostPort(path: string, address: string): readonly string[] {
  const parts = splitHostPort(address);
  if ('fault' in parts) return [invalid(path, address, 'must be IP:port')];
  return [
    ...(parseIp(parts.host) ? [] : [invalid(path, parts.host, 'must be a valid IP')]),
    ...(isPort(parts.port) ? [] : [invalid(path, parts.port, 'must be a valid port')]),
  ];
}

const nodePorts: Check = ({ nodePortAddresses }) => {
  const list = nodePortAddresses ?? [];
  const primary = list.indexOf('primary');
  // What follows the misplaced word is not looked at.
  const ranges = primary < 0 ? list : list.slice(0, primary);
  return [
    ...ranges.flatMap((cidr, index) =>
      parseCidr(cidr) ? [] : [invalid(`NodePortAddresses[${index}]`, cidr, VALID_CIDR)],
    ),
    ...(primary >= 0 && list.length > 1
      ? [invalid(`NodePortAddresses[${primary}]`, 'primary', "can't use both 'primary' and CIDRs")]
      : []),
  ];
};

const HIDDEN = 'showHiddenMetricsForVersion';

const hiddenMetrics: Check = ({ showHiddenMetricsForVersion: version }) =>
  version === '' || version === PREVIOUS_VERSION
    ? []
    : [
        invalid(
          'ShowHiddenMetricsForVersion',
          version,
          `invalid ${HIDDEN}: ${invalid(HIDDEN, version, `must be omitted or have the value '${PREVIOUS_VERSION}'; only the previous minor version is allowed`)}`,
        ),
      ];

const CHECKS: readonly Check[] = [
  masqueradeBits,
  ipvs,
  kernelAndProcess,
  mode,
  client,
  periods,
  addresses,
  nodePorts,
  hiddenMetrics,
  ...LOCAL_TRAFFIC_CHECKS,
  validateJunction,
];

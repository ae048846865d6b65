/**
 * Everything that is wrong with a configuration, in the order and the words of kube-proxy. It looks at gates first, then
 * at logging, then at the rest, and ends with the first of these that has a problem; here all are reported.
 */
import { familyOf, parseCidr, parseIp } from '../model/ip.ts';
import { MODE_NAMES } from '../model/mode.ts';
import { type EffectiveConfig, toFields, type ValidConfig } from './effective.ts';
import { gateProblems, isGateEnabled } from './featureGates.ts';
import { isPort, printDuration, splitAddress } from './goFormats.ts';
import { FLUSH_DURATION, flushMilliseconds, quantityValue } from './scalarKinds.ts';
import { CONFIG_FIELDS, KIND, valueAt } from './table.ts';

type Check = (config: EffectiveConfig) => readonly string[];

export function validate(config: EffectiveConfig): readonly string[] {
  return [
    ...gateProblems(config.featureGates).map((problem) => `failed complete: ${problem}`),
    ...logging(config).map((problem) => `initialize logging: ${problem}`),
    ...CHECKS.flatMap((check) => check(config)).map((problem) => `failed validate: ${KIND}.${problem}`),
  ];
}

export function isValid(config: EffectiveConfig): config is ValidConfig {
  return validate(config).length === 0;
}

/** In the shape that Kubernetes gives them: `path: Invalid value: value: what is wrong`, with the value as JSON. */
function invalid(path: string, value: string | number | readonly string[], detail: string): string {
  return `${path}: Invalid value: ${JSON.stringify(value)}: ${detail}`;
}

/** Durations are shown as the text that a file has. */
function invalidDuration(path: string, ms: number, detail: string): string {
  return invalid(path, printDuration(ms), detail);
}

function unsupported(path: string, value: string, supported: readonly string[]): string {
  const values = supported.map((other) => JSON.stringify(other)).join(', ');
  return `${path}: Unsupported value: ${JSON.stringify(value)}: supported values: ${values}`;
}

function forbidden(path: string, detail: string): string {
  return `${path}: Forbidden: ${detail}`;
}

const NOT_NEGATIVE = 'must be greater than or equal to 0';
const POSITIVE = 'must be greater than 0';

function notNegative(path: string, value: number): readonly string[] {
  return value < 0 ? [invalid(path, value, NOT_NEGATIVE)] : [];
}

function durationsNotNegative(path: string, durations: Readonly<Record<string, number>>): readonly string[] {
  return Object.entries(durations).flatMap(([name, ms]) =>
    ms < 0 ? [invalidDuration(`${path}.${name}`, ms, NOT_NEGATIVE)] : [],
  );
}

function within(path: string, value: number, least: number, most: number): readonly string[] {
  if (value >= least && value <= most) return [];
  return [invalid(path, value, `must be within the range [${least}, ${most}]`)];
}

function cidrs(path: string, list: readonly string[], detail = 'must be a valid CIDR'): readonly string[] {
  return list.flatMap((cidr, index) => (parseCidr(cidr) ? [] : [invalid(`${path}[${index}]`, cidr, detail)]));
}

function hostPort(path: string, address: string): readonly string[] {
  const parts = splitAddress(address);
  if ('fault' in parts) return [invalid(path, address, 'must be IP:port')];
  return [
    ...(parseIp(parts.host) ? [] : [invalid(path, parts.host, 'must be a valid IP')]),
    ...(isPort(parts.port) ? [] : [invalid(path, parts.port, 'must be a valid port')]),
  ];
}

const masqueradeBits: Check = ({ mode, iptables, nftables }) => [
  ...within('KubeProxyIPTablesConfiguration.MasqueradeBit', iptables.masqueradeBit, 0, 31),
  ...(mode === 'nftables'
    ? within('KubeProxyNFTablesConfiguration.MasqueradeBit', nftables.masqueradeBit, 0, 31)
    : []),
];

const ipvs: Check = ({ mode, ipvs }) => {
  if (mode !== 'ipvs') return [];
  const path = 'KubeProxyIPVSConfiguration';
  const { tcpTimeout: TCPTimeout, tcpFinTimeout: TCPFinTimeout, udpTimeout: UDPTimeout } = ipvs;
  return [
    ...durationsNotNegative(path, { TCPTimeout, TCPFinTimeout, UDPTimeout }),
    ...cidrs(`${path}.ExcludeCidrs`, ipvs.excludeCIDRs ?? []),
  ];
};

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

const MODE_EXPECTED =
  'must be iptables, ipvs, nftables or blank (blank means the best-available proxy [currently iptables])';

const mode: Check = ({ mode }) =>
  ['', ...MODE_NAMES].includes(mode) ? [] : [invalid('Mode.ProxyMode', mode, MODE_EXPECTED)];

const client: Check = ({ clientConnection }) => notNegative('ClientConnection.Burst', clientConnection.burst);

const periods: Check = ({ configSyncPeriod, syncPeriodMs, minSyncPeriodMs }) => [
  ...(configSyncPeriod > 0 ? [] : [invalidDuration('ConfigSyncPeriod', configSyncPeriod, POSITIVE)]),
  ...(syncPeriodMs > 0 ? [] : [invalidDuration('SyncPeriod', syncPeriodMs, POSITIVE)]),
  ...(minSyncPeriodMs < 0 ? [invalidDuration('MinSyncPeriod', minSyncPeriodMs, NOT_NEGATIVE)] : []),
  ...(minSyncPeriodMs > syncPeriodMs
    ? [invalidDuration('SyncPeriod', minSyncPeriodMs, `${NOT_BELOW} ${KIND}.MinSyncPeriod`)]
    : []),
];

const NOT_BELOW = 'must be greater than or equal to';

const addresses: Check = ({ bindAddress, healthzBindAddress, metricsBindAddress }) => [
  ...(parseIp(bindAddress)
    ? []
    : [invalid('BindAddress', bindAddress, 'not a valid textual representation of an IP address')]),
  ...(healthzBindAddress === '' ? [] : hostPort('HealthzBindAddress', healthzBindAddress)),
  ...hostPort('MetricsBindAddress', metricsBindAddress),
];

const nodePorts: Check = ({ nodePortAddresses }) => {
  const path = 'NodePortAddresses';
  const list = nodePortAddresses ?? [];
  const primary = list.indexOf('primary');
  // What follows the misplaced word is not looked at.
  const bad = cidrs(path, primary < 0 ? list : list.slice(0, primary));
  if (primary < 0 || list.length === 1) return bad;
  return [...bad, invalid(`${path}[${primary}]`, 'primary', "can't use both 'primary' and CIDRs")];
};

/** The minor version before the one that Junction stands in for. */
const PREVIOUS_VERSION = '1.35';

const hiddenMetrics: Check = ({ showHiddenMetricsForVersion: version }) => {
  if (version === '' || version === PREVIOUS_VERSION) return [];
  const name = 'showHiddenMetricsForVersion';
  const detail = `must be omitted or have the value '${PREVIOUS_VERSION}'; only the previous minor version is allowed`;
  return [
    invalid('ShowHiddenMetricsForVersion', version, `invalid ${name}: ${invalid(name, version, detail)}`),
  ];
};

const LOCAL_MODES = ['ClusterCIDR', 'NodeCIDR', 'BridgeInterface', 'InterfaceNamePrefix', ''];

const detectLocalMode: Check = ({ detectLocalMode: mode }) =>
  LOCAL_MODES.includes(mode) ? [] : [unsupported('DetectLocalMode', mode, LOCAL_MODES)];

/** The kernel's names; iptables writes a prefix with a `+`, which counts too. */
const LONGEST_NAME = 15;
const LONGEST_PREFIX = 14;

const detectLocal: Check = ({ detectLocalMode, detectLocal, clusterCIDRs }) => {
  switch (detectLocalMode) {
    case 'BridgeInterface':
      return interfaceName('InterfaceName', detectLocal.bridgeInterface, LONGEST_NAME);
    case 'InterfaceNamePrefix':
      return interfaceName('InterfacePrefix', detectLocal.interfaceNamePrefix, LONGEST_PREFIX);
    case 'ClusterCIDR':
      return podCidrs(clusterCIDRs);
    default:
      return [];
  }
};

/** Interface names end up in rules as they are: nothing that could end a word of a rule, or begin an option. */
const INTERFACE = /^[A-Za-z0-9_.:][A-Za-z0-9_.:-]*$/;

function interfaceName(field: string, name: string, longest: number): readonly string[] {
  const path = `DetectLocalConfiguration.${field}`;
  if (name === '') return [invalid(path, name, 'must not be empty')];
  if (INTERFACE.test(name) && name.length <= longest) return [];
  const allowed = `1 to ${longest} letters, digits, or any of _ . : -`;
  return [invalid(path, name, `must be the name of an interface: ${allowed}`)];
}

const PAIR =
  'must be a either a single CIDR or dual-stack pair of CIDRs (e.g. [10.100.0.0/16, fde4:8dba:82e1::/48]';
const BLOCK = 'must be a valid CIDR block (e.g. 10.100.0.0/16 or fde4:8dba:82e1::/48)';

function podCidrs(list: readonly string[]): readonly string[] {
  const path = 'DetectLocalConfiguration.ClusterCIDRs';
  if (list.length > 2) return [invalid(path, list, PAIR)];
  const bad = cidrs(path, list, BLOCK);
  const families = new Set(list.flatMap((cidr) => parseCidr(cidr) ?? []).map(familyOf));
  return bad.length === 0 && list.length === 2 && families.size === 1 ? [invalid(path, list, PAIR)] : bad;
}

/** Junction's own fields. */
const choices: Check = (config) => {
  const fields = toFields(config);
  return CONFIG_FIELDS.filter(({ path }) => path.startsWith('junction.')).flatMap((field) => {
    const value = field.kind.print(valueAt(fields, field));
    return field.choices?.includes(value) === false ? [unsupported(field.path, value, field.choices)] : [];
  });
};

const sources: Check = ({ junction, clientConnection, master }) => {
  const manifests = junction.manifests ?? [];
  const path = 'junction.manifests';
  if (manifests.includes('')) return [invalid(path, manifests, 'must not hold an empty name')];
  const hasServer = clientConnection.kubeconfig !== '' || master !== '';
  if (manifests.length === 0 || !hasServer) return [];
  const both = clientConnection.kubeconfig === '' ? '--master' : 'clientConnection.kubeconfig';
  return [forbidden(path, `may not be set together with ${both}: objects come from one source`)];
};

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
  detectLocalMode,
  detectLocal,
  choices,
  sources,
];

const logging: Check = ({ logging, featureGates }) => {
  const hasAlpha = isGateEnabled(featureGates, 'LoggingAlphaOptions');
  return [
    ...flushFrequency(logging.flushFrequency),
    ...format(logging.format, isGateEnabled(featureGates, 'LoggingBetaOptions')),
    ...verbosity('logging.verbosity', logging.verbosity),
    ...vmodule(logging),
    ...(['text', 'json'] as const).flatMap((name) =>
      hasAlpha ? [] : alphaOptions(name, logging.options[name]),
    ),
  ];
};

/** A bare number is nanoseconds, and shown as it was written. */
function flushFrequency(text: string): readonly string[] {
  if (flushMilliseconds(text) > 0) return [];
  const shown = FLUSH_DURATION.toJson(text);
  return [
    invalid('logging.flushFrequency', typeof shown === 'number' ? shown : text, 'Must be greater than zero'),
  ];
}

function format(name: string, hasBeta: boolean): readonly string[] {
  if (name === 'text') return [];
  if (name !== 'json') return [invalid('logging.format', name, 'Unsupported log format')];
  return hasBeta
    ? []
    : [forbidden('logging.format', 'Log format json is disabled, see LoggingBetaOptions feature')];
}

/** What the logging library of Kubernetes can count to. */
const MOST_VERBOSE = 2 ** 31 - 1;

function verbosity(path: string, level: number): readonly string[] {
  return level <= MOST_VERBOSE ? [] : [invalid(path, level, `Must be <= ${MOST_VERBOSE}`)];
}

function vmodule({ format, vmodule: rules }: EffectiveConfig['logging']): readonly string[] {
  const onlyText = rules.length > 0 && format !== 'text';
  return [
    ...(onlyText ? [forbidden('logging.vmodule', 'Only supported for text log format')] : []),
    ...rules.flatMap(({ filePattern, verbosity: level }, index) => {
      const path = `logging.vmodule[${index}]`;
      return [
        ...(filePattern === '' ? [`${path}: Required value: File pattern must not be empty`] : []),
        ...(/[=,]/.test(filePattern)
          ? [invalid(path, filePattern, 'File pattern must not contain equal sign or comma')]
          : []),
        ...verbosity(path, level),
      ];
    }),
  ];
}

interface Options {
  readonly splitStream: boolean;
  readonly infoBufferSize: string;
}

function alphaOptions(name: string, { splitStream, infoBufferSize }: Options): readonly string[] {
  const disabled = (option: string): string =>
    forbidden(`logging.options.${name}.${option}`, 'Feature LoggingAlphaOptions is disabled');
  return [
    ...(splitStream ? [disabled('splitStream')] : []),
    ...(quantityValue(infoBufferSize) === 0 ? [] : [disabled('infoBufferSize')]),
  ];
}

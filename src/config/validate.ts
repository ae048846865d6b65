/**
 * Everything that is wrong with a configuration, in the order and the words of kube-proxy. It looks at gates first, then
 * at logging, then at the rest, and ends with the first of these that has a problem; here all are reported.
 */
import { familyOf, parseCidr, parseIp } from '../model/ip.ts';
import { MODE_NAMES } from '../model/mode.ts';
import { type EffectiveConfig, toFields, type ValidConfig } from './effective.ts';
import { gateProblems, isGateEnabled } from './featureGates.ts';
import { isPort, printDuration, splitAddress } from './goFormats.ts';
import { FLUSH_DURATION, flushMilliseconds, quantityValue } from './kinds.ts';
import { CONFIG_FIELDS, KIND, valueAt } from './table.ts';

type Problems = Iterable<string>;

export function validate(config: EffectiveConfig): readonly string[] {
  return [
    ...gateProblems(config.featureGates).map((problem) => `failed complete: ${problem}`),
    ...Array.from(loggingProblems(config), (problem) => `initialize logging: ${problem}`),
    ...Array.from(fieldProblems(config), (problem) => `failed validate: ${KIND}.${problem}`),
  ];
}

export function isValid(config: EffectiveConfig): config is ValidConfig {
  return validate(config).length === 0;
}

/** In the shape that Kubernetes gives them: `path: Invalid value: value: what is wrong`, with the value as JSON. */
function invalid(path: string, value: unknown, detail: string): string {
  return `${path}: Invalid value: ${JSON.stringify(value)}: ${detail}`;
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

function* fieldProblems(config: EffectiveConfig): Problems {
  const { mode, iptables, ipvs, nftables, conntrack, clientConnection } = config;
  yield* range('KubeProxyIPTablesConfiguration.MasqueradeBit', iptables.masqueradeBit, 0, 31);
  if (mode === 'nftables')
    yield* range('KubeProxyNFTablesConfiguration.MasqueradeBit', nftables.masqueradeBit, 0, 31);
  if (mode === 'ipvs') {
    const { tcpTimeout: TCPTimeout, tcpFinTimeout: TCPFinTimeout, udpTimeout: UDPTimeout } = ipvs;
    yield* durations('KubeProxyIPVSConfiguration.', { TCPTimeout, TCPFinTimeout, UDPTimeout });
    yield* cidrs('KubeProxyIPVSConfiguration.ExcludeCidrs', ipvs.excludeCIDRs ?? []);
  }
  const tracking = 'KubeProxyLinuxConfiguration.KubeProxyConntrackConfiguration.';
  yield* notNegative(`${tracking}MaxPerCore`, conntrack.maxPerCore);
  yield* notNegative(`${tracking}Min`, conntrack.min);
  yield* durations(tracking, {
    TCPEstablishedTimeout: conntrack.tcpEstablishedTimeout,
    TCPCloseWaitTimeout: conntrack.tcpCloseWaitTimeout,
    UDPTimeout: conntrack.udpTimeout,
    UDPStreamTimeout: conntrack.udpStreamTimeout,
  });
  yield* range('KubeProxyLinuxConfiguration.OOMScoreAdj', config.oomScoreAdj, -1000, 1000);
  if (!['', ...MODE_NAMES].includes(mode)) yield invalid('Mode.ProxyMode', mode, MODE_EXPECTED);
  yield* notNegative('ClientConnection.Burst', clientConnection.burst);
  yield* periods(config);
  const { bindAddress, healthzBindAddress, detectLocalMode } = config;
  if (!parseIp(bindAddress))
    yield invalid('BindAddress', bindAddress, 'not a valid textual representation of an IP address');
  if (healthzBindAddress !== '') yield* hostPort('HealthzBindAddress', healthzBindAddress);
  yield* hostPort('MetricsBindAddress', config.metricsBindAddress);
  yield* nodePorts(config.nodePortAddresses ?? []);
  yield* hiddenMetrics(config.showHiddenMetricsForVersion);
  if (!LOCAL_MODES.includes(detectLocalMode))
    yield unsupported('DetectLocalMode', detectLocalMode, LOCAL_MODES);
  yield* detectLocal(config);
  yield* choices(config);
  yield* apiSocket(config);
  yield* sources(config);
}

const MODE_EXPECTED =
  'must be iptables, ipvs, nftables or blank (blank means the best-available proxy [currently iptables])';
const LOCAL_MODES = ['ClusterCIDR', 'NodeCIDR', 'BridgeInterface', 'InterfaceNamePrefix', ''];

function* notNegative(path: string, value: number): Problems {
  if (value < 0) yield invalid(path, value, NOT_NEGATIVE);
}

/** Shown as the text that a file has. */
function* durations(path: string, byName: Readonly<Record<string, number>>): Problems {
  for (const [name, ms] of Object.entries(byName))
    if (ms < 0) yield invalid(path + name, printDuration(ms), NOT_NEGATIVE);
}

function* range(path: string, value: number, least: number, most: number): Problems {
  if (value < least || value > most)
    yield invalid(path, value, `must be within the range [${least}, ${most}]`);
}

function cidrs(path: string, list: readonly string[], detail = 'must be a valid CIDR'): readonly string[] {
  return list.flatMap((cidr, index) => (parseCidr(cidr) ? [] : [invalid(`${path}[${index}]`, cidr, detail)]));
}

function* hostPort(path: string, address: string): Problems {
  const parts = splitAddress(address);
  if ('fault' in parts) {
    yield invalid(path, address, 'must be IP:port');
    return;
  }
  if (!parseIp(parts.host)) yield invalid(path, parts.host, 'must be a valid IP');
  if (!isPort(parts.port)) yield invalid(path, parts.port, 'must be a valid port');
}

function* periods({ configSyncPeriod, syncPeriodMs, minSyncPeriodMs }: EffectiveConfig): Problems {
  if (configSyncPeriod <= 0) yield invalid('ConfigSyncPeriod', printDuration(configSyncPeriod), POSITIVE);
  if (syncPeriodMs <= 0) yield invalid('SyncPeriod', printDuration(syncPeriodMs), POSITIVE);
  yield* durations('', { MinSyncPeriod: minSyncPeriodMs });
  const notBelow = `must be greater than or equal to ${KIND}.MinSyncPeriod`;
  if (minSyncPeriodMs > syncPeriodMs) yield invalid('SyncPeriod', printDuration(minSyncPeriodMs), notBelow);
}

function* nodePorts(list: readonly string[]): Problems {
  const path = 'NodePortAddresses';
  const primary = list.indexOf('primary');
  // What follows the misplaced word is not looked at.
  yield* cidrs(path, primary < 0 ? list : list.slice(0, primary));
  if (primary >= 0 && list.length > 1)
    yield invalid(`${path}[${primary}]`, 'primary', "can't use both 'primary' and CIDRs");
}

/** The minor version before the one that Junction stands in for. */
const PREVIOUS_VERSION = '1.35';

function* hiddenMetrics(version: string): Problems {
  if (version === '' || version === PREVIOUS_VERSION) return;
  const name = 'showHiddenMetricsForVersion';
  const detail = `must be omitted or have the value '${PREVIOUS_VERSION}'; only the previous minor version is allowed`;
  yield invalid('ShowHiddenMetricsForVersion', version, `invalid ${name}: ${invalid(name, version, detail)}`);
}

/** The kernel's names; iptables writes a prefix with a `+`, which counts too. */
const LONGEST_NAME = 15;
const LONGEST_PREFIX = 14;

function* detectLocal({ detectLocalMode, detectLocal: names, clusterCIDRs }: EffectiveConfig): Problems {
  if (detectLocalMode === 'BridgeInterface')
    yield* interfaceName('InterfaceName', names.bridgeInterface, LONGEST_NAME);
  if (detectLocalMode === 'InterfaceNamePrefix')
    yield* interfaceName('InterfacePrefix', names.interfaceNamePrefix, LONGEST_PREFIX);
  if (detectLocalMode === 'ClusterCIDR') yield* podCidrs(clusterCIDRs);
}

/** Interface names end up in rules as they are: nothing that could end a word of a rule, or begin an option. */
const INTERFACE = /^[A-Za-z0-9_.:][A-Za-z0-9_.:-]*$/;

function* interfaceName(field: string, name: string, longest: number): Problems {
  const allowed = `must be the name of an interface: 1 to ${longest} letters, digits, or any of _ . : -`;
  if (!INTERFACE.test(name) || name.length > longest)
    yield invalid(`DetectLocalConfiguration.${field}`, name, name === '' ? 'must not be empty' : allowed);
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
function* choices(config: EffectiveConfig): Problems {
  const fields = toFields(config);
  for (const field of CONFIG_FIELDS.filter(({ path }) => path.startsWith('junction.'))) {
    const value = field.kind.print(valueAt(fields, field));
    if (field.choices?.includes(value) === false) yield unsupported(field.path, value, field.choices);
  }
}

/** Linux keeps 108 bytes for the path of a unix socket, with a NUL at the end. */
const MOST_SOCKET_PATH = 107;

function* apiSocket({ junction: { apiSocket: path, apiSocketMode: mode } }: EffectiveConfig): Problems {
  if (path !== '' && (!path.startsWith('/') || Buffer.byteLength(path) > MOST_SOCKET_PATH))
    yield invalid(
      'junction.apiSocket',
      path,
      `must be an absolute path of at most ${MOST_SOCKET_PATH} bytes, or empty`,
    );
  if (!/^0?[0-7]{3}$/.test(mode))
    yield invalid('junction.apiSocketMode', mode, 'must be octal permissions, as text: "0600", "0660"');
}

function* sources({ junction, clientConnection: { kubeconfig }, master }: EffectiveConfig): Problems {
  const manifests = junction.manifests ?? [];
  const path = 'junction.manifests';
  const both = kubeconfig === '' ? '--master' : 'clientConnection.kubeconfig';
  if (manifests.includes('')) yield invalid(path, manifests, 'must not hold an empty name');
  else if (manifests.length > 0 && (kubeconfig !== '' || master !== ''))
    yield forbidden(path, `may not be set together with ${both}: objects come from one source`);
}

function* loggingProblems({ logging, featureGates }: EffectiveConfig): Problems {
  const { flushFrequency, format, vmodule } = logging;
  // A bare number is nanoseconds, and shown as it was written.
  if (flushMilliseconds(flushFrequency) <= 0)
    yield invalid(
      'logging.flushFrequency',
      FLUSH_DURATION.toJson(flushFrequency),
      'Must be greater than zero',
    );
  if (format !== 'text' && format !== 'json')
    yield invalid('logging.format', format, 'Unsupported log format');
  if (format === 'json' && !isGateEnabled(featureGates, 'LoggingBetaOptions'))
    yield forbidden('logging.format', 'Log format json is disabled, see LoggingBetaOptions feature');
  yield* verbosity('logging.verbosity', logging.verbosity);
  if (vmodule.length > 0 && format !== 'text')
    yield forbidden('logging.vmodule', 'Only supported for text log format');
  for (const [index, { filePattern, verbosity: level }] of vmodule.entries()) {
    const path = `logging.vmodule[${index}]`;
    if (filePattern === '') yield `${path}: Required value: File pattern must not be empty`;
    if (/[=,]/.test(filePattern))
      yield invalid(path, filePattern, 'File pattern must not contain equal sign or comma');
    yield* verbosity(path, level);
  }
  if (isGateEnabled(featureGates, 'LoggingAlphaOptions')) return;
  const disabled = (option: string): string =>
    forbidden(`logging.options.${option}`, 'Feature LoggingAlphaOptions is disabled');
  for (const name of ['text', 'json'] as const) {
    if (logging.options[name].splitStream) yield disabled(`${name}.splitStream`);
    if (quantityValue(logging.options[name].infoBufferSize) !== 0) yield disabled(`${name}.infoBufferSize`);
  }
}

/** What the logging library of Kubernetes can count to. */
const MOST_VERBOSE = 2 ** 31 - 1;

function* verbosity(path: string, level: number): Problems {
  if (level > MOST_VERBOSE) yield invalid(path, level, `Must be <= ${MOST_VERBOSE}`);
}

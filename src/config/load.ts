/** From flags and file to the configuration: which of them counts, defaults, and what kube-proxy makes of both. */
import { familyOf, parseIp } from '../model/ip.ts';
import { flagValue, type ParsedFlags } from './commandLine.ts';
import { decodeFile } from './decodeFile.ts';
import { type EffectiveConfig, toEffective } from './effective.ts';
import { isGateEnabled, unknownGates } from './featureGates.ts';
import { appendPort } from './goFormats.ts';
import { PORT_FLAGS } from './sections/process.ts';
import type { FeatureGates, Field, Flag, Note, Result, SettingValue } from './setting.ts';
import {
  CONFIG_FIELDS,
  type ConfigFields,
  type FieldValues,
  flagOfField,
  FLAGS,
  isDefault,
  isZero,
  nestFields,
} from './table.ts';

export interface LoadedConfig {
  readonly config: EffectiveConfig;
  readonly invocation: ReturnType<typeof readInvocation>;
  /** To be logged, once it is known how. */
  readonly notes: readonly Note[];
}

/** Throws if it cannot. */
type ReadFile = (path: string) => string;

export function loadConfig(parsed: ParsedFlags, readFile: ReadFile): Result<LoadedConfig> {
  const invocation = readInvocation(parsed);
  const { configFile } = invocation;
  const loaded =
    configFile === undefined ? fromFlags(parsed, invocation) : fromFile(parsed, configFile, readFile);
  if (!loaded.ok) return loaded;
  const { fields, notes } = loaded.value;
  const effective = toEffective(fields, textFlag(parsed, 'master'));
  const hasEmptyRange = configFile === undefined && parsed.values.get('cluster-cidr') === '';
  // kube-proxy splits the flag's text at commas whenever the flag is given: a shell variable that is not set becomes one
  // range that is empty, and is refused where ranges of pods matter.
  const completed = withPlatformDefaults(hasEmptyRange ? { ...effective, clusterCIDRs: [''] } : effective);
  return {
    ok: true,
    value: {
      config: completed.config,
      invocation,
      notes: [
        ...parsed.notes,
        ...parsed.removed,
        ...notes,
        ...completed.notes,
        ...unknownGates(completed.config.featureGates),
      ],
    },
  };
}

/** A configuration that a running proxy has printed: all of it counts, also what means a default in a file, such as 0. */
export function loadPrinted(printed: Readonly<Record<string, unknown>>): Result<EffectiveConfig> {
  const decoded = decodeFile(JSON.stringify(printed), 'configuration');
  if (!decoded.ok) return decoded;
  const { values } = decoded.value;
  const fields = nestFields(({ path, default: usual }) => values.get(path) ?? usual);
  return { ok: true, value: withPlatformDefaults(toEffective(fields, '')).config };
}

/** The name of this node's Node object; `undefined` where nothing is left of it. */
export function nodeNameOf(config: EffectiveConfig, hostname: string): string | undefined {
  const name = (config.hostnameOverride === '' ? hostname : config.hostnameOverride).trim().toLowerCase();
  return name === '' ? undefined : name;
}

/** What this run of the program is for. */
function readInvocation(parsed: ParsedFlags) {
  return {
    configFile: textFlag(parsed, 'config') || undefined,
    writeConfigTo: textFlag(parsed, 'write-config-to') || undefined,
    cleanup: parsed.values.get('cleanup') === true,
    initOnly: parsed.values.get('init-only') === true,
  };
}

function textFlag(parsed: ParsedFlags, name: string): string {
  const value = parsed.values.get(name);
  return typeof value === 'string' ? value : '';
}

interface Chosen {
  readonly fields: ConfigFields;
  readonly notes: readonly Note[];
}

const FLAG_OF_PATH: ReadonlyMap<string, Flag> = new Map(
  CONFIG_FIELDS.flatMap((field) => {
    const flag = flagOfField(field);
    return flag ? flag.paths.map((path) => [path, flag] as const) : [];
  }),
);

function fromFlags(parsed: ParsedFlags, { writeConfigTo }: LoadedConfig['invocation']): Result<Chosen> {
  const fields = nestFields((field) => {
    const flag = FLAG_OF_PATH.get(field.path);
    const value = flag === undefined ? field.default : flagValue(parsed, flag);
    return writeConfigTo === undefined ? withPortFlag(parsed, field, value) : value;
  });
  return { ok: true, value: { fields, notes: [] } };
}

function withPortFlag(parsed: ParsedFlags, { listen }: Field, value: SettingValue): SettingValue {
  const flag = PORT_FLAGS.find((other) => other.default === listen?.port);
  if (!flag || typeof value !== 'string') return value;
  const port = flagValue(parsed, flag);
  return port === 0 ? '' : appendPort(value, port);
}

function fromFile(parsed: ParsedFlags, file: string, readFile: ReadFile): Result<Chosen> {
  let text: string;
  try {
    text = readFile(file);
  } catch (error) {
    return { ok: false, problems: [`cannot read --config ${file}: ${reasonOf(error)}`] };
  }
  const decoded = decodeFile(text, file);
  if (!decoded.ok) return decoded;
  const { values, notes } = decoded.value;
  const isIpv6 = isIpv6Address(values.get('bindAddress'));
  const dropped = droppedByKubeProxy(values);
  const kept = new Map([...values].filter(([path]) => !dropped.includes(path)));
  const fields = nestFields((field) => withWinningFlag(parsed, field, withDefault(field, kept, isIpv6)));
  const gateIsMissing = dropped.map((path) => ({
    severity: 'warning' as const,
    message: `${path} has no effect without the feature gate LoggingAlphaOptions`,
  }));
  const allNotes = [...notes, ...gateIsMissing, ...fieldsWithoutEffect(values), ...ignoredFlags(parsed)];
  return { ok: true, value: { fields, notes: allNotes } };
}

/**
 * These need a feature gate. kube-proxy refuses the flags without it, but drops what a file says before it looks: a file
 * that it starts with must not be refused.
 */
function droppedByKubeProxy(values: FieldValues): readonly string[] {
  const gates = (values.get('featureGates') ?? {}) as FeatureGates;
  const paths = ['logging.options.text.splitStream', 'logging.options.json.splitStream'];
  return isGateEnabled(gates, 'LoggingAlphaOptions') ? [] : paths.filter((path) => values.get(path) === true);
}

function reasonOf(error: unknown): string {
  // Node adds the call and the path, which the message has already.
  return error instanceof Error ? error.message.replace(/, (?:open|read)(?: '.*')?$/s, '') : String(error);
}

/** What is neither empty nor an IPv4 address counts as IPv6, as it does for kube-proxy; validation refuses it later. */
function isIpv6Address(bindAddress: SettingValue | undefined): boolean {
  if (typeof bindAddress !== 'string' || bindAddress === '') return false;
  const ip = parseIp(bindAddress);
  return ip === undefined || familyOf(ip) === 'IPv6';
}

function withDefault(field: Field, values: FieldValues, isIpv6: boolean): SettingValue {
  const value = values.get(field.path);
  const isSet = value !== undefined && (field.kind.keepsZero === true || !isZero(field, value));
  const { listen } = field;
  if (isSet) return listen && typeof value === 'string' ? appendPort(value, listen.port) : value;
  if (listen && isIpv6) return listen.ipv6Default;
  // An empty list stays apart from one that is absent.
  return value !== undefined && isZero(field, field.default) ? value : field.default;
}

function withWinningFlag(parsed: ParsedFlags, field: Field, value: SettingValue): SettingValue {
  if (field.flagWins !== true || field.flag === undefined) return value;
  const given = parsed.values.get(field.flag);
  if (given === undefined) return value;
  return field.kind.join?.(given, value) ?? given;
}

/** Only what differs from the default: files that kubeadm writes name many fields to say nothing. */
function fieldsWithoutEffect(values: FieldValues): readonly Note[] {
  const settings = CONFIG_FIELDS.filter((field) => {
    const value = values.get(field.path);
    if (field.ignored === undefined || value === undefined) return false;
    return !isZero(field, value) && !isDefault(field, value);
  }).map(({ path, ignored }) => `${path}: ${ignored}`);
  const message = 'Settings of the configuration file have no effect';
  return settings.length === 0 ? [] : [{ severity: 'info', message, fields: { settings } }];
}

function ignoredFlags(parsed: ParsedFlags): readonly Note[] {
  const ignored = FLAGS.filter(
    ({ name, worksWithFile, ignored: without }) =>
      worksWithFile !== true && without === undefined && parsed.values.has(name),
  );
  if (ignored.length === 0) return [];
  const message = 'Flags are ignored, because the configuration file replaces them';
  return [{ severity: 'warning', message, fields: { flags: ignored.map(({ name }) => `--${name}`) } }];
}

function withPlatformDefaults(config: EffectiveConfig): Pick<LoadedConfig, 'config' | 'notes'> {
  const mode = config.mode === '' ? 'iptables' : config.mode;
  const hasNoAddresses = (config.nodePortAddresses ?? []).length === 0;
  return {
    config: {
      ...config,
      mode,
      nodePortAddresses: mode === 'nftables' && hasNoAddresses ? ['primary'] : config.nodePortAddresses,
      detectLocalMode: config.detectLocalMode === '' ? 'ClusterCIDR' : config.detectLocalMode,
    },
    notes: config.mode === '' ? [{ severity: 'info', message: 'Using iptables proxy' }] : [],
  };
}

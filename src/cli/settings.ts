/** From flags to settings: checked, all mistakes at once, each with what would have been right. */
import { hostname } from 'node:os';
import type { LayoutName } from '../backends/iptables/fragment.ts';
import { type Cidr, FAMILIES, type Family, familyOf, type Ip, parseCidr, parseIp } from '../model/ip.ts';
import type { DetectLocal, ViewSettings } from '../plan/view.ts';
import { parseDuration } from './duration.ts';
import type { Flag } from './flags.ts';

/** What the command line gave, by flag name: one text per flag, or several for a list. */
export type FlagValues = Readonly<Record<string, string | readonly string[] | undefined>>;

export interface Settings extends ViewSettings {
  readonly manifests: readonly string[];
  readonly layout: LayoutName;
  readonly variant: 'auto' | 'nft' | 'legacy';
  readonly families: readonly Family[];
  readonly masqueradeBit: number;
  readonly syncPeriodMs: number;
  readonly minSyncPeriodMs: number;
  readonly verbosity: number;
  readonly loggingFormat: 'text' | 'json';
  readonly output: string;
  readonly dryRun: boolean;
}

export class SettingsError extends Error {
  readonly problems: readonly string[];
  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.problems = problems;
  }
}

export function readSettings(flags: readonly Flag[], values: FlagValues): Settings {
  const reader = new FlagReader(flags, values);
  const syncPeriodMs = reader.duration('iptables-sync-period', { above: 0 });
  const minSyncPeriodMs = reader.duration('iptables-min-sync-period', { atLeast: 0 });
  if (minSyncPeriodMs > syncPeriodMs) {
    reader.complain('iptables-sync-period', 'must be greater than or equal to --iptables-min-sync-period');
  }
  const settings: Settings = {
    nodeName: nodeName(reader),
    bindAddress: bindAddress(reader),
    detectLocal: detectLocal(reader),
    masqueradeAll: reader.bool('masquerade-all'),
    nodePortAddresses: nodePortAddresses(reader),
    localhostNodePorts: reader.bool('iptables-localhost-nodeports'),
    manifests: reader.list('manifests'),
    layout: reader.text('iptables-layout') === 'classic' ? 'classic' : 'current',
    variant: reader.choice('iptables-variant', ['auto', 'nft', 'legacy'] as const),
    families: families(reader),
    masqueradeBit: reader.int('iptables-masquerade-bit', 0, 31),
    syncPeriodMs,
    minSyncPeriodMs,
    verbosity: reader.int('v', 0, 10),
    loggingFormat: reader.choice('logging-format', ['text', 'json'] as const),
    output: reader.text('output'),
    dryRun: reader.bool('dry-run'),
  };
  if (reader.problems.length > 0) throw new SettingsError(reader.problems);
  return settings;
}

/** Flags of another command read as their zero values. */
class FlagReader {
  readonly problems: string[] = [];
  readonly #flags: ReadonlyMap<string, Flag>;
  readonly #values: FlagValues;

  constructor(flags: readonly Flag[], values: FlagValues) {
    this.#flags = new Map(flags.map((flag) => [flag.name, flag]));
    this.#values = values;
    for (const flag of flags) this.#checkChoice(flag);
  }

  complain(name: string, message: string): void {
    this.problems.push(`--${name} ${message}`);
  }

  isSet(name: string): boolean {
    return this.#values[name] !== undefined;
  }

  text(name: string): string {
    const value = this.#values[name] ?? this.#flags.get(name)?.default ?? '';
    return typeof value === 'string' ? value : (value.at(-1) ?? '');
  }

  list(name: string): readonly string[] {
    const value = this.#values[name] ?? [];
    const parts = typeof value === 'string' ? [value] : value;
    return name === 'manifests'
      ? parts
      : parts.flatMap((part) => part.split(',')).filter((part) => part !== '');
  }

  choice<T extends string>(name: string, choices: readonly [T, ...T[]]): T {
    return choices.find((choice) => choice === this.text(name)) ?? choices[0];
  }

  bool(name: string): boolean {
    const text = this.text(name).toLowerCase();
    if (['true', 't', '1'].includes(text)) return true;
    if (!['false', 'f', '0', ''].includes(text)) this.complain(name, `${quote(text)} must be true or false`);
    return false;
  }

  int(name: string, min: number, max: number): number {
    const text = this.text(name);
    if (text === '') return min;
    const value = /^-?\d+$/.test(text) ? Number(text) : Number.NaN;
    if (Number.isNaN(value)) this.complain(name, `${quote(text)} must be a whole number`);
    else if (value < min || value > max)
      this.complain(name, `${value} must be within the range [${min}, ${max}]`);
    return value;
  }

  duration(name: string, limit: { readonly above?: number; readonly atLeast?: number }): number {
    const text = this.text(name);
    if (text === '') return 0;
    const value = parseDuration(text);
    if (value === undefined) this.complain(name, `${quote(text)} must be a duration such as 30s or 1m30s`);
    else if (limit.above !== undefined && value <= limit.above)
      this.complain(name, `${text} must be greater than 0`);
    else if (limit.atLeast !== undefined && value < limit.atLeast) {
      this.complain(name, `${text} must be greater than or equal to 0`);
    }
    return value ?? 0;
  }

  #checkChoice({ name, choices }: Flag): void {
    const text = this.text(name);
    if (choices && text !== '' && !choices.includes(text)) {
      this.complain(name, `${quote(text)} must be one of ${choices.join(', ')}`);
    }
  }
}

function quote(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}

function nodeName(reader: FlagReader): string {
  const override = reader.text('hostname-override').trim().toLowerCase();
  if (reader.isSet('hostname-override') && override === '')
    reader.complain('hostname-override', 'must not be empty');
  return override === '' ? hostname().trim().toLowerCase() : override;
}

function bindAddress(reader: FlagReader): Ip | undefined {
  const text = reader.text('bind-address');
  if (text === '') return undefined;
  const ip = parseIp(text);
  if (ip === undefined)
    reader.complain('bind-address', `${quote(text)} must be an IP address, such as 192.0.2.10`);
  return ip;
}

function families(reader: FlagReader): readonly Family[] {
  const text = reader.text('family');
  return FAMILIES.filter((family) => text === 'both' || text === '' || family.toLowerCase() === text);
}

function cidrs(reader: FlagReader, name: string): readonly Cidr[] {
  return reader.list(name).flatMap((text) => {
    const cidr = parseCidr(text.trim());
    if (cidr === undefined)
      reader.complain(name, `${quote(text)} must be a valid CIDR, such as 10.244.0.0/16`);
    return cidr === undefined ? [] : [cidr];
  });
}

function detectLocal(reader: FlagReader): DetectLocal {
  const mode = reader.choice('detect-local-mode', [
    'ClusterCIDR',
    'NodeCIDR',
    'BridgeInterface',
    'InterfaceNamePrefix',
  ] as const);
  switch (mode) {
    case 'ClusterCIDR':
      return { mode, cidrs: clusterCidrs(reader) };
    case 'NodeCIDR':
      return { mode };
    case 'BridgeInterface':
      return { mode, name: interfaceName(reader, 'pod-bridge-interface') };
    case 'InterfaceNamePrefix':
      return { mode, prefix: interfaceName(reader, 'pod-interface-name-prefix') };
  }
}

function clusterCidrs(reader: FlagReader): readonly Cidr[] {
  const list = cidrs(reader, 'cluster-cidr');
  const isPair = list.length === 2 && new Set(list.map(familyOf)).size === 2;
  if (list.length > 1 && !isPair) {
    reader.complain(
      'cluster-cidr',
      'must be one CIDR, or one of each family, such as 10.100.0.0/16,fde4:8dba:82e1::/48',
    );
  }
  return list;
}

/** The kernel allows 15 characters; the rest of the rule is text too, so nothing that could end a word. */
const INTERFACE = /^[A-Za-z0-9_.:-]{1,15}$/;

function interfaceName(reader: FlagReader, flag: string): string {
  const name = reader.text(flag);
  if (name === '') reader.complain(flag, 'must not be empty in this --detect-local-mode');
  else if (!INTERFACE.test(name))
    reader.complain(flag, `${quote(name)} must be an interface's name, such as cni0`);
  return name;
}

function nodePortAddresses(reader: FlagReader): readonly Cidr[] | 'primary' {
  const list = reader.list('nodeport-addresses');
  if (!list.includes('primary')) return cidrs(reader, 'nodeport-addresses');
  if (list.length > 1) reader.complain('nodeport-addresses', "can't use both 'primary' and CIDRs");
  return 'primary';
}

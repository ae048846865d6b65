/** The configuration that the proxy runs by: one mode, one pair of sync periods. Durations are in ms. */
import { stringify } from 'yaml';
import type { ModeName } from '../model/mode.ts';
import type { Reload } from './setting.ts';
import {
  API_VERSION,
  CONFIG_FIELDS,
  type ConfigFields,
  isDefault,
  isZero,
  KIND,
  setAt,
  valueAt,
} from './table.ts';

/** There is one of each here, whatever the sections of the modes say. */
type PerMode = 'syncPeriod' | 'minSyncPeriod' | 'masqueradeAll';

export interface EffectiveConfig
  extends Omit<ConfigFields, 'iptables' | 'ipvs' | 'nftables' | 'clusterCIDR'> {
  readonly iptables: Omit<ConfigFields['iptables'], PerMode>;
  readonly ipvs: Omit<ConfigFields['ipvs'], PerMode>;
  readonly nftables: Omit<ConfigFields['nftables'], PerMode>;
  readonly syncPeriodMs: number;
  readonly minSyncPeriodMs: number;
  readonly masqueradeAll: boolean;
  readonly clusterCIDRs: readonly string[];
  /** From the flag; a file cannot say it. */
  readonly master: string;
}

export type DetectLocalMode = 'ClusterCIDR' | 'NodeCIDR' | 'BridgeInterface' | 'InterfaceNamePrefix';

/** What validation has found nothing wrong with. */
export interface ValidConfig extends EffectiveConfig {
  readonly mode: ModeName;
  readonly detectLocalMode: DetectLocalMode;
  readonly logging: EffectiveConfig['logging'] & { readonly format: 'text' | 'json' };
  readonly junction: EffectiveConfig['junction'] & {
    readonly iptablesLayout: 'current' | 'classic';
    readonly iptablesVariant: 'auto' | 'nft' | 'legacy';
  };
}

export function toEffective(fields: ConfigFields, master: string): EffectiveConfig {
  const { clusterCIDR, ...rest } = fields;
  const { syncPeriod, minSyncPeriod } = fields[periodsSection(fields.mode)];
  const config = {
    ...rest,
    syncPeriodMs: syncPeriod,
    minSyncPeriodMs: minSyncPeriod,
    masqueradeAll: fields[masqueradeSection(fields.mode)].masqueradeAll,
    clusterCIDRs: clusterCIDR === '' ? [] : clusterCIDR.split(','),
    master,
  };
  // As a file would have them: two configurations that mean the same are equal.
  const { iptables, ipvs, nftables } = toFields(config);
  return { ...config, iptables, ipvs, nftables };
}

/** As a file: what there is one of stands in the section of the mode, and is zero in the others. */
export function toFields(config: EffectiveConfig): ConfigFields {
  const { syncPeriodMs, minSyncPeriodMs, clusterCIDRs, masqueradeAll, master: _, ...rest } = config;
  const periods = periodsSection(config.mode);
  const periodsOf = (section: ModeName): Pick<ConfigFields['iptables'], 'syncPeriod' | 'minSyncPeriod'> =>
    section === periods
      ? { syncPeriod: syncPeriodMs, minSyncPeriod: minSyncPeriodMs }
      : { syncPeriod: 0, minSyncPeriod: 0 };
  const masqueradesAll = (section: ModeName): boolean =>
    section === masqueradeSection(config.mode) && masqueradeAll;
  return {
    ...rest,
    iptables: { ...rest.iptables, ...periodsOf('iptables'), masqueradeAll: masqueradesAll('iptables') },
    ipvs: { ...rest.ipvs, ...periodsOf('ipvs') },
    nftables: { ...rest.nftables, ...periodsOf('nftables'), masqueradeAll: masqueradesAll('nftables') },
    clusterCIDR: clusterCIDRs.join(','),
  };
}

function periodsSection(mode: string): ModeName {
  return mode === 'ipvs' || mode === 'nftables' ? mode : 'iptables';
}

/** The ipvs mode masquerades by iptables rules, and has no such setting of its own. */
function masqueradeSection(mode: string): 'iptables' | 'nftables' {
  return mode === 'nftables' ? 'nftables' : 'iptables';
}

/** The text of a configuration file with the same meaning; keys sorted, as Kubernetes writes YAML. */
export function writeConfig(config: EffectiveConfig): string {
  return stringify(toV1alpha1(config), { sortMapEntries: true, indentSeq: false, lineWidth: 0 });
}

export function toV1alpha1(config: EffectiveConfig): Readonly<Record<string, unknown>> {
  const fields = toFields(config);
  const root: Record<string, unknown> = { kind: KIND, apiVersion: API_VERSION };
  for (const field of CONFIG_FIELDS) {
    const value = valueAt(fields, field);
    const isOmitted =
      (field.omit === 'zero' && isZero(field, value)) ||
      (field.omit === 'default' && isDefault(field, value));
    if (!isOmitted) setAt(root, field.path, field.kind.toJson(value));
  }
  return root;
}

/** What differs between two configurations, for the log of a reload. */
export interface ConfigChange {
  readonly path: string;
  readonly before: string;
  readonly after: string;
  readonly reload: Reload;
}

export function diffConfig(before: EffectiveConfig, after: EffectiveConfig): readonly ConfigChange[] {
  const old = toFields(before);
  const changed = toFields(after);
  // Sync periods stand in the section of the mode: shown as if that had stayed, or a new mode would change them all.
  const aligned = toFields({ ...after, mode: before.mode });
  return CONFIG_FIELDS.flatMap((field): readonly ConfigChange[] => {
    const [from, to] = [
      field.kind.print(valueAt(old, field)),
      field.kind.print(valueAt(field.path === 'mode' ? changed : aligned, field)),
    ];
    return from === to
      ? []
      : [{ path: field.path, before: from, after: to, reload: field.reload ?? 'restart' }];
  });
}

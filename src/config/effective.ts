/** The configuration that the proxy runs by: one mode, one pair of sync periods. Durations are in ms. */
import type { Fields } from './fields.ts';

type PerMode = 'syncPeriod' | 'minSyncPeriod' | 'masqueradeAll';

export interface EffectiveConfig extends Omit<Fields, 'iptables' | 'ipvs' | 'nftables' | 'clusterCIDR'> {
  readonly iptables: Omit<Fields['iptables'], PerMode>;
  readonly ipvs: Omit<Fields['ipvs'], PerMode>;
  readonly nftables: Omit<Fields['nftables'], PerMode>;
  readonly syncPeriodMs: number;
  readonly minSyncPeriodMs: number;
  readonly masqueradeAll: boolean;
  readonly clusterCIDRs: readonly string[];
  /** From the flag; a file cannot say it. */
  readonly master: string;
}

export type ProxyMode = 'iptables' | 'ipvs' | 'nftables';
export type DetectLocalMode = 'ClusterCIDR' | 'NodeCIDR' | 'BridgeInterface' | 'InterfaceNamePrefix';

/** What validation has found nothing wrong with. */
export interface ValidConfig extends EffectiveConfig {
  readonly mode: ProxyMode;
  readonly detectLocalMode: DetectLocalMode;
  readonly logging: EffectiveConfig['logging'] & { readonly format: 'text' | 'json' };
  readonly junction: EffectiveConfig['junction'] & {
    readonly iptablesLayout: 'current' | 'classic';
    readonly iptablesVariant: 'auto' | 'nft' | 'legacy';
  };
}

export function toEffective(fields: Fields, master: string): EffectiveConfig {
  const { iptables, ipvs, nftables, clusterCIDR, ...rest } = fields;
  const { syncPeriod, minSyncPeriod } = fields[periodsSection(fields.mode)];
  return {
    ...rest,
    iptables: withoutPerMode(iptables),
    ipvs: withoutPerMode(ipvs),
    nftables: withoutPerMode(nftables),
    syncPeriodMs: syncPeriod,
    minSyncPeriodMs: minSyncPeriod,
    masqueradeAll: fields[masqueradeSection(fields.mode)].masqueradeAll,
    clusterCIDRs: clusterCIDR === '' ? [] : clusterCIDR.split(','),
    master,
  };
}

/** As a file: what there is one of stands in the section of the mode, and is zero in the others. */
export function toFields(config: EffectiveConfig): Fields {
  const { syncPeriodMs, minSyncPeriodMs, clusterCIDRs, masqueradeAll, master: _, ...rest } = config;
  const periods = periodsSection(config.mode);
  const periodsOf = (section: ModeSection): Pick<Fields['iptables'], 'syncPeriod' | 'minSyncPeriod'> =>
    section === periods
      ? { syncPeriod: syncPeriodMs, minSyncPeriod: minSyncPeriodMs }
      : { syncPeriod: 0, minSyncPeriod: 0 };
  const masqueradesAll = (section: ModeSection): boolean =>
    section === masqueradeSection(config.mode) && masqueradeAll;
  return {
    ...rest,
    iptables: { ...rest.iptables, ...periodsOf('iptables'), masqueradeAll: masqueradesAll('iptables') },
    ipvs: { ...rest.ipvs, ...periodsOf('ipvs') },
    nftables: { ...rest.nftables, ...periodsOf('nftables'), masqueradeAll: masqueradesAll('nftables') },
    clusterCIDR: clusterCIDRs.join(','),
  };
}

type ModeSection = 'iptables' | 'ipvs' | 'nftables';

function periodsSection(mode: string): ModeSection {
  return mode === 'ipvs' || mode === 'nftables' ? mode : 'iptables';
}

/** The ipvs mode masquerades by iptables rules, and has no such setting of its own. */
function masqueradeSection(mode: string): 'iptables' | 'nftables' {
  return mode === 'nftables' ? 'nftables' : 'iptables';
}

function withoutPerMode<T extends object>(section: T): Omit<T, PerMode> {
  return Object.fromEntries(Object.entries(section).filter(([key]) => !PER_MODE.has(key))) as Omit<
    T,
    PerMode
  >;
}

const PER_MODE = new Set<string>([
  'syncPeriod',
  'minSyncPeriod',
  'masqueradeAll',
] satisfies readonly PerMode[]);

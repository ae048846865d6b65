/** What the commands need of the configuration. */
import type { LayoutName } from '../modes/iptables/rules/fragment.ts';
import { DEFAULT_SCHEDULER } from '../modes/ipvs/rules/compile.ts';
import type { ValidConfig } from './effective.ts';
import { isGateEnabled } from './featureGates.ts';
import { toViewSettings } from './viewSettings.ts';
import type { ViewSettings } from '../plan/view.ts';

export interface Settings extends ViewSettings {
  readonly mode: ValidConfig['mode'];
  readonly manifests: readonly string[];
  readonly layout: LayoutName;
  readonly variant: 'auto' | 'nft' | 'legacy';
  readonly masqueradeBit: number;
  /** Of IPVS. */
  readonly scheduler: string;
  /** Of nftables: connections are counted. */
  readonly counters: boolean;
}

export function toSettings(config: ValidConfig, nodeName: string): Settings {
  return {
    ...toViewSettings(config, nodeName),
    allowExternalIPs: isGateEnabled(config.featureGates, 'AllowServiceExternalIPs'),
    mode: config.mode,
    manifests: config.junction.manifests ?? [],
    layout: config.junction.iptablesLayout,
    variant: config.junction.iptablesVariant,
    masqueradeBit: (config.mode === 'nftables' ? config.nftables : config.iptables).masqueradeBit,
    scheduler: config.ipvs.scheduler === '' ? DEFAULT_SCHEDULER : config.ipvs.scheduler,
    counters: config.junction.nftablesCounters,
  };
}

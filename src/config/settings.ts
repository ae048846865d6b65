/** What the commands need of the configuration. */
import type { LayoutName } from '../backends/iptables/fragment.ts';
import type { ValidConfig } from './effective.ts';
import { isGateEnabled } from './featureGates.ts';
import { toViewSettings } from './viewSettings.ts';
import type { ViewSettings } from '../plan/view.ts';

export interface Settings extends ViewSettings {
  readonly manifests: readonly string[];
  readonly layout: LayoutName;
  readonly variant: 'auto' | 'nft' | 'legacy';
  readonly masqueradeBit: number;
}

export function toSettings(config: ValidConfig, nodeName: string): Settings {
  return {
    ...toViewSettings(config, nodeName),
    allowExternalIPs: isGateEnabled(config.featureGates, 'AllowServiceExternalIPs'),
    manifests: config.junction.manifests ?? [],
    layout: config.junction.iptablesLayout,
    variant: config.junction.iptablesVariant,
    masqueradeBit: config.iptables.masqueradeBit,
  };
}

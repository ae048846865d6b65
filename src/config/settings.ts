/** What the commands and the plan need of the configuration. */
import { type Cidr, parseCidr, parseIp } from '../model/ip.ts';
import type { LayoutName } from '../modes/iptables/rules/fragment.ts';
import { DEFAULT_SCHEDULER } from '../modes/ipvs/rules/compile.ts';
import type { DetectLocal, ViewSettings } from '../plan/view.ts';
import type { ValidConfig } from './effective.ts';
import { isGateEnabled } from './featureGates.ts';

export interface Settings extends ViewSettings {
  readonly mode: ValidConfig['mode'];
  readonly manifests: readonly string[];
  readonly layout: LayoutName;
  readonly variant: 'auto' | 'nft' | 'legacy';
  readonly masqueradeBit: number;
  /** Of IPVS. */
  readonly scheduler: string;
  /** Of IPVS: virtual servers in these ranges are not ours to delete. */
  readonly excludeCIDRs: readonly Cidr[];
  /** Of nftables: connections are counted. */
  readonly counters: boolean;
}

export function toSettings(config: ValidConfig, nodeName: string): Settings {
  const { mode, iptables, ipvs, nftables, junction } = config;
  const addresses = config.nodePortAddresses ?? [];
  return {
    nodeName,
    bindAddress: parseIp(config.bindAddress),
    detectLocal: detectLocal(config),
    masqueradeAll: config.masqueradeAll,
    nodePortAddresses: addresses.includes('primary')
      ? 'primary'
      : addresses.flatMap((cidr) => parseCidr(cidr) ?? []),
    // The other modes cannot serve node ports on 127.0.0.1, whatever this says.
    localhostNodePorts: mode === 'iptables' && iptables.localhostNodePorts,
    bindsAddresses: mode === 'ipvs',
    allowExternalIPs: isGateEnabled(config.featureGates, 'AllowServiceExternalIPs'),
    mode,
    manifests: junction.manifests ?? [],
    layout: junction.iptablesLayout,
    variant: junction.iptablesVariant,
    masqueradeBit: mode === 'nftables' ? nftables.masqueradeBit : iptables.masqueradeBit,
    scheduler: ipvs.scheduler === '' ? DEFAULT_SCHEDULER : ipvs.scheduler,
    excludeCIDRs: (ipvs.excludeCIDRs ?? []).flatMap((text) => parseCidr(text) ?? []),
    counters: junction.nftablesCounters,
  };
}

function detectLocal({ detectLocalMode: mode, detectLocal: names, clusterCIDRs }: ValidConfig): DetectLocal {
  switch (mode) {
    case 'ClusterCIDR':
      return { mode, cidrs: clusterCIDRs.flatMap((cidr) => parseCidr(cidr) ?? []) };
    case 'NodeCIDR':
      return { mode };
    case 'BridgeInterface':
      return { mode, name: names.bridgeInterface };
    case 'InterfaceNamePrefix':
      return { mode, prefix: names.interfaceNamePrefix };
  }
}

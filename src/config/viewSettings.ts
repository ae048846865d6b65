/** From a valid configuration to what the plan needs of it. */
import { parseCidr, parseIp } from '../model/ip.ts';
import type { DetectLocal, ViewSettings } from '../plan/view.ts';
import type { ValidConfig } from './effective.ts';

export function toViewSettings(config: ValidConfig, nodeName: string): ViewSettings {
  const { mode, iptables, nodePortAddresses, masqueradeAll } = config;
  const addresses = nodePortAddresses ?? [];
  return {
    nodeName,
    bindAddress: parseIp(config.bindAddress),
    detectLocal: detectLocal(config),
    masqueradeAll,
    nodePortAddresses: addresses.includes('primary')
      ? 'primary'
      : addresses.flatMap((cidr) => parseCidr(cidr) ?? []),
    // The other modes cannot serve node ports on 127.0.0.1, whatever this says.
    localhostNodePorts: mode === 'iptables' && iptables.localhostNodePorts,
    bindsAddresses: mode === 'ipvs',
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

/** The three modes on kernels in memory, each as strict as the real one. */
import type { Family } from '../../src/model/ip.ts';
import type { ModeName } from '../../src/model/mode.ts';
import type { Mechanism } from '../../src/modes/deviations.ts';
import { IptablesSide } from './memoryIptables.ts';
import { IpvsSide } from './memoryIpvs.ts';
import { NftSide } from './memoryNft.ts';
import type { MemorySide } from './memorySide.ts';

export const MECHANISMS: readonly Mechanism[] = ['current', 'classic', 'ipvs', 'nftables'];

export function modeOf(mechanism: Mechanism): ModeName {
  return mechanism === 'current' || mechanism === 'classic' ? 'iptables' : mechanism;
}

export function memorySide(mechanism: Mechanism, family: Family): MemorySide {
  if (mechanism === 'nftables') return new NftSide(family);
  return mechanism === 'ipvs' ? new IpvsSide(family) : new IptablesSide(family, mechanism);
}

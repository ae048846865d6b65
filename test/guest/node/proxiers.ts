/** How Junction can be run on node1, by name. Everything here happens in a process inside node1's network. */
import { IptablesClient } from '../../../src/modes/iptables/client.ts';
import { FAMILIES, type Family } from '../../../src/model/ip.ts';
import type { Mechanism } from '../../../src/modes/deviations.ts';
import { iptablesWriter } from '../../scenarios/iptablesProxier.ts';
import type { FamilyWriter } from '../../scenarios/scenarioProxies.ts';
import { openIpvs } from './ipvsProxier.ts';
import { openNft } from './nftProxier.ts';

export type GuestMode = 'iptables-legacy' | 'ipvs' | 'nftables';

export interface OpenedMode {
  /** Whose differences from `decide` are known. */
  readonly mechanism: Mechanism;
  readonly open: () => Promise<readonly FamilyWriter[]>;
}

export const GUEST_MODES: Readonly<Record<GuestMode, OpenedMode>> = {
  'iptables-legacy': { mechanism: 'current', open: () => perFamily(openIptables) },
  ipvs: { mechanism: 'ipvs', open: openIpvs },
  nftables: { mechanism: 'nftables', open: openNft },
};

function perFamily(open: (family: Family) => Promise<FamilyWriter>): Promise<readonly FamilyWriter[]> {
  return Promise.all(FAMILIES.map(open));
}

async function openIptables(family: Family): Promise<FamilyWriter> {
  const client = await IptablesClient.open({
    family,
    variant: 'legacy',
    lockPath: '/run/junction-xtables.lock',
  });
  return iptablesWriter(client, 'current');
}

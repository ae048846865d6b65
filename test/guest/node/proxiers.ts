/** How Junction can be run on node1, by name. Everything here happens in a process inside node1's network. */
import { IptablesClient } from '../../../src/modes/iptables/client.ts';
import { FAMILIES, type Family } from '../../../src/model/ip.ts';
import type { Mechanism } from '../../scenarios/differences.ts';
import { iptablesBackend } from '../../scenarios/iptablesProxier.ts';
import type { FamilyBackend } from '../../scenarios/scenarioProxies.ts';
import { openIpvs } from './ipvsProxier.ts';
import { openNft } from './nftProxier.ts';

export type BackendName = 'iptables-legacy' | 'ipvs' | 'nftables';

export interface NodeBackend {
  /** Whose differences from `decide` are known. */
  readonly mechanism: Mechanism;
  readonly open: () => Promise<readonly FamilyBackend[]>;
}

export const BACKENDS: Readonly<Record<BackendName, NodeBackend>> = {
  'iptables-legacy': { mechanism: 'current', open: () => perFamily(openIptables) },
  ipvs: { mechanism: 'ipvs', open: openIpvs },
  nftables: { mechanism: 'nftables', open: openNft },
};

function perFamily(open: (family: Family) => Promise<FamilyBackend>): Promise<readonly FamilyBackend[]> {
  return Promise.all(FAMILIES.map(open));
}

async function openIptables(family: Family): Promise<FamilyBackend> {
  const door = await IptablesClient.open({
    family,
    variant: 'legacy',
    lockPath: '/run/junction-xtables.lock',
  });
  return iptablesBackend(door, 'current');
}

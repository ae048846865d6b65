/** A cluster in lines, written into a table by the mode's `Dataplane`. */
import { dataplaneOf } from '../../../../src/modes/dataplane.ts';
import { nftSettings, type NftSettings } from '../../../../src/modes/nftables/rules/ruleset.ts';
import type { NftTables } from '../../../../src/modes/nftables/rules/table.ts';
import type { Cidr, Family, Ip } from '../../../../src/model/ip.ts';
import type { NodeView, Plan } from '../../../../src/plan/types.ts';
import type { SyncReport } from '../../../../src/proxy/report.ts';
import { nftMode } from '../../../contract/modes.ts';
import { Cluster } from '../../../plan/cluster.ts';
import { ip, VIEW, VIEW_6 } from '../../../plan/given.ts';

const NODE_IPS: Readonly<Record<Family, readonly Ip[]>> = {
  IPv4: [ip('192.0.2.10'), ip('192.0.2.11')],
  IPv6: [ip('2001:db8::10'), ip('2001:db8::11')],
};
const VIEWS: Readonly<Record<Family, NodeView>> = { IPv4: VIEW, IPv6: VIEW_6 };

export interface ServedCluster {
  readonly family?: Family;
  readonly view?: Partial<NodeView>;
  readonly masqueradeBit?: number;
  readonly serviceCidrs?: readonly Cidr[];
  readonly counters?: boolean;
  readonly lines: readonly string[];
}

function factsOf(given: ServedCluster) {
  const { family = 'IPv4', masqueradeBit = 14, serviceCidrs = [], counters = true } = given;
  return { masqueradeBit, counters, nodeIps: NODE_IPS[family], serviceCidrs };
}

/** The plan, and what the rules depend on besides it. */
export function plannedNft(given: ServedCluster): { readonly plan: Plan; readonly settings: NftSettings } {
  const { family = 'IPv4', view, lines } = given;
  const cluster = new Cluster({ ...VIEWS[family], ...view }, family);
  cluster.tell(...lines).replan();
  return { plan: cluster.planner, settings: nftSettings(factsOf(given), cluster.planner.view) };
}

export function serveNft(given: ServedCluster, tables: NftTables): Promise<SyncReport> {
  const { nodeIps, serviceCidrs, ...facts } = factsOf(given);
  const proxier = nftMode(tables, () => nodeIps, { ...facts, isProtected: false });
  proxier.setServiceCidrs(serviceCidrs);
  return dataplaneOf(proxier).rewrite(plannedNft(given).plan);
}

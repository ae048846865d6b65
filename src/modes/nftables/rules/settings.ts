/** What a table depends on besides the plan: the node's settings and addresses. */
import type { Cidr, Ip } from '../../../model/ip.ts';
import { SETS } from './names.ts';
import { withoutCovered } from './ranges.ts';
import type { Element } from './rule.ts';
import type { RulesetOptions } from './ruleset.ts';

export interface NftSettings {
  readonly masqueradeMark: number;
  readonly counters: boolean;
  /** Where node ports answer, in a fixed order. */
  readonly nodePortIps: readonly Ip[];
  /** Where cluster IPs come from, where that is known. */
  readonly serviceCidrs: readonly Cidr[];
  /** All addresses of this node: what a remembered client is depends on them. */
  readonly nodeIps?: readonly Ip[];
}

export interface TableOptions extends NftSettings, RulesetOptions {}

/** What comes from the node and its settings, and not from services. */
export function fixedElements({ view, nodePortIps, serviceCidrs }: TableOptions): readonly Element[] {
  return [
    ...(view.nodePorts.ranges === 'all'
      ? []
      : nodePortIps.map((address) => ({ set: SETS.nodePortIPs, key: { address } }))),
    ...withoutCovered(serviceCidrs).map((range) => ({ set: SETS.serviceCidrs, key: { range } })),
  ];
}

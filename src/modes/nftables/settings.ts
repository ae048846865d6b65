/** What the rules depend on besides the plan, as a running proxy, a command or a dump knows it. */
import type { Cidr, Ip } from '../../model/ip.ts';
import { answersNodePorts } from '../../plan/decide.ts';
import type { NodeView } from '../../plan/types.ts';
import type { NftSettings } from './rules/ruleset.ts';

export interface NftFacts {
  readonly masqueradeBit: number;
  readonly counters: boolean;
  /** The node's own addresses in this family, without loopback. */
  readonly nodeIps: readonly Ip[];
  /** Where cluster IPs come from, as far as that is known. */
  readonly serviceCidrs: readonly Cidr[];
}

export function nftSettings(facts: NftFacts, { nodePorts }: NodeView): NftSettings {
  const { masqueradeBit, counters, serviceCidrs } = facts;
  const nodeIps = [...facts.nodeIps].sort();
  return {
    nodeIps,
    masqueradeMark: (1 << masqueradeBit) >>> 0,
    counters,
    nodePortIps: nodeIps.filter((ip) => answersNodePorts(nodePorts, ip)),
    serviceCidrs,
  };
}

/** Whether changes suffice: a mark or counters are part of every service port's rules. */
export function isSameForAll(before: NftSettings, now: NftSettings): boolean {
  return before.masqueradeMark === now.masqueradeMark && before.counters === now.counters;
}

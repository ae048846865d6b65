/**
 * Where a mode does something else than `decide` says, as documented: because kube-proxy's own rules do, and operators expect
 * those to the letter, or because the kernel's part can do no better. Everything else that differs is a fault.
 */
import type { Cidr } from '../model/ip.ts';
import type { ModeName } from '../model/mode.ts';
import { type Decision, decide, type ForwardTarget, type Host, type Packet } from '../plan/decide.ts';
import type { Plan, PoolName } from '../plan/types.ts';
import { IPTABLES_DEVIATIONS } from './iptables/rules/deviations.ts';
import type { LayoutName } from './iptables/rules/fragment.ts';
import { IPVS_DEVIATIONS } from './ipvs/rules/deviations.ts';
import { NFTABLES_DEVIATIONS } from './nftables/rules/deviations.ts';

/** What makes packets do what the plan says: a layout of iptables, IPVS, or nftables. */
export type Mechanism = LayoutName | 'ipvs' | 'nftables';

/** What becomes of a packet instead. */
export type Instead =
  | 'reject'
  | 'drop'
  | 'pass'
  | { readonly targets: readonly ForwardTarget[]; readonly pool: PoolName };

/** A packet, and what the plan says about it. */
export interface Decided {
  readonly plan: Plan;
  readonly packet: Packet;
  readonly host: Host;
  readonly decision: Decision;
  /** Where cluster IPs come from, as far as nftables mode knows. */
  readonly serviceCidrs: readonly Cidr[];
}

export interface Deviation {
  /** One sentence for users. */
  readonly reason: string;
  /** `undefined`: this is no such packet. */
  instead(decided: Decided): Instead | undefined;
}

const DEVIATIONS: Readonly<Record<Mechanism, readonly Deviation[]>> = {
  ...IPTABLES_DEVIATIONS,
  ipvs: IPVS_DEVIATIONS,
  nftables: NFTABLES_DEVIATIONS,
};

export interface FoundDeviation {
  readonly reason: string;
  readonly instead: Instead;
}

/** `layout`: of iptables mode. */
export function mechanismOf(mode: ModeName, layout: string): Mechanism {
  if (mode !== 'iptables') return mode;
  return layout === 'classic' ? 'classic' : 'current';
}

interface DeviationOptions {
  /** Unset: it is asked for. */
  readonly decision?: Decision;
  readonly serviceCidrs?: readonly Cidr[] | undefined;
}

const NO_CIDRS: readonly Cidr[] = [];

/** The first that has to do with a packet counts. */
export function deviationOf(
  mechanism: Mechanism,
  plan: Plan,
  packet: Packet,
  host: Host,
  options: DeviationOptions = {},
): FoundDeviation | undefined {
  const { decision = decide(plan, packet, host), serviceCidrs = NO_CIDRS } = options;
  const decided: Decided = { plan, packet, host, decision, serviceCidrs };
  for (const deviation of DEVIATIONS[mechanism]) {
    const instead = deviation.instead(decided);
    if (instead !== undefined) return { reason: deviation.reason, instead };
  }
  return undefined;
}

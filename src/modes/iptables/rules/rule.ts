/**
 * iptables rules as data. `print.ts` writes them. What a kernel has is read as text: `textRule.ts`.
 *
 * A rule keeps its matches in the order in which they are printed, because that order is what operators see.
 */
import type { Cidr, Ip } from '../../../model/ip.ts';

export const TABLE_NAMES = ['filter', 'nat', 'mangle'] as const;
export type Table = (typeof TABLE_NAMES)[number];

/** With rules of ours. filter first: a service that loses its endpoints is refused before its way is gone. */
export const TABLES: readonly Table[] = ['filter', 'nat'];

export type Match =
  | { readonly kind: 'comment'; readonly text: string }
  /** `-m tcp -p tcp`; `bare` is `-p tcp` without the match module, which the kernel keeps as a different rule. */
  | { readonly kind: 'protocol'; readonly protocol: 'tcp' | 'udp' | 'sctp'; readonly bare?: true }
  | { readonly kind: 'source'; readonly cidr: Cidr | Ip; readonly not: boolean }
  | { readonly kind: 'destination'; readonly cidr: Cidr | Ip; readonly not: boolean }
  | { readonly kind: 'destinationPort'; readonly port: number }
  /** A name that ends in `+` is a prefix. */
  | { readonly kind: 'inInterface'; readonly name: string; readonly not: boolean }
  | {
      readonly kind: 'addressType';
      readonly side: 'src' | 'dst';
      readonly type: 'LOCAL';
      readonly not: boolean;
    }
  | { readonly kind: 'conntrackState'; readonly states: readonly ConntrackState[]; readonly not: boolean }
  | { readonly kind: 'mark'; readonly value: number; readonly mask: number; readonly not: boolean }
  /** `probability` as printed; the kernel keeps 31 bits of it. */
  | { readonly kind: 'statistic'; readonly probability: string }
  | { readonly kind: 'recentSet'; readonly name: string }
  | { readonly kind: 'recentCheck'; readonly name: string; readonly seconds: number; readonly reap: boolean }
  | { readonly kind: 'physdevIsIn'; readonly not: boolean }
  | { readonly kind: 'nfacct'; readonly name: string }
  /** Looks the packet up in a set, by one side of it for each part of the set's entries. */
  | { readonly kind: 'set'; readonly name: string; readonly sides: readonly ('src' | 'dst')[] }
  /** A packet that IPVS sends on for this virtual server. */
  | {
      readonly kind: 'virtualServer';
      readonly protocol: 'tcp' | 'udp' | 'sctp';
      readonly address: Ip;
      readonly port: number;
    };

export type ConntrackState = 'NEW' | 'ESTABLISHED' | 'RELATED' | 'INVALID' | 'DNAT' | 'SNAT' | 'UNTRACKED';

export type Target =
  | { readonly kind: 'jump'; readonly chain: string }
  | { readonly kind: 'accept' }
  | { readonly kind: 'drop' }
  | { readonly kind: 'return' }
  | { readonly kind: 'reject' }
  /** Sets, or flips, the given bits of the packet mark. */
  | { readonly kind: 'mark'; readonly operation: 'or' | 'xor' | 'set'; readonly value: number }
  | { readonly kind: 'dnat'; readonly to: string }
  | { readonly kind: 'masquerade'; readonly randomFully: boolean };

export interface Rule {
  readonly matches: readonly Match[];
  /** A rule without a target only counts. */
  readonly target: Target | undefined;
}

/** The chain that a rule jumps to. */
export function jumpOf({ target }: Rule): string | undefined {
  return target?.kind === 'jump' ? target.chain : undefined;
}

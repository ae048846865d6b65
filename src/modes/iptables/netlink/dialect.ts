/**
 * Versions of iptables write the same rule in other expressions. Each reads what the others write, but for 1.8.7, which does
 * not know ports and marks that newer ones compare without a structure. Checked with 1.8.7, 1.8.9, 1.8.10, 1.8.11 and 1.8.13.
 */
export interface IptablesDialect {
  /** Interfaces and the protocol come behind addresses, and IPv4 has its protocol from the header of the packet. */
  readonly addressesFirst: boolean;
  /** Ports of TCP and UDP and marks are compared in registers, and not by a structure of iptables. */
  readonly comparesNatively: boolean;
}

/** By the first version that was seen to write so; the newest first. */
export const DIALECTS = {
  '1.8.10': { addressesFirst: true, comparesNatively: true },
  '1.8.9': { addressesFirst: false, comparesNatively: true },
  '1.8.7': { addressesFirst: false, comparesNatively: false },
} as const satisfies Readonly<Record<string, IptablesDialect>>;

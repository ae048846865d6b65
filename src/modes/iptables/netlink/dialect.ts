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

/** What this version writes: `1.8.9`. Of versions that were not seen, a trial shows it. */
export function dialectOf(version: string): IptablesDialect {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number);
  const isBefore = (last: number): boolean =>
    major < 1 || (major === 1 && (minor < 8 || (minor === 8 && patch < last)));
  if (isBefore(8)) return DIALECTS['1.8.7'];
  return isBefore(10) ? DIALECTS['1.8.9'] : DIALECTS['1.8.10'];
}

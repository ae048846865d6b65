/** What an iptables can do, from the version that it prints. Pure. */

export type Variant = 'nft' | 'legacy';

export interface IptablesVersion {
  /** `1.8.9` */
  readonly text: string;
  readonly variant: Variant;
}

export interface IptablesFeatures {
  /** `-C` exists. */
  readonly check: boolean;
  /** Goes before the operation: `['-w', '5']`, `['-w']` (waits without limit), or nothing. */
  readonly wait: readonly string[];
  /** The same for restore; `undefined` means that restore takes no lock, so that we take it. */
  readonly restoreWait: readonly string[] | undefined;
  /** `-j MASQUERADE --random-fully` exists. */
  readonly randomFully: boolean;
}

const VERSION = /v([0-9]+(\.[0-9]+)+)/;

/** Reads `iptables v1.8.9 (nf_tables)`. Before 1.8 there was only what is called legacy now, and no word for it. */
export function parseVersion(output: string): IptablesVersion | undefined {
  const text = VERSION.exec(output)?.[1];
  return text === undefined
    ? undefined
    : { text, variant: output.includes('(nf_tables)') ? 'nft' : 'legacy' };
}

export function atLeast(version: string, minimum: string): boolean {
  const wanted = minimum.split('.').map(Number);
  const parts = version.split('.').map(Number);
  for (let index = 0; index < Math.max(wanted.length, parts.length); index++) {
    const difference = (parts[index] ?? 0) - (wanted[index] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return true;
}

/**
 * Upstream restore learned `-w` in 1.6.2, but Red Hat brought it to older versions, together with `--version`. So for
 * those versions an `iptables-restore --version` that answers means that `-w` is there.
 */
export function needsRestoreProbe(version: string): boolean {
  return !atLeast(version, '1.6.2');
}

export function featuresOf(
  version: string,
  restoreHasVersion: boolean,
  lockSeconds: number,
): IptablesFeatures {
  const limited = ['-w', String(lockSeconds)];
  const unlimited = ['-w'];
  return {
    check: atLeast(version, '1.4.11'),
    wait: atLeast(version, '1.4.22') ? limited : atLeast(version, '1.4.20') ? unlimited : [],
    restoreWait: atLeast(version, '1.6.2') ? limited : restoreHasVersion ? unlimited : undefined,
    randomFully: atLeast(version, '1.6.2'),
  };
}

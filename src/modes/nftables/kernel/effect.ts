import type { WalkVerdict } from '../../kernelRules.ts';

/** What an expression does: `undefined` goes on to the next one. */
export type Effect =
  | { readonly kind: 'mismatch' }
  /** Whether it matches, or what it does, is not known. */
  | { readonly kind: 'unknown' }
  | { readonly kind: 'verdict'; readonly verdict: WalkVerdict | undefined }
  | { readonly kind: 'mark'; readonly mark: number }
  | undefined;

export const MISMATCH: Effect = { kind: 'mismatch' };
export const UNKNOWN: Effect = { kind: 'unknown' };

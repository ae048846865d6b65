/**
 * A bundle: gzip of lines of JSON. The first lines are those of a snapshot; what else is known of the node follows, each
 * in a line of its own, and the last line says how many there are.
 */
import type { SnapshotLine } from '../explain/snapshot.ts';
import type { Family } from '../model/ip.ts';

export type BundleLine =
  | SnapshotLine
  /** What is in the kernel, as the mode's reader wrote it. */
  | { readonly kind: 'kernel'; readonly family: Family; readonly readAt: number; readonly dump: unknown }
  /** What happened lately: changes, syncs, changes by other programs. */
  | { readonly kind: 'event'; readonly event: unknown }
  /** As `/v1/status` answers. */
  | { readonly kind: 'status'; readonly status: unknown }
  | { readonly kind: 'doctor'; readonly report: unknown }
  | { readonly kind: 'versions'; readonly versions: Readonly<Record<string, string>> }
  | { readonly kind: 'sysctls'; readonly sysctls: Readonly<Record<string, string>> }
  /** What could not be collected, and why. */
  | { readonly kind: 'missing'; readonly what: string; readonly reason: string }
  | { readonly kind: 'end'; readonly lines: number };

const MEBIBYTE = 1024 * 1024;

/** Against a small file that unpacks to a large one. 30,000 services × 10 endpoints take about 200 MiB. */
export const LIMITS: BundleLimits = {
  fileBytes: 256 * MEBIBYTE,
  bytes: 1024 * MEBIBYTE,
  // A text of V8 has 512 MiB at most.
  lineBytes: 384 * MEBIBYTE,
  lines: 4_000_000,
};

export interface BundleLimits {
  readonly fileBytes: number;
  /** Unpacked. */
  readonly bytes: number;
  readonly lineBytes: number;
  readonly lines: number;
}

/** `junction-bundle-node1-20261116T140312Z.json.gz` */
export function bundleName(node: string, takenAt: number): string {
  const time = new Date(takenAt).toISOString().replace(/\.\d+/, '').replaceAll(/[-:]/g, '');
  return `junction-bundle-${node}-${time}.json.gz`;
}

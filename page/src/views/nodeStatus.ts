/** The status of a node for the view: its parts in the words of `status`, grouped, with ages as of now. */
import type { FamilyStatus, Status } from '../../../src/explain/status.ts';
import { type StatusPart, statusParts } from '../../../src/explain/statusText.ts';

export interface StatusGroup {
  /** `API server`, `IPv4`, `conntrack` */
  readonly name: string;
  /** The first has the name of the group. */
  readonly parts: readonly StatusPart[];
}

/** `beside`: what is short; `families`: those that are served. */
export function statusGroups(status: Status): {
  readonly beside: readonly StatusGroup[];
  readonly families: readonly StatusGroup[];
} {
  const groups: { name: string; parts: StatusPart[] }[] = [];
  for (const part of statusParts(status)) {
    const last = groups.at(-1);
    if (part.isOfFamily && last) last.parts.push(part);
    else groups.push({ name: part.name, parts: [part] });
  }
  const served = new Set<string>(status.families.map(({ family }) => family));
  return {
    beside: groups.filter(({ name }) => !served.has(name)),
    families: groups.filter(({ name }) => served.has(name)),
  };
}

/** A recording stays as old as it was. `elapsedMs`: since the answer came. */
export function agedStatus(status: Status, elapsedMs: number): Status {
  if (status.answeredBy?.kind === 'bundle') return status;
  return { ...status, now: status.now + Math.max(0, elapsedMs) };
}

/** Only who plans a cluster from outside asks all of its nodes. */
export function isOfCluster({ answeredBy, source }: Status): boolean {
  return answeredBy?.kind === 'plan' && source.kind === 'api';
}

export interface Fullness {
  /** From 0 to 1. */
  readonly share: number;
  readonly state: 'fine' | 'high' | 'full';
}

const HIGH = 0.75;
/** As the finding of `status`. */
const NEARLY_FULL = 0.9;

export function fullnessOf({ count, max }: NonNullable<Status['conntrack']>): Fullness {
  const share = max <= 0 ? 0 : Math.min(1, count / max);
  return { share, state: share >= NEARLY_FULL ? 'full' : share >= HIGH ? 'high' : 'fine' };
}

/** Shares of the last sync, from 0 to 1; undefined where there is none, or it failed. */
export function stageShares({
  lastSync,
}: FamilyStatus): { readonly plan: number; readonly write: number } | undefined {
  if (lastSync?.planMs === undefined || lastSync.writeMs === undefined) return undefined;
  const whole = lastSync.planMs + lastSync.writeMs;
  return whole === 0 ? undefined : { plan: lastSync.planMs / whole, write: lastSync.writeMs / whole };
}

/** `examples/web.yaml:19: text` in two parts, where it begins with a file and a line. */
export function problemParts(problem: string): { readonly where?: string; readonly text: string } {
  const [, where, text] = /^(\S+:\d+(?::\d+)?):\s+(.*)$/s.exec(problem) ?? [];
  return where === undefined || text === undefined ? { text: problem } : { where, text };
}

export function nodePath(node: string): string {
  return `/node?${new URLSearchParams({ node })}`;
}

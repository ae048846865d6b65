/** Reads an event that came from elsewhere: one that lacks something, or has something of another kind, is none. */
import type { ChangeRecord, WatchEvent } from '../explain/types.ts';
import { ownText } from '../text/cursor.ts';
import { conforms, FAMILY, fields, every, maybe, type Shape } from './shapes.ts';

/** Changes are lines of their own, and what a client lost is nobody else's. */
export type KeptEvent = Exclude<WatchEvent, { readonly kind: 'change' | 'lost' }>;

const event = (shapes: Readonly<Record<string, Shape>>): Shape =>
  fields({ at: 'number', family: FAMILY, ...shapes });

const EVENTS: Readonly<Record<KeptEvent['kind'], Shape>> = {
  sync: event({
    sync: { oneOf: ['full', 'incremental', 'nothing', 'failed'] },
    cause: 'text',
    commits: 'number',
    objects: 'number',
    ms: 'number',
    planMs: maybe('number'),
    writeMs: maybe('number'),
    seenAt: maybe('number'),
    error: maybe('text'),
  }),
  foreign: event({ objects: every('text'), program: 'text', repairedMs: maybe('number') }),
  refused: event({ servicePort: 'text', error: 'text' }),
  conntrack: event({ deleted: 'number', ms: 'number' }),
};

export const KEPT_KINDS: readonly string[] = Object.keys(EVENTS);

export function isKeptEvent(raw: unknown): raw is KeptEvent {
  const [, shape] = Object.entries(EVENTS).find(([kind]) => kind === ownText(raw, 'kind')) ?? [];
  return shape !== undefined && conforms(raw, shape);
}

/** All that happened, changes among it. Oldest first. */
export function bundleEvents({
  changes,
  events,
}: {
  readonly changes: readonly ChangeRecord[];
  readonly events: readonly KeptEvent[];
}): readonly WatchEvent[] {
  const all: WatchEvent[] = [...events, ...changes.map((change) => ({ kind: 'change', ...change }) as const)];
  return all.sort((a, b) => timeOf(a) - timeOf(b));
}

function timeOf(happened: WatchEvent): number {
  return happened.kind === 'change' ? (happened.committedAt ?? happened.plannedAt) : happened.at;
}

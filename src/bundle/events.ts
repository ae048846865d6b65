/** Checks an event that came from elsewhere: one that lacks something, or has something of another kind, is none. */
import { timeOfEvent } from '../explain/events.ts';
import type { WatchEvent } from '../explain/types.ts';
import { ownText } from '../text/cursor.ts';
import { conforms, FAMILY, fields, every, maybe, type Shape } from './shapes.ts';

/** What a client lost is nobody else's. */
export type KeptEvent = Exclude<WatchEvent, { readonly kind: 'lost' }>;

const event = (shapes: Readonly<Record<string, Shape>>): Shape =>
  fields({ at: 'number', family: FAMILY, ...shapes });

const EVENTS: Readonly<Record<KeptEvent['kind'], Shape>> = {
  change: fields({
    id: 'number',
    family: FAMILY,
    service: 'text',
    causes: every('text'),
    effects: every('text'),
    seenAt: 'number',
    plannedAt: 'number',
    committedAt: maybe('number'),
    refused: maybe('text'),
  }),
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

export function isKeptEvent(raw: unknown): raw is KeptEvent {
  const [, shape] = Object.entries(EVENTS).find(([kind]) => kind === ownText(raw, 'kind')) ?? [];
  return shape !== undefined && conforms(raw, shape);
}

/** Oldest first. Files of version 0.2 have the changes apart. */
export function inOrder(events: readonly KeptEvent[]): readonly KeptEvent[] {
  return events.toSorted((a, b) => timeOfEvent(a) - timeOfEvent(b));
}

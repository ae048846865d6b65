/** Events of the running proxy in words: the lines of `watch`. */
import type { ObjectKey } from '../model/objects.ts';
import { serviceOfPortId } from '../model/serviceTracker.ts';
import { counted, durationText } from '../text/ages.ts';
import type { ChangeRecord, WatchEvent } from './types.ts';

/** Most events are about one; a sync, a clean-up of flows and other programs are about all. */
export function serviceOfEvent(event: WatchEvent): ObjectKey | undefined {
  if (event.kind === 'change') return event.service;
  return event.kind === 'refused' ? serviceOfPortId(event.servicePort) : undefined;
}

/** Newest first; of one service, or of all. */
export function changesIn(events: readonly WatchEvent[], service?: ObjectKey): readonly ChangeRecord[] {
  return events
    .flatMap((event) => {
      if (event.kind !== 'change' || (service !== undefined && event.service !== service)) return [];
      const { kind: _, ...change } = event;
      return [change];
    })
    .toReversed();
}

/** Milliseconds since the epoch. */
export function timeOfEvent(event: WatchEvent): number {
  return event.kind === 'change' ? (event.committedAt ?? event.plannedAt) : event.at;
}

/** What `watch` says of it, behind its time, family and kind. */
export function eventText(event: WatchEvent): string {
  switch (event.kind) {
    case 'change':
      return changeText(event);
    case 'sync': {
      const { sync, commits, objects, ms, cause, error } = event;
      const what = `${sync}, ${counted(commits, 'commit')}, ${counted(objects, 'object')} in ${durationText(ms)}`;
      return `${what}: ${cause}${error === undefined ? '' : `; failed: ${error}`}`;
    }
    case 'foreign': {
      const { program, objects, repairedMs } = event;
      const repaired = repairedMs === undefined ? '' : `; repaired in ${durationText(repairedMs)}`;
      return `${program} changed ${objects.join(', ')}${repaired}`;
    }
    case 'refused':
      return `the kernel refused ${event.servicePort}: ${event.error}`;
    case 'conntrack':
      return `deleted ${counted(event.deleted, 'stale flow')} in ${durationText(event.ms)}`;
    case 'lost':
      return `${counted(event.events, 'event')} lost: this reader was too slow`;
  }
}

/** What happened, what it changed, and how long that took. */
function changeText({ service, causes, effects, seenAt, committedAt, refused }: ChangeRecord): string {
  const effect = effects.length === 0 ? 'nothing to change in the plan' : effects.join(', ');
  const written =
    committedAt === undefined
      ? 'not written yet'
      : `written ${durationText(committedAt - seenAt)} after it was seen`;
  const end = refused === undefined ? written : `the kernel refused it: ${refused}`;
  return `${service}: ${causes.join(', ')} → ${effect}; ${end}`;
}

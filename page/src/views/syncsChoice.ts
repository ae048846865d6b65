/** What somebody wants to see of the events. It is in the address. */
import { serviceOfEvent } from '../../../src/explain/events.ts';
import type { WatchEvent } from '../../../src/explain/types.ts';
import type { Family } from '../../../src/model/ip.ts';
import { matcherOf } from '../../../src/text/matcher.ts';
import { isIn, type LatencyRange, latencyOf } from './syncsLatency.ts';
import type { Gap, LoggedEvent } from './syncsLog.ts';

export const EVENT_KINDS = ['change', 'sync', 'foreign', 'refused', 'conntrack', 'lost'] as const;
export const RANGES = { '1': 60_000, '5': 300_000, '30': 1_800_000 } as const;
type RangeName = keyof typeof RANGES;
const DEFAULT_RANGE: RangeName = '5';

export interface Choice {
  readonly range: RangeName;
  /** Empty: all. */
  readonly kinds: readonly WatchEvent['kind'][];
  readonly family: Family | undefined;
  /** A part of `namespace/name`, or a pattern with `*`. */
  readonly service: string;
  readonly time: Gap | undefined;
  readonly latency: LatencyRange | undefined;
}

export function readChoice(query: URLSearchParams): Choice {
  const asked = query.getAll('kind');
  const family = query.get('family');
  const time = numbersOf(query.get('time'));
  const latency = numbersOf(query.get('latency'));
  return {
    range: rangeNamed(query.get('minutes')),
    kinds: EVENT_KINDS.filter((kind) => asked.includes(kind)),
    family: family === 'IPv4' || family === 'IPv6' ? family : undefined,
    service: query.get('service') ?? '',
    time,
    latency: time ? undefined : latency,
  };
}

export function rangeNamed(name: string | null): RangeName {
  return name !== null && Object.hasOwn(RANGES, name) ? (name as RangeName) : DEFAULT_RANGE;
}

/** `5-10`; `10000-` has no end. */
function numbersOf(text: string | null): Gap | undefined {
  const [, from = '', to = ''] =
    /^(\d{1,15}(?:\.\d{1,3})?)-((?:\d{1,15}(?:\.\d{1,3})?)?)$/.exec(text ?? '') ?? [];
  if (from === '') return undefined;
  const range = { from: Number(from), to: to === '' ? Number.POSITIVE_INFINITY : Number(to) };
  return range.from < range.to ? range : undefined;
}

export function choicePath({ range, kinds, family, service, time, latency }: Choice): string {
  const query = new URLSearchParams();
  if (range !== DEFAULT_RANGE) query.set('minutes', range);
  for (const kind of kinds) query.append('kind', kind);
  if (family !== undefined) query.set('family', family);
  if (service !== '') query.set('service', service);
  if (time) query.set('time', textOf(time));
  else if (latency) query.set('latency', textOf(latency));
  return query.size === 0 ? '/syncs' : `/syncs?${query}`;
}

function textOf({ from, to }: Gap): string {
  return `${from}-${to === Number.POSITIVE_INFINITY ? '' : to}`;
}

/** Those that are asked for, newest first. As with `watch`, who asks for services sees what is about services, and what is lost. */
export function chosen(
  entries: readonly LoggedEvent[],
  { kinds, family, service, time, latency }: Choice,
  shownSince: number,
): readonly LoggedEvent[] {
  const matches = matcherOf(service);
  const isChosen = ({ at, event }: LoggedEvent): boolean => {
    if (kinds.length > 0 && !kinds.includes(event.kind)) return false;
    if (family !== undefined && 'family' in event && event.family !== family) return false;
    if (time && (at < time.from || at >= time.to)) return false;
    if (latency) {
      const ms = event.kind === 'change' ? latencyOf(event) : undefined;
      if (ms === undefined || at < shownSince || !isIn(latency, ms)) return false;
    }
    if (service === '' || event.kind === 'lost') return true;
    const about = serviceOfEvent(event);
    return about !== undefined && matches(about);
  };
  const found: LoggedEvent[] = [];
  for (let index = entries.length - 1; index >= 0; index--) {
    const entry = entries[index];
    if (entry && isChosen(entry)) found.push(entry);
  }
  return found;
}

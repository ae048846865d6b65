/** Names and times as people type them. */
import { UsageError } from './commands.ts';

const KIND = /^(?:svc|service|services)\//;

/**
 * `shop/web`, `svc/shop/web`; with `-n shop` also `web` and `svc/web`, as with kubectl. A port may stand behind it. Returns
 * `shop/web`, with the port.
 */
export function serviceName(text: string, namespace: string): string {
  const [, name = '', rest = ''] = /^([^:]*)(.*)$/s.exec(text) ?? [];
  const parts = name.split('/');
  if (namespace !== '') {
    const bare = KIND.test(name) && parts.length === 2 ? (parts[1] ?? '') : name;
    if (!bare.includes('/')) return `${namespace}/${bare}${rest}`;
    const full = parts.length === 3 ? name.replace(KIND, '') : name;
    if (full.startsWith(`${namespace}/`)) return full + rest;
    throw new UsageError([`${JSON.stringify(text)} names another namespace than --namespace ${namespace}`]);
  }
  return (parts.length === 3 ? name.replace(KIND, '') : name) + rest;
}

/** The same for `--from pod/…` and `--to svc/…`; addresses stay as they are. */
export function peerName(text: string, namespace: string): string {
  if (namespace === '') return text;
  const [, kind = '', name = '', rest = ''] = /^([a-z]+)\/([^/:]+)((?::.*)?)$/s.exec(text) ?? [];
  return kind === '' ? text : `${kind}/${namespace}/${name}${rest}`;
}

const CLOCK = /^([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?$/;
const INSTANT = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?$/;
/** A clock that is a little ahead is no yesterday. */
const AHEAD_MS = 60_000;

/** In milliseconds since the epoch. A time of day is the last one that was, in this machine's time zone. */
export function timeAsked(text: string, now: Date): number {
  const [, hours, minutes, seconds] = CLOCK.exec(text) ?? [];
  if (hours !== undefined) {
    const day = new Date(now);
    day.setHours(Number(hours), Number(minutes), Number(seconds ?? 0), 0);
    if (day.getTime() > now.getTime() + AHEAD_MS) day.setDate(day.getDate() - 1);
    return day.getTime();
  }
  const at = INSTANT.test(text) ? Date.parse(text.replace(' ', 'T')) : Number.NaN;
  if (!Number.isNaN(at)) return at;
  throw new UsageError(
    [`--at ${JSON.stringify(text)} is not a time`],
    'say 14:03, 14:03:20 or 2026-11-16T14:03:20Z',
  );
}

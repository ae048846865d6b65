/**
 * Whoever asks for more is not believed: the API server itself asks for 1 to 64 s, and a wrong number (or a date, seen
 * by a wrong clock) would silence a resource for as long.
 */
const LONGEST_MS = 60_000;

/** Milliseconds that a `Retry-After` header asks for, in seconds or as a date; at most a minute of them. */
export function readRetryAfter(header: string | undefined, wallTime: () => number): number | undefined {
  if (header === undefined || header.trim() === '') return undefined;
  const text = header.trim();
  const delay = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - wallTime();
  return boundRetryAfter(delay);
}

/** As much of it as is waited for; nothing for what is no number. */
export function boundRetryAfter(delayMs: number): number | undefined {
  return Number.isNaN(delayMs) ? undefined : Math.min(Math.max(delayMs, 0), LONGEST_MS);
}

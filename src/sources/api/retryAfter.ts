const LONGEST_MS = 5 * 60_000;

/** Milliseconds that a `Retry-After` header asks for, in seconds or as a date; at most five minutes of them. */
export function readRetryAfter(header: string | undefined, wallTime: () => number): number | undefined {
  if (header === undefined || header.trim() === '') return undefined;
  const text = header.trim();
  const delay = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - wallTime();
  return Number.isNaN(delay) ? undefined : Math.min(Math.max(delay, 0), LONGEST_MS);
}

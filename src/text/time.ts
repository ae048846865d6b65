/** Times as Kubernetes prints them: `2026-05-01T12:00:00Z`, with parts of a second where there are some. */

/** What a Date can be, either way from the epoch. */
const MAX_MS = 8_640_000_000_000_000;

/** `milliseconds`: since the epoch. */
export function printRfc3339(milliseconds: number): string {
  const inRange = Math.max(-MAX_MS, Math.min(MAX_MS, Math.floor(milliseconds) || 0));
  return new Date(inRange).toISOString().replace('.000Z', 'Z');
}

const TIME = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(\.\d{1,9})?(Z|[+-]\d{2}:\d{2})$/;

/** Milliseconds since the epoch; nothing for what is no time. */
export function parseRfc3339(text: string): number | undefined {
  const match = TIME.exec(text);
  if (match === null) return undefined;
  const milliseconds = Date.parse(`${match[1]}${(match[2] ?? '').slice(0, 4)}${match[3]}`);
  return Number.isNaN(milliseconds) ? undefined : milliseconds;
}

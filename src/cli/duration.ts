/** Durations as Go writes them: `30s`, `1m30s`, `1.5h`, `100ms`. */
const UNITS_MS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};

const PART = /(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)/y;

/** Milliseconds, or `undefined` for text that is no duration. */
export function parseDuration(text: string): number | undefined {
  const sign = text.startsWith('-') ? -1 : 1;
  const digits = text.replace(/^[+-]/, '');
  if (digits === '0') return 0;
  let total = 0;
  let position = 0;
  while (position < digits.length) {
    PART.lastIndex = position;
    const match = PART.exec(digits);
    if (!match) return undefined;
    total += Number(match[1]) * (UNITS_MS[match[2] ?? ''] ?? Number.NaN);
    position = PART.lastIndex;
  }
  return digits === '' ? undefined : sign * total;
}

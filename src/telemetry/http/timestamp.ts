/** A reading of both clocks: the wall's, to be shown; the steady one, to measure with. */
export interface Timestamp {
  /** Nanoseconds since 1970. */
  readonly wallNs: bigint;
  /** Nanoseconds; only differences mean anything. It does not jump when somebody sets the clock. */
  readonly steadyNs: bigint;
}

export type TimestampSource = () => Timestamp;

const NS_PER_MS = 1_000_000n;
const NS_PER_SECOND = 1_000_000_000n;
const NS_PER_MINUTE = 60n * NS_PER_SECOND;
/** `Date.now` is cut to milliseconds and read a little later; anything beyond is a clock that was set. */
const TOLERANCE_NS = 2n * NS_PER_MS;

/**
 * The wall's time to the nanosecond: Node has it in milliseconds only, so the steady clock carries it on from one
 * reading, until the two disagree.
 */
export function timestampSource(
  wallMs: () => number = Date.now,
  steady: () => bigint = () => process.hrtime.bigint(),
): TimestampSource {
  let offsetNs: bigint | undefined;
  return () => {
    const steadyNs = steady();
    const coarseNs = BigInt(Math.trunc(wallMs())) * NS_PER_MS;
    if (offsetNs === undefined || distance(steadyNs + offsetNs, coarseNs) > TOLERANCE_NS) {
      offsetNs = coarseNs - steadyNs;
    }
    return { wallNs: steadyNs + offsetNs, steadyNs };
  };
}

export const systemTimestamps: TimestampSource = timestampSource();

/** What a time prints as that never was. */
export const NEVER = '0001-01-01T00:00:00Z';

/** RFC 3339 with as many of nine fractional digits as are not trailing zeros: `2026-11-15T03:35:39.53733177Z`. */
export function printTime({ wallNs }: Timestamp, zoneMinutes: number = zoneMinutesAt(wallNs)): string {
  const localNs = wallNs + BigInt(zoneMinutes) * NS_PER_MINUTE;
  const seconds = localNs / NS_PER_SECOND;
  const fraction = String(localNs % NS_PER_SECOND)
    .padStart(9, '0')
    .replace(/0+$/, '');
  const whole = new Date(Number(seconds) * 1000).toISOString().slice(0, 19);
  return `${whole}${fraction === '' ? '' : `.${fraction}`}${printZone(zoneMinutes)}`;
}

function printZone(minutes: number): string {
  if (minutes === 0) return 'Z';
  const two = (value: number): string => String(value).padStart(2, '0');
  const distanceMinutes = Math.abs(minutes);
  return `${minutes < 0 ? '-' : '+'}${two(Math.floor(distanceMinutes / 60))}:${two(distanceMinutes % 60)}`;
}

/** How far east of Greenwich this process lives, at that time. */
function zoneMinutesAt(wallNs: bigint): number {
  // Minus zero is no offset either.
  return -new Date(Number(wallNs / NS_PER_MS)).getTimezoneOffset() || 0;
}

function distance(a: bigint, b: bigint): bigint {
  return a < b ? b - a : a - b;
}

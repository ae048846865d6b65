/** Times as Kubernetes prints them: `2026-05-01T12:00:00Z`, with parts of a second where there are some. */

const DAY_MS = 86_400_000;
/** Days from 1 March of the year 0 to 1 January 1970. */
const EPOCH_DAYS = 719_468;
const DAYS_IN_400_YEARS = 146_097;

/** `milliseconds`: since the epoch. */
export function printRfc3339(milliseconds: number): string {
  const whole = Math.floor(milliseconds);
  const days = Math.floor(whole / DAY_MS);
  const ofDay = whole - days * DAY_MS;
  const [hours, minutes, seconds] = [ofDay / 3_600_000, (ofDay / 60_000) % 60, (ofDay / 1000) % 60].map(
    Math.floor,
  );
  const rest = ofDay % 1000;
  const fraction = rest === 0 ? '' : `.${digits(rest, 3)}`;
  return `${printDate(days)}T${digits(hours)}:${digits(minutes)}:${digits(seconds)}${fraction}Z`;
}

/** Years begin in March here, so that a leap day is the last of its year. */
function printDate(daysSinceEpoch: number): string {
  const days = daysSinceEpoch + EPOCH_DAYS;
  const era = Math.floor(days / DAYS_IN_400_YEARS);
  const dayOfEra = days - era * DAYS_IN_400_YEARS;
  const leapDays =
    Math.floor(dayOfEra / 1460) - Math.floor(dayOfEra / 36_524) + Math.floor(dayOfEra / 146_096);
  const yearOfEra = Math.floor((dayOfEra - leapDays) / 365);
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const monthFromMarch = Math.floor((5 * dayOfYear + 2) / 153);
  const day = dayOfYear - Math.floor((153 * monthFromMarch + 2) / 5) + 1;
  const month = ((monthFromMarch + 2) % 12) + 1;
  const year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0);
  return `${digits(year, 4)}-${digits(month)}-${digits(day)}`;
}

function digits(value: number | undefined, count = 2): string {
  return String(value ?? 0).padStart(count, '0');
}

const TIME = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(\.\d{1,9})?(Z|[+-]\d{2}:\d{2})$/;

/** Milliseconds since the epoch; nothing for what is no time. */
export function parseRfc3339(text: string): number | undefined {
  const match = TIME.exec(text);
  if (match === null) return undefined;
  const milliseconds = Date.parse(`${match[1]}${(match[2] ?? '').slice(0, 4)}${match[3]}`);
  return Number.isNaN(milliseconds) ? undefined : milliseconds;
}

/** Readers of single values. Each notes what is wrong and then returns a stand-in (see cursor.ts). */
import type { Cursor } from './cursor.ts';
import { quote } from './quote.ts';

/** Missing reads as ''. */
export function readText(at: Cursor): string {
  if (at.missing) return '';
  if (typeof at.value === 'string') return at.value;
  const hint = typeof at.value === 'number' || typeof at.value === 'boolean' ? ', in quotes' : '';
  at.refuse(`${quote(at.value)} is not text`, `text${hint}`);
  return '';
}

/** Missing reads as `fallback`. */
export function readInteger(at: Cursor, from: number, to: number, fallback: number): number {
  if (at.missing) return fallback;
  const expected = `a whole number from ${from} to ${to}`;
  if (typeof at.value !== 'number' || !Number.isInteger(at.value)) {
    at.refuse(`${quote(at.value)} is not a whole number`, expected);
  } else if (at.value < from || at.value > to) {
    at.refuse(`${at.value} is out of range`, expected);
  } else {
    return at.value;
  }
  return fallback;
}

export function readPort(at: Cursor): number {
  if (at.missing) at.refuse('is missing', 'a whole number from 1 to 65535');
  return readInteger(at, 1, 65535, 1);
}

/** 0 or missing: none. */
export function readOptionalPort(at: Cursor): number {
  return at.value === 0 ? 0 : readInteger(at, 1, 65535, 0);
}

export function readFlag(at: Cursor, fallback: boolean): boolean {
  if (at.missing) return fallback;
  if (typeof at.value === 'boolean') return at.value;
  at.refuse(`${quote(at.value)} is neither true nor false`, 'true or false');
  return fallback;
}

/** Missing or empty reads as `fallback`: an empty string is Go's way to leave a field out. */
export function readChoice<T extends string>(at: Cursor, choices: readonly T[], fallback: NoInfer<T>): T {
  if (at.missing || at.value === '') return fallback;
  const found = choices.find((choice) => choice === at.value);
  if (found === undefined) at.refuse(`${quote(at.value)} is not known`, oneOf(choices));
  return found ?? fallback;
}

/** `readChoice`, for a field that the object can do without: what is not known counts as `fallback`, as with kube-proxy. */
export function readChoiceOr<T extends string>(at: Cursor, choices: readonly T[], fallback: NoInfer<T>): T {
  return at.attempt(`it counts as ${fallback}`, (part) => readChoice(part, choices, fallback)) ?? fallback;
}

export function oneOf(choices: readonly string[]): string {
  return choices.length < 2
    ? choices.join('')
    : `${choices.slice(0, -1).join(', ')} or ${choices.at(-1) ?? ''}`;
}

const TIME = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(\.\d{1,9})?(Z|[+-]\d{2}:\d{2})$/;

/** Milliseconds since the epoch; nothing when it is missing or, with a warning, when it cannot be read. */
export function readTime(at: Cursor): number | undefined {
  if (at.missing || at.value === '') return undefined;
  const match = typeof at.value === 'string' ? TIME.exec(at.value) : null;
  const milliseconds = match
    ? Date.parse(`${match[1]}${(match[2] ?? '').slice(0, 4)}${match[3]}`)
    : Number.NaN;
  if (!Number.isNaN(milliseconds)) return milliseconds;
  at.warn(`${quote(at.value)} is not a time`, 'a time such as 2026-05-01T12:00:00Z');
  return undefined;
}

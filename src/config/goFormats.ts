/** Texts as Go reads and prints them: whole numbers, durations, and addresses with a port. */
import { familyOf, parseIp } from '../model/ip.ts';

/** Decimal, `0x`, `0b`, `0o` or just `0` for octal, and `_` between digits or behind such a prefix. */
export function parseInteger(text: string): number | undefined {
  const plain = text.replaceAll(/(?<=[\da-f]|0[xbo])_(?=[\da-f])/gi, '');
  const match = /^([+-]?)(0x[\da-f]+|0b[01]+|0o?[0-7]+|[1-9]\d*|0)$/i.exec(plain);
  if (!match) return undefined;
  const digits = (match[2] ?? '').toLowerCase().replace(/^0(?=[0-7])/, '0o');
  return match[1] === '-' ? -Number(digits) : Number(digits);
}

const PART = /(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)/y;
const UNITS_MS = { ns: 1e-6, us: 1e-3, µs: 1e-3, μs: 1e-3, ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** Go counts nanoseconds in 64 bits: about 292 years. */
const LONGEST_MS = 2 ** 63 / 1e6;

/** `30s`, `2h22m`, `24h0m0s`, `1.5s`, `100ms` in milliseconds; `undefined` for text that is no duration. */
export function parseDuration(text: string): number | undefined {
  const sign = text.startsWith('-') ? -1 : 1;
  const unsigned = text.replace(/^[+-]/, '');
  if (unsigned === '0') return 0;
  if (unsigned === '') return undefined;
  let total = 0;
  let position = 0;
  while (position < unsigned.length) {
    PART.lastIndex = position;
    const match = PART.exec(unsigned);
    if (!match) return undefined;
    total += Number(match[1]) * UNITS_MS[match[2] as keyof typeof UNITS_MS];
    position = PART.lastIndex;
  }
  return total < LONGEST_MS ? sign * total : undefined;
}

const SECOND = 1_000_000_000n;

export function printDuration(ms: number): string {
  const signed = BigInt(Math.round(ms * 1e6));
  if (signed === 0n) return '0s';
  const sign = signed < 0n ? '-' : '';
  const ns = signed < 0n ? -signed : signed;
  return sign + (ns < SECOND ? printSmall(ns) : printLarge(ns));
}

function printSmall(ns: bigint): string {
  if (ns < 1000n) return `${ns}ns`;
  return ns < 1_000_000n ? `${decimal(ns, 1000n, 3)}µs` : `${decimal(ns, 1_000_000n, 6)}ms`;
}

function printLarge(ns: bigint): string {
  const minutes = ns / (60n * SECOND);
  const seconds = `${decimal(ns % (60n * SECOND), SECOND, 9)}s`;
  if (minutes === 0n) return seconds;
  const hours = minutes / 60n;
  return hours === 0n ? `${minutes}m${seconds}` : `${hours}h${minutes % 60n}m${seconds}`;
}

function decimal(value: bigint, unit: bigint, digits: number): string {
  const fraction = (value % unit).toString().padStart(digits, '0').replace(/0+$/, '');
  return fraction === '' ? `${value / unit}` : `${value / unit}.${fraction}`;
}

/** Splits at the last colon; an IPv6 host must stand in brackets, and only then may hold colons. Faults are in Go's words. */
export function splitAddress(
  text: string,
): { readonly host: string; readonly port: string } | { readonly fault: string } {
  const match = /^(?:\[([^[\]]*)\]|([^:[\]]*)):([^:[\]]*)$/.exec(text);
  if (match) return { host: match[1] ?? match[2] ?? '', port: match[3] ?? '' };
  return { fault: `address ${text}: ${faultOf(text)} in address` };
}

function faultOf(text: string): string {
  const colon = text.lastIndexOf(':');
  if (colon < 0) return 'missing port';
  if (!text.startsWith('[')) {
    if (text.indexOf(':') < colon) return 'too many colons';
  } else {
    const end = text.indexOf(']');
    if (end < 0) return "missing ']'";
    if (end + 1 !== colon) return text.charAt(end + 1) === ':' ? 'too many colons' : 'missing port';
  }
  return text.includes('[', 1) || !text.includes(']') ? "unexpected '['" : "unexpected ']'";
}

/** A bare IP gets the port; anything else stays as it is, for validation to judge. */
export function appendPort(address: string, port: number): string {
  if (!('fault' in splitAddress(address))) return address;
  const ip = parseIp(address);
  if (ip === undefined) return address;
  return familyOf(ip) === 'IPv4' ? `${address}:${port}` : `[${address}]:${port}`;
}

export function isPort(text: string): boolean {
  return /^\+?\d{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= 65_535;
}

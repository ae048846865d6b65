/** Readers of single values. Each notes what is wrong and then returns a stand-in (see cursor.ts). */
import type { Cursor } from './cursor.ts';
import { quote } from './quote.ts';
import { type Cidr, cidrContains, type Ip, parseCidr, parseIp } from '../ip.ts';

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

export const NO_IPS: readonly Ip[] = [];
export const NO_CIDRS: readonly Cidr[] = [];

/** A missing or blank address is nothing; a bad one is nothing, with a warning. */
export function readIpLeniently(at: Cursor): Ip | undefined {
  const text = at.attempt('it is left out', readText) ?? '';
  if (text.trim() === '') return undefined;
  const ip = parseIp(text);
  if (ip === undefined) at.warn(`${quote(text)} is not an IP address`, 'an IP address');
  return ip;
}

/** Kubernetes trims these, and only these, before it reads them. */
export function readCidrLeniently(at: Cursor): Cidr | undefined {
  const text = (at.attempt('it is left out', readText) ?? '').trim();
  if (text === '') return undefined;
  const cidr = parseCidr(text);
  if (cidr === undefined) at.warn(`${quote(text)} is not a CIDR`, 'a CIDR such as 192.0.2.0/24');
  return cidr;
}

export const LINK_LOCAL = 'a link-local address';

interface SpecialRange {
  readonly cidr: Cidr | undefined;
  readonly what: string;
}

const SPECIAL: readonly SpecialRange[] = [
  { cidr: parseCidr('127.0.0.0/8'), what: 'a loopback address' },
  { cidr: parseCidr('::1/128'), what: 'a loopback address' },
  { cidr: parseCidr('0.0.0.0/32'), what: 'the unspecified address' },
  { cidr: parseCidr('::/128'), what: 'the unspecified address' },
  { cidr: parseCidr('169.254.0.0/16'), what: LINK_LOCAL },
  { cidr: parseCidr('fe80::/10'), what: LINK_LOCAL },
  { cidr: parseCidr('224.0.0.0/4'), what: 'a multicast address' },
  { cidr: parseCidr('ff00::/8'), what: 'a multicast address' },
  { cidr: parseCidr('255.255.255.255/32'), what: 'the broadcast address' },
];

// Every special range shows in the first characters; most addresses are spared the eight comparisons.
const PERHAPS_SPECIAL = /^(?:127\.|0\.|169\.|22|23|255\.|::|f[ef])/;

/**
 * What is special about an address that means something to every machine, so that no service may have it. The API server
 * checks this for endpoints and new external IPs, but not for a load balancer's addresses: one at 127.0.0.1 would take
 * over the node's loopback.
 */
export function specialAddress(ip: Ip): string | undefined {
  if (!PERHAPS_SPECIAL.test(ip)) return undefined;
  return SPECIAL.find(({ cidr }) => cidr !== undefined && cidrContains(cidr, ip))?.what;
}

/** `readIpLeniently`, and special addresses are left out too. */
export function readOrdinaryIp(at: Cursor): Ip | undefined {
  const ip = readIpLeniently(at);
  const special = ip === undefined ? undefined : specialAddress(ip);
  if (special === undefined) return ip;
  at.warn(`${ip} is ${special}`, 'an address that other machines can reach');
  return undefined;
}

/** What could be read, without repetitions. */
export function readEach<T extends Ip | Cidr>(
  items: readonly Cursor[],
  none: readonly T[],
  read: (at: Cursor) => T | undefined,
): readonly T[] {
  if (items.length === 0) return none;
  const found = new Set<T>();
  for (const item of items) {
    const value = read(item);
    if (value !== undefined) found.add(value);
  }
  return found.size === 0 ? none : [...found];
}

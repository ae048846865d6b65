/** Those of Helm's and kubectl's functions that our templates call. */
import { createHash } from 'node:crypto';
import { stringify } from 'yaml';

/** As Go's templates have it: zero, empty and missing are false. */
export function isTrue(value: unknown): boolean {
  return typeof value === 'object' && value !== null ? length(value) > 0 : Boolean(value);
}

export function print(value: unknown): string {
  if (value === undefined || value === null) return '';
  // Helm reads every number as a float, and Go prints a million as 1e+06.
  if (typeof value === 'number' && Math.abs(value) >= 1e6) throw new Error(`${value} needs int64 before it`);
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean' || typeof value === 'bigint') return `${value}`;
  throw new Error('only toYaml can print a map or a list');
}

function text(value: unknown): string {
  if (typeof value !== 'string') throw new Error(`${JSON.stringify(value)} is no text`);
  return value;
}

function printf(format: unknown, ...args: readonly unknown[]): string {
  const left = [...args];
  const printed = text(format).replaceAll(/%(.)/g, (_, verb: string) => {
    if (!/[sv]/.test(verb) || left.length === 0)
      throw new Error(`printf ${text(format)}: no value for %${verb}`);
    return verb === 's' ? text(left.shift()) : print(left.shift());
  });
  if (left.length > 0) throw new Error(`printf ${text(format)} has too many arguments`);
  return printed;
}

function dict(...args: readonly unknown[]): TemplateMap {
  const keys = args.filter((_, index) => index % 2 === 0).map(text);
  return Object.fromEntries(keys.map((key, index) => [key, args[2 * index + 1]]));
}

type TemplateMap = Readonly<Record<string, unknown>>;

function isMap(value: unknown): value is TemplateMap {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function mapOf(value: unknown): TemplateMap {
  if (!isMap(value)) throw new Error(`template: ${JSON.stringify(value)} is no map`);
  return value;
}

function listOf(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw new Error(`template: ${JSON.stringify(value)} is no list`);
  return value;
}

/** What the first has stays, unless it is empty; maps are merged inside. */
function filled(first: TemplateMap, second: TemplateMap): TemplateMap {
  const merged = Object.entries(second).map(([key, value]) => {
    const before = first[key];
    if (isMap(before) && isMap(value)) return [key, filled(before, value)] as const;
    return [key, isTrue(before) ? before : value] as const;
  });
  return { ...first, ...Object.fromEntries(merged) };
}

function length(value: unknown): number {
  if (typeof value === 'string' || Array.isArray(value)) return value.length;
  return Object.keys(mapOf(value)).length;
}

export type TemplateFunction = (...args: readonly unknown[]) => unknown;

export const FUNCTIONS: Readonly<Record<string, TemplateFunction>> = {
  and: (...args) => args.at(args.findIndex((arg) => !isTrue(arg))),
  concat: (...lists) => lists.flatMap(listOf),
  contains: (part, whole) => text(whole).includes(text(part)),
  default: (fallback, value) => (isTrue(value) ? value : fallback),
  dict,
  eq: (left, right) => left === right,
  fail: (message) => {
    throw new Error(text(message));
  },
  get: (map, key) => mapOf(map)[text(key)] ?? '',
  has: (item, list) => listOf(list ?? []).includes(item),
  hasPrefix: (prefix, whole) => text(whole).startsWith(text(prefix)),
  // A bigint is printed whole.
  int64: (value) => BigInt(Math.trunc(Number(value))),
  len: length,
  list: (...args) => args,
  merge: (first, ...others) => others.map(mapOf).reduce(filled, mapOf(first)),
  ne: (left, right) => left !== right,
  nindent: (spaces, lines) => `\n${text(lines).replaceAll(/^/gm, ' '.repeat(Number(spaces)))}`,
  not: (value) => !isTrue(value),
  omit: (map, ...keys) =>
    Object.fromEntries(Object.entries(mapOf(map)).filter(([key]) => !keys.includes(key))),
  or: (...args) => args.at(args.findIndex(isTrue)),
  print: (...args) => args.map(print).join(''),
  printf,
  quote: (value) => JSON.stringify(print(value)),
  replace: (old, replacement, whole) => text(whole).replaceAll(text(old), () => text(replacement)),
  sha256sum: (value) => createHash('sha256').update(text(value)).digest('hex'),
  toYaml: (value) => stringify(value, { version: '1.1', sortMapEntries: true, lineWidth: 0 }).trimEnd(),
  toString: print,
  trim: (value) => text(value).trim(),
};

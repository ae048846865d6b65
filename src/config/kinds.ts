/** The kinds of settings: how each is read from a flag and from a file, and how it is printed. */
import { parseIp } from '../model/ip.ts';
import { isMap } from '../text/cursor.ts';
import { isPort, parseDuration, parseInteger, printDuration, splitAddress } from './goFormats.ts';
import type { FeatureGates, Reading, SettingKind, StringList, VerbosityRule } from './setting.ts';

export function quoteWord(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}

/** What a file holds where something else was expected. */
export function describeRaw(raw: unknown): string {
  if (typeof raw === 'string') return `the text ${quoteWord(raw)}`;
  if (Array.isArray(raw)) return 'a list';
  if (typeof raw === 'number' || typeof raw === 'boolean') return `the ${typeof raw} ${raw}`;
  return raw === null ? 'null' : 'a map';
}

function wrongType(expected: string, raw: unknown): Reading<never> {
  return { problem: `must be ${expected}, and is ${describeRaw(raw)}` };
}

function mapReading<A, B>(reading: Reading<A>, change: (value: A) => B): Reading<B> {
  return 'value' in reading ? { value: change(reading.value) } : reading;
}

/** The first item that cannot be read is the outcome. */
function readEach<I, T>(items: Iterable<I>, read: (item: I) => Reading<T>): Reading<readonly T[]> {
  const values: T[] = [];
  for (const item of items) {
    const reading = read(item);
    if (!('value' in reading)) return reading;
    values.push(reading.value);
  }
  return { value: values };
}

/** Printed as JavaScript prints it, and the same in JSON. */
const AS_IS = { print: String, toJson: (value: unknown) => value };

/** For a field that is a pointer in Kubernetes' type: zero is a value, and not the lack of one. */
export function pointer<T>(kind: SettingKind<T>): SettingKind<T> {
  return { ...kind, keepsZero: true };
}

const TRUE = new Set(['1', 't', 'T', 'TRUE', 'true', 'True']);
const FALSE = new Set(['0', 'f', 'F', 'FALSE', 'false', 'False']);
/** Words that YAML 1.1, which kube-proxy reads, takes for booleans and YAML 1.2 does not. */
const YAML_TRUE = /^(y|yes|on)$/i;
const YAML_FALSE = /^(n|no|off)$/i;

export const BOOL: SettingKind<boolean> = {
  ...AS_IS,
  name: 'boolean',
  placeholder: '',
  zero: false,
  alone: 'true',
  fromFlag: (text) => {
    if (TRUE.has(text)) return { value: true };
    return FALSE.has(text) ? { value: false } : { problem: 'must be true or false' };
  },
  fromFile: (raw) => {
    if (typeof raw === 'boolean') return { value: raw };
    if (typeof raw === 'string' && YAML_TRUE.test(raw)) return { value: true };
    if (typeof raw === 'string' && YAML_FALSE.test(raw)) return { value: false };
    return wrongType('true or false', raw);
  },
};

const MOST_INT = 2 ** 31 - 1;

export const INT: SettingKind<number> = {
  ...AS_IS,
  name: 'integer',
  placeholder: 'N',
  zero: 0,
  fromFlag: (text) => within(parseInteger(text), -(2 ** 31), MOST_INT),
  fromFile: (raw) => wholeNumber(raw, -(2 ** 31), MOST_INT),
};

/** Verbosity. A flag is read as decimal digits alone; a file may hold more, which validation refuses. */
export const UNSIGNED: SettingKind<number> = {
  ...INT,
  name: 'unsigned integer',
  fromFlag: (text) => within(/^-?\d+$/.test(text) ? Number(text) : undefined, 0, MOST_INT),
  fromFile: (raw) => wholeNumber(raw, 0, 2 ** 32 - 1),
};

function wholeNumber(raw: unknown, least: number, most: number): Reading<number> {
  return typeof raw === 'number'
    ? within(raw, least, most)
    : wrongType('a whole number, without quotes', raw);
}

function within(value: number | undefined, least: number, most: number): Reading<number> {
  if (value === undefined || !Number.isInteger(value)) return { problem: 'must be a whole number' };
  return value < least || value > most
    ? { problem: `must be between ${least} and ${most}` }
    : { value: value + 0 };
}

export const FLOAT: SettingKind<number> = {
  ...INT,
  name: 'number',
  placeholder: 'NUMBER',
  fromFlag: (text) => {
    const plain = text.replaceAll(/(?<=\d)_(?=\d)/g, '');
    if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(plain)) return { problem: 'must be a number' };
    // kube-proxy has 32 bits for it.
    return Number.isFinite(Math.fround(Number(plain)))
      ? { value: Number(plain) }
      : { problem: 'must be between -3.4e38 and 3.4e38' };
  },
  fromFile: (raw) =>
    typeof raw === 'number' && Number.isFinite(raw) ? { value: raw } : wrongType('a number', raw),
};

export const STRING: SettingKind<string> = {
  ...AS_IS,
  name: 'string',
  placeholder: 'TEXT',
  zero: '',
  fromFlag: (text) => ({ value: text }),
  fromFile: (raw) => (typeof raw === 'string' ? { value: raw } : wrongType('text, in quotes', raw)),
};

/** In milliseconds, once read. */
export const DURATION: SettingKind<number> = {
  name: 'duration',
  placeholder: 'DURATION',
  zero: 0,
  fromFlag: readDuration,
  fromFile: (raw) =>
    typeof raw === 'string'
      ? readDuration(raw)
      : wrongType('a duration in quotes, such as "30s" or "15m"', raw),
  print: printDuration,
  toJson: printDuration,
};

function readDuration(text: string): Reading<number> {
  const value = parseDuration(text);
  if (value !== undefined) return { value };
  const hint = /^[+-]?\d+$/.test(text)
    ? `, and has no unit: perhaps ${text}s`
    : ', such as 30s, 15m or 2h22m';
  return { problem: `must be a duration${hint}` };
}

/**
 * A duration, or nanoseconds as a number, as older files have it. Kept as it was written, because kube-proxy prints it so:
 * `5s`, or `5000000000`.
 */
export const FLUSH_DURATION: SettingKind<string> = {
  ...STRING,
  name: 'duration',
  placeholder: 'DURATION',
  zero: '0s',
  fromFlag: (text) => mapReading(readDuration(text), printDuration),
  fromFile: (raw) => {
    if (Number.isSafeInteger(raw)) return { value: raw === 0 ? '0s' : String(raw) };
    return mapReading(DURATION.fromFile(raw), printDuration);
  },
  toJson: (value) => (isNanoseconds(value) ? Number(value) : value),
};

export function flushMilliseconds(value: string): number {
  return isNanoseconds(value) ? Number(value) / 1e6 : (parseDuration(value) ?? 0);
}

function isNanoseconds(value: string): boolean {
  return /^-?\d+$/.test(value);
}

/** Flags are checked at once; a file's text is left to validation, as kube-proxy does. */
export const IP: SettingKind<string> = {
  ...STRING,
  name: 'IP',
  placeholder: 'IP',
  fromFlag: (text) => {
    if (text === '') return { unset: true };
    return parseIp(text) ? { value: text } : { problem: `${quoteWord(text)} is not a valid IP address` };
  },
};

export const IP_PORT: SettingKind<string> = {
  ...STRING,
  name: 'IP or IP:port',
  placeholder: 'IP[:PORT]',
  fromFlag: (text) => {
    if (text === '') return { unset: true };
    if (parseIp(text)) return { value: text };
    const parts = splitAddress(text);
    if ('fault' in parts)
      return { problem: `${quoteWord(text)} is not in a valid format (ip or ip:port): ${parts.fault}` };
    if (!parseIp(parts.host)) return { problem: `${quoteWord(parts.host)} is not a valid IP address` };
    return parts.port === '0' || isPort(parts.port)
      ? { value: text }
      : { problem: `${quoteWord(parts.port)} is not a valid number` };
  },
};

/** Node names are trimmed and lower case; kube-proxy leaves that for later when the name is in a file. */
export const NODE_NAME: SettingKind<string> = {
  ...STRING,
  placeholder: 'NAME',
  readsLast: true,
  fromFlag: (text) => {
    if (text === '') return { unset: true };
    const name = text.trim().toLowerCase();
    return name === ''
      ? { problem: 'empty hostname-override is invalid', stage: 'failed complete' }
      : { value: name };
  },
};

const QUANTITY_TEXT = /^([+-]?(?:\d+\.?\d*|\.\d+))(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d+))?$/;
const PREFIXES = ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E'];
const BINARY_PREFIXES = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'];

/** A Kubernetes quantity, kept as text. */
export const QUANTITY: SettingKind<string> = {
  ...STRING,
  name: 'quantity',
  placeholder: 'QUANTITY',
  zero: '0',
  fromFlag: readQuantity,
  fromFile: (raw) =>
    typeof raw === 'string' || typeof raw === 'number'
      ? readQuantity(String(raw))
      : wrongType('a quantity such as 512 or 2Ki', raw),
};

/** A quantity as a whole number, rounded away from zero as Kubernetes rounds it: `100m` is 1. */
export function quantityValue(text: string): number {
  const [, number = '0', suffix = '', exponent = '0'] = QUANTITY_TEXT.exec(text) ?? [];
  const scale = suffix.endsWith('i')
    ? 1024 ** BINARY_PREFIXES.indexOf(suffix)
    : 1000 ** (PREFIXES.indexOf(suffix) - PREFIXES.indexOf(''));
  const value = Number(`${number}e${exponent}`) * scale;
  return value < 0 ? Math.floor(value) : Math.ceil(value);
}

function readQuantity(text: string): Reading<string> {
  return QUANTITY_TEXT.test(text) ? { value: text } : { problem: 'must be a quantity such as 512 or 2Ki' };
}

/** `--version`, `--version=raw`. */
export const VERSION_REQUEST: SettingKind<string> = {
  ...STRING,
  placeholder: 'raw',
  zero: 'false',
  alone: 'true',
  fromFlag: (text) => {
    if (text === 'raw') return { value: text };
    const read = BOOL.fromFlag(text, undefined);
    return 'value' in read ? { value: String(read.value) } : { problem: 'must be true, false or raw' };
  },
};

/** A word out of a few, checked at once. */
export function choiceOf<const T extends string>(choices: readonly [T, ...T[]]): SettingKind<T> {
  const read = (raw: unknown): Reading<T> => {
    const value = choices.find((choice) => choice === raw);
    return value === undefined ? { problem: `must be one of ${choices.join(', ')}` } : { value };
  };
  return {
    ...AS_IS,
    name: 'string',
    placeholder: choices.join('|'),
    choices,
    zero: choices[0],
    readsLast: true,
    fromFlag: read,
    fromFile: read,
  };
}

export const STRING_LIST: SettingKind<StringList> = {
  ...AS_IS,
  name: 'list of strings',
  placeholder: 'TEXT,…',
  zero: null,
  fromFlag: (text, before) => mapReading(splitWords(text), (words) => [...(before ?? []), ...words]),
  fromFile: (raw) =>
    Array.isArray(raw)
      ? readEach(raw as readonly unknown[], (item) =>
          typeof item === 'string'
            ? { value: item }
            : { problem: `must be a list of texts, and holds ${describeRaw(item)}` },
        )
      : wrongType('a list', raw),
  print: (value) => (value ?? []).join(','),
};

/**
 * As a line of CSV, like kube-proxy: in arguments of containers, which no shell has seen, quotes are part of the text. Of
 * several lines only the first counts.
 */
function splitWords(text: string): Reading<readonly string[]> {
  const [line = ''] = text.split('\n', 1);
  if (line === '') return { value: [] };
  const words: string[] = [];
  for (let at = 0; at <= line.length; ) {
    const quotedWord = /^"((?:[^"]|"")*)"(?=,|$)/.exec(line.slice(at));
    const [word = ''] = quotedWord ?? /^[^,]*/.exec(line.slice(at)) ?? [];
    if (!quotedWord && word.includes('"'))
      return {
        problem: word.startsWith('"')
          ? `must end with a quote where it begins with one: ${word}`
          : `must have quotes around all of a word or none: ${word}`,
      };
    words.push(quotedWord ? (quotedWord[1] ?? '').replaceAll('""', '"') : word);
    at += word.length + 1;
  }
  return { value: words };
}

function pairsIn(text: string): readonly string[] {
  return text.split(',').filter((part) => part !== '');
}

type GateSetting = readonly [name: string, isOn: boolean];

export const FEATURE_GATES: SettingKind<FeatureGates> = {
  name: 'map of booleans',
  placeholder: 'NAME=BOOL,…',
  zero: {},
  fromFlag: (text, before) =>
    mapReading(readEach(pairsIn(text), readGate), (gates) => ({ ...before, ...Object.fromEntries(gates) })),
  fromFile: (raw) => {
    if (!isMap(raw)) return wrongType('a map from gate to true or false', raw);
    const gates = readEach(Object.entries(raw), ([name, value]): Reading<GateSetting> => {
      const read = BOOL.fromFile(value);
      return 'value' in read
        ? { value: [name, read.value] }
        : { problem: `${name} must be true or false, and is ${describeRaw(value)}` };
    });
    return mapReading(gates, Object.fromEntries<boolean>);
  },
  print: (value) =>
    sortedGates(value)
      .map(([name, on]) => `${name}=${on}`)
      .join(','),
  toJson: (value) => Object.fromEntries(sortedGates(value)),
};

function sortedGates(gates: FeatureGates): readonly GateSetting[] {
  return Object.entries(gates).sort(([a], [b]) => (a < b ? -1 : 1));
}

function readGate(pair: string): Reading<GateSetting> {
  const [name = '', ...rest] = pair.split('=');
  if (rest.length === 0) return { problem: `${pair} must be written as ${pair}=true or ${pair}=false` };
  const read = BOOL.fromFlag(rest.join('=').trim(), undefined);
  return 'value' in read
    ? { value: [name.trim(), read.value] }
    : { problem: `${name} must be true or false` };
}

export const VERBOSITY_RULES: SettingKind<readonly VerbosityRule[]> = {
  ...AS_IS,
  name: 'list of {filePattern, verbosity}',
  placeholder: 'PATTERN=N,…',
  zero: [],
  fromFlag: (text, before) =>
    mapReading(readEach(pairsIn(text), readRule), (rules) => [...(before ?? []), ...rules]),
  fromFile: (raw) =>
    Array.isArray(raw) ? readEach(raw as readonly unknown[], readRawRule) : wrongType('a list', raw),
  print: (value) => value.map(({ filePattern, verbosity }) => `${filePattern}=${verbosity}`).join(','),
  join: (flag, file) => [...flag, ...file],
};

function readRule(pair: string): Reading<VerbosityRule> {
  const [filePattern = '', level = '', ...rest] = pair.split('=');
  if (filePattern === '' || level === '' || rest.length > 0)
    return { problem: `${quoteWord(pair)} does not have the pattern=N format` };
  const reading = UNSIGNED.fromFlag(level, undefined);
  if ('problem' in reading) return { problem: `the level in ${quoteWord(pair)} ${reading.problem}` };
  return mapReading(reading, (verbosity) => ({ filePattern, verbosity }));
}

function readRawRule(raw: unknown): Reading<VerbosityRule> {
  if (!isMap(raw))
    return { problem: `must be a list of {filePattern, verbosity}, and holds ${describeRaw(raw)}` };
  const filePattern = raw['filePattern'] ?? '';
  if (typeof filePattern !== 'string') return { problem: 'filePattern must be text' };
  const verbosity = UNSIGNED.fromFile(raw['verbosity'] ?? 0);
  if (!('value' in verbosity)) return { problem: 'verbosity must be a whole number, 0 or more' };
  return { value: { filePattern, verbosity: verbosity.value } };
}

/** Kinds of settings that are one word. */
import { parseIp } from '../model/ip.ts';
import { isPort, parseDuration, printDuration, splitAddress } from './goFormats.ts';
import type { Reading, SettingKind } from './setting.ts';

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

const TRUE = new Set(['1', 't', 'T', 'TRUE', 'true', 'True']);
const FALSE = new Set(['0', 'f', 'F', 'FALSE', 'false', 'False']);
/** Words that YAML 1.1, which kube-proxy reads, takes for booleans and YAML 1.2 does not. */
const YAML_TRUE = /^(y|yes|on)$/i;
const YAML_FALSE = /^(n|no|off)$/i;

export const BOOL: SettingKind<boolean> = {
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
    return { problem: `must be true or false, and is ${describeRaw(raw)}` };
  },
  print: String,
  toJson: (value) => value,
};

const MOST_INT = 2 ** 31 - 1;

export const INT: SettingKind<number> = {
  name: 'integer',
  placeholder: 'N',
  zero: 0,
  fromFlag: (text) => within(parseInteger(text), -(2 ** 31), MOST_INT),
  fromFile: (raw) => wholeNumber(raw, -(2 ** 31), MOST_INT),
  print: String,
  toJson: (value) => value,
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
    : { problem: `must be a whole number, without quotes, and is ${describeRaw(raw)}` };
}

function within(value: number | undefined, least: number, most: number): Reading<number> {
  if (value === undefined || !Number.isInteger(value)) return { problem: 'must be a whole number' };
  return value < least || value > most
    ? { problem: `must be between ${least} and ${most}` }
    : { value: value + 0 };
}

/** As Go reads them: decimal, `0x`, `0b`, `0o` or just `0` for octal, and `_` between digits or behind such a prefix. */
function parseInteger(text: string): number | undefined {
  const plain = text.replaceAll(/(?<=[\da-f]|0[xbo])_(?=[\da-f])/gi, '');
  const match = /^([+-]?)(0x[\da-f]+|0b[01]+|0o?[0-7]+|[1-9]\d*|0)$/i.exec(plain);
  if (!match) return undefined;
  const digits = (match[2] ?? '').toLowerCase().replace(/^0(?=[0-7])/, '0o');
  return match[1] === '-' ? -Number(digits) : Number(digits);
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
    typeof raw === 'number' && Number.isFinite(raw)
      ? { value: raw }
      : { problem: `must be a number, and is ${describeRaw(raw)}` },
};

export const STRING: SettingKind<string> = {
  name: 'string',
  placeholder: 'TEXT',
  zero: '',
  fromFlag: (text) => ({ value: text }),
  fromFile: (raw) =>
    typeof raw === 'string'
      ? { value: raw }
      : { problem: `must be text, in quotes, and is ${describeRaw(raw)}` },
  print: (value) => value,
  toJson: (value) => value,
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
      : { problem: `must be a duration in quotes, such as "30s" or "15m", and is ${describeRaw(raw)}` },
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
  name: 'duration',
  placeholder: 'DURATION',
  zero: '0s',
  fromFlag: (text) => printed(readDuration(text)),
  fromFile: (raw) => {
    if (Number.isSafeInteger(raw)) return { value: raw === 0 ? '0s' : String(raw) };
    return printed(DURATION.fromFile(raw));
  },
  print: (value) => value,
  toJson: (value) => (isNanoseconds(value) ? Number(value) : value),
};

export function flushMilliseconds(value: string): number {
  return isNanoseconds(value) ? Number(value) / 1e6 : (parseDuration(value) ?? 0);
}

function isNanoseconds(value: string): boolean {
  return /^-?\d+$/.test(value);
}

function printed(reading: Reading<number>): Reading<string> {
  return 'value' in reading ? { value: printDuration(reading.value) } : reading;
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
      : { problem: `must be a quantity such as 512 or 2Ki, and is ${describeRaw(raw)}` },
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
    name: 'string',
    placeholder: choices.join('|'),
    choices,
    zero: choices[0],
    readsLast: true,
    fromFlag: read,
    fromFile: read,
    print: (value) => value,
    toJson: (value) => value,
  };
}

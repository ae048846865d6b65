/** What the process tells its operator: one line each, in the shape that kube-proxy's logs have, or as JSON. */
import { basename } from 'node:path';
import { printable } from './printable.ts';

export interface Log {
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** Shown from this `-v` on. */
  verbose(level: number, message: string, fields?: LogFields): void;
  setVerbosity(level: number): void;
}

export type LogFields = Readonly<Record<string, unknown>>;

export interface LogOptions {
  readonly verbosity: number;
  readonly format: 'text' | 'json';
  readonly write?: (line: string) => void;
}

type Severity = 'I' | 'W' | 'E';
const SEVERITY_NAMES = { I: 'info', W: 'warning', E: 'error' } as const;

export function createLog(options: LogOptions): Log {
  const write = options.write ?? ((line) => process.stderr.write(line));
  let { verbosity } = options;
  const print = options.format === 'json' ? jsonLine : textLine;
  const emit = (severity: Severity, message: string, fields: LogFields = {}): void => {
    write(printable(lineOf(print, severity, message, fields)));
  };
  return {
    info: (message, fields) => emit('I', message, fields),
    warn: (message, fields) => emit('W', message, fields),
    error: (message, fields) => emit('E', message, fields),
    verbose: (level, message, fields) => {
      if (level <= verbosity) emit('I', message, fields);
    },
    setVerbosity: (level) => {
      verbosity = level;
    },
  };
}

/** A field that cannot be printed (a bigint, a circle) must not end whoever logs it. */
function lineOf(print: typeof textLine, severity: Severity, message: string, fields: LogFields): string {
  try {
    return print(severity, message, fields);
  } catch {
    const texts = Object.entries(fields).map(([key, value]) => [key, String(value)]);
    return print(severity, message, Object.fromEntries(texts));
  }
}

const PROGRAM = basename(process.argv[1] ?? 'junction');

/** `I1115 04:17:09.123456   12345 junction] "Message" key="value"` */
function textLine(severity: Severity, message: string, fields: LogFields): string {
  const now = new Date();
  const two = (value: number): string => String(value).padStart(2, '0');
  const day = two(now.getMonth() + 1) + two(now.getDate());
  const time = `${two(now.getHours())}:${two(now.getMinutes())}:${two(now.getSeconds())}`;
  const micros = `${String(now.getMilliseconds()).padStart(3, '0')}000`;
  const head = `${severity}${day} ${time}.${micros} ${String(process.pid).padStart(7)} ${PROGRAM}]`;
  const pairs = Object.entries(fields).map(([key, value]) => ` ${key}=${printValue(value)}`);
  return `${head} ${JSON.stringify(message)}${pairs.join('')}\n`;
}

function jsonLine(severity: Severity, message: string, fields: LogFields): string {
  const plain = Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, plainValue(value)]));
  return `${JSON.stringify({ ts: Date.now(), level: SEVERITY_NAMES[severity], msg: message, ...plain })}\n`;
}

function printValue(value: unknown): string {
  return typeof value === 'number' || typeof value === 'boolean'
    ? String(value)
    : JSON.stringify(plainValue(value));
}

function plainValue(value: unknown): unknown {
  return value instanceof Error ? value.message : value;
}

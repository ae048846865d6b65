/** The log: one line each, in the form of kube-proxy's log, or as JSON. */
import { basename } from 'node:path';
import { callerOf, type Caller, printCaller } from './caller.ts';
import { printable } from '../text/printable.ts';

export interface Log {
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** Shown from this `-v` on. */
  verbose(level: number, message: string, fields?: LogFields): void;
  setVerbosity(level: number): void;
  setModules(rules: readonly ModuleVerbosity[]): void;
}

type LogFields = Readonly<Record<string, unknown>>;

/** `--vmodule`: files whose name without its ending matches the pattern say more. */
interface ModuleVerbosity {
  /** With `*`, `?` and `[…]`. */
  readonly filePattern: string;
  readonly verbosity: number;
}

export interface LogOptions {
  readonly verbosity: number;
  readonly format: 'text' | 'json';
  readonly modules?: readonly ModuleVerbosity[];
  readonly write?: (line: string) => void;
  /** Where lines are written that are no errors, if that is another place. */
  readonly writeInfo?: (line: string) => void;
}

type Severity = 'I' | 'W' | 'E';
const SEVERITY_NAMES = { I: 'info', W: 'warning', E: 'error' } as const;

interface Line {
  readonly severity: Severity;
  /** From which `-v` on it is shown. */
  readonly level: number;
  readonly message: string;
  readonly caller: Caller;
}

export function createLog(options: LogOptions): Log {
  const { format, write = (line) => void process.stderr.write(line), writeInfo = write } = options;
  const print = format === 'json' ? jsonLine : textLine;
  let { verbosity } = options;
  let modules = toModules(options.modules ?? []);
  const emit = (line: Line, fields: LogFields = {}): void => {
    // Of split streams, warnings count as errors in the text format and not in the other, as they do for kube-proxy.
    const isInfo = line.severity === 'I' || (line.severity === 'W' && format === 'json');
    (isInfo ? writeInfo : write)(printable(lineOf(print, line, fields)));
  };
  // Named, because a function is asked who called it.
  const info: Log['info'] = (message, fields) =>
    emit({ severity: 'I', level: 0, message, caller: callerOf(info) }, fields);
  const warn: Log['warn'] = (message, fields) =>
    emit({ severity: 'W', level: 0, message, caller: callerOf(warn) }, fields);
  const error: Log['error'] = (message, fields) =>
    emit({ severity: 'E', level: 0, message, caller: callerOf(error) }, fields);
  const verbose: Log['verbose'] = (level, message, fields) => {
    if (level > verbosity && modules.length === 0) return;
    const caller = callerOf(verbose);
    if (level > verbosity && level > verbosityOf(modules, caller)) return;
    emit({ severity: 'I', level, message, caller }, fields);
  };
  return {
    info,
    warn,
    error,
    verbose,
    setVerbosity: (level) => {
      verbosity = level;
    },
    setModules: (rules) => {
      modules = toModules(rules);
    },
  };
}

function toModules(rules: readonly ModuleVerbosity[]) {
  return rules.map(({ filePattern, verbosity }) => ({ pattern: globOf(filePattern), verbosity }));
}

/** The first rule that matches counts. */
function verbosityOf(modules: ReturnType<typeof toModules>, caller: Caller): number {
  const name = basename(caller.file).replace(/\.[cm]?[jt]s$/, '');
  return modules.find(({ pattern }) => pattern.test(name))?.verbosity ?? 0;
}

/** A pattern that is no good matches nothing. */
function globOf(text: string): RegExp {
  const source = text
    .replaceAll(/[.+${}()|\\]|(?<!\[)\^/g, '\\$&')
    .replaceAll(/\*+/g, '.*')
    .replaceAll('?', '.');
  try {
    return new RegExp(`^${source}$`);
  } catch {
    return /(?!)/;
  }
}

/** A field that cannot be printed (a bigint, a circle) must not end the caller. */
function lineOf(print: typeof textLine, line: Line, fields: LogFields): string {
  try {
    return print(line, fields);
  } catch {
    const texts = Object.entries(fields).map(([key, value]) => [key, String(value)]);
    return print(line, Object.fromEntries(texts));
  }
}

/** `I1115 04:17:09.123000   12345 start.ts:28] "Message" key="value"` */
function textLine({ severity, message, caller }: Line, fields: LogFields): string {
  const now = new Date();
  const two = (value: number): string => String(value).padStart(2, '0');
  const day = two(now.getMonth() + 1) + two(now.getDate());
  const time = `${two(now.getHours())}:${two(now.getMinutes())}:${two(now.getSeconds())}`;
  const micros = `${String(now.getMilliseconds()).padStart(3, '0')}000`;
  const head = `${severity}${day} ${time}.${micros} ${String(process.pid).padStart(7)} ${printCaller(caller, 1)}]`;
  const pairs = Object.entries(fields).map(([key, value]) => ` ${key}=${printValue(value)}`);
  return `${head} ${JSON.stringify(message)}${pairs.join('')}\n`;
}

/** The keys of kube-proxy, in its order, and `level`, which it has not: there a warning looks like any other line. */
function jsonLine({ severity, level, message, caller }: Line, fields: LogFields): string {
  const plain = Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, plainValue(value)]));
  const head = {
    ts: Date.now(),
    caller: printCaller(caller, 2),
    level: SEVERITY_NAMES[severity],
    msg: message,
    ...(severity !== 'E' && { v: level }),
  };
  return `${JSON.stringify({ ...head, ...plain })}\n`;
}

function printValue(value: unknown): string {
  return typeof value === 'number' || typeof value === 'boolean'
    ? String(value)
    : JSON.stringify(plainValue(value));
}

function plainValue(value: unknown): unknown {
  return value instanceof Error ? value.message : value;
}

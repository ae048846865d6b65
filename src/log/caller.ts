/**
 * Which line of the source wrote a log line, as kube-proxy has it. Only looked up for lines that are written: one
 * frame of the stack, no text of it. In a bundle, a table that the build writes beside it leads back to the source; a
 * whole source map would cost tens of megabytes.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export interface Caller {
  /** `src/daemon/start.ts` */
  readonly file: string;
  readonly line: number;
}

const UNKNOWN: Caller = { file: '???', line: 1 };

/** The caller of the function `above`, which must be on the stack. */
export function callerOf(above: (...args: never[]) => unknown): Caller {
  const site = callSite(above);
  const name = site?.getFileName();
  return site && typeof name === 'string' ? known(name, site.getLineNumber() ?? 1) : UNKNOWN;
}

/** By name, then by line: as many as there are calls of the logger. */
const KNOWN = new Map<string, Map<number, Caller>>();

function known(name: string, line: number): Caller {
  let callers = KNOWN.get(name);
  if (!callers) KNOWN.set(name, (callers = new Map<number, Caller>()));
  let caller = callers.get(line);
  if (!caller) {
    const path = name.startsWith('file:') ? fileURLToPath(name) : name;
    caller = inSource(path, line) ?? { file: path, line };
    callers.set(line, caller);
  }
  return caller;
}

/** The last parts of the file's path, and the line: `daemon/start.ts:28`. */
export function printCaller({ file, line }: Caller, parts: 1 | 2): string {
  return `${file.split('/').slice(-parts).join('/')}:${line}`;
}

/** How V8 makes `stack`; for all errors, so it is put back at once. */
const FORMAT: {
  stackTraceLimit: number;
  prepareStackTrace?: ((error: Error, sites: NodeJS.CallSite[]) => unknown) | undefined;
} = Error;

function callSite(above: (...args: never[]) => unknown): NodeJS.CallSite | undefined {
  const { stackTraceLimit, prepareStackTrace } = FORMAT;
  const holder: { stack?: unknown } = {};
  try {
    FORMAT.stackTraceLimit = 1;
    FORMAT.prepareStackTrace = firstSite;
    Error.captureStackTrace(holder, above);
    return holder.stack as NodeJS.CallSite | undefined;
  } finally {
    FORMAT.stackTraceLimit = stackTraceLimit;
    FORMAT.prepareStackTrace = prepareStackTrace;
  }
}

function firstSite(_error: Error, sites: readonly NodeJS.CallSite[]): NodeJS.CallSite | undefined {
  return sites[0];
}

const TABLES = new Map<string, ReturnType<typeof readTable>>();

function inSource(bundle: string, line: number): Caller | undefined {
  if (!TABLES.has(bundle)) TABLES.set(bundle, readTable(`${bundle}.lines.json`));
  const table = TABLES.get(bundle);
  const place = table?.lines[line - 1] ?? 0;
  const file = table?.sources[place >>> 16];
  return place === 0 || file === undefined ? undefined : { file, line: place & 0xffff };
}

/**
 * As `scripts/support/sourceLines.mjs` writes it. For each line of the bundle, from 0: the index of the source, and 16 bits
 * for the line there; 0 if there is none.
 */
function readTable(path: string) {
  try {
    const { sources, lines } = JSON.parse(readFileSync(path, 'utf8')) as {
      readonly sources: readonly string[];
      readonly lines: string;
    };
    const bytes = Uint8Array.from(Buffer.from(lines, 'base64'));
    return { sources, lines: new Uint32Array(bytes.buffer) };
  } catch {
    // The source as it is, or a bundle that was copied alone.
    return undefined;
  }
}

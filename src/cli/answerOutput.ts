/** How answers are printed: for people as wide as the terminal, for programs as JSON or YAML; once, or again and again. */
import { setTimeout as sleep } from 'node:timers/promises';
import { flagValue, type ParsedFlags } from '../config/commandLine.ts';
import { isJunctionError } from '../errors.ts';
import type { Paint } from '../text/paint.ts';
import { printableLine } from '../text/printable.ts';
import { OWN_FLAGS } from './ownFlags.ts';
import type { Output } from './output.ts';
import { canRedraw, painter } from './table.ts';

/** For whom a text is. */
export interface Viewer {
  /** Infinite in a pipe: it ends in a file or a pager. */
  readonly columns: number;
  readonly isWide: boolean;
  readonly paint: Paint;
}

/** An answer, and how people read it. */
export interface Shown {
  /** For programs. */
  readonly answer: unknown;
  /** Printable, with colours; in pieces, because it may be long. */
  text(viewer: Viewer): Iterable<string>;
  readonly exitCode: number;
}

export async function showAnswer(
  parsed: ParsedFlags,
  output: Output,
  ask: () => Promise<Shown>,
): Promise<number> {
  return flagValue(parsed, OWN_FLAGS.watch)
    ? showAgain(parsed, output, ask)
    : show(parsed, output, await ask());
}

async function show(parsed: ParsedFlags, output: Output, shown: Shown): Promise<number> {
  const format = flagValue(parsed, OWN_FLAGS.answerOutput);
  if (format === 'json') output.out(`${JSON.stringify(shown.answer, null, 2)}\n`);
  else if (format === 'yaml') output.out(await yamlOf(shown.answer));
  else for (const piece of joined(shown.text(viewer(format === 'wide')))) output.painted(piece);
  return shown.exitCode;
}

function viewer(isWide: boolean): Viewer {
  const { columns } = process.stdout;
  return {
    columns: isWide ? Number.POSITIVE_INFINITY : (columns ?? Number.POSITIVE_INFINITY),
    isWide,
    paint: painter(process.stdout),
  };
}

const PIECE = 64 * 1024;

/** A write for each of thirty thousand lines would take longer than the lines. */
function* joined(lines: Iterable<string>): Generator<string> {
  let piece = '';
  for (const line of lines) {
    piece += line;
    if (piece.length < PIECE) continue;
    yield piece;
    piece = '';
  }
  if (piece !== '') yield piece;
}

const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;

/** Text that a terminal would obey is written as JSON has it, and JSON is YAML. */
async function yamlOf(answer: unknown): Promise<string> {
  const { printYaml } = await import('../text/printYaml.ts');
  const json = JSON.stringify(answer, null, 2);
  const plain: unknown = JSON.parse(json);
  const text = printYaml(plain);
  return UNPRINTABLE.test(text.replaceAll('\n', '')) ? `${json}\n` : text;
}

const INTERVAL_MS = 2000;
const HOME_AND_CLEAR = '\u001b[H\u001b[J';

/** Until Ctrl-C, or until nobody reads it. A proxy that restarts is waited for. */
async function showAgain(parsed: ParsedFlags, output: Output, ask: () => Promise<Shown>): Promise<number> {
  const format = flagValue(parsed, OWN_FLAGS.answerOutput);
  const isRedrawn = canRedraw(process.stdout) && (format === 'table' || format === 'wide');
  let before = '';
  let isAway = false;
  for (let isFirst = true; output.closed?.aborted !== true; isFirst = false) {
    try {
      const shown = await ask();
      if (isAway) output.err('junction: the proxy answers again\n');
      isAway = false;
      const text = await textOf(shown, format);
      if (isRedrawn) output.painted(HOME_AND_CLEAR + screenful(text));
      else if (text !== before) output.painted(text);
      before = text;
    } catch (error) {
      if (isFirst || !isJunctionError(error, 'LOCAL_API_UNREACHABLE')) throw error;
      if (!isAway) output.err(`junction: ${printableLine(error.message)}; waiting for it\n`);
      isAway = true;
    }
    await output.finished?.();
    await sleep(INTERVAL_MS, undefined, output.closed && { signal: output.closed }).catch(() => undefined);
  }
  return 0;
}

async function textOf(shown: Shown, format: string): Promise<string> {
  if (format === 'json') return `${JSON.stringify(shown.answer)}\n`;
  if (format === 'yaml') return `---\n${await yamlOf(shown.answer)}`;
  return [...joined(shown.text(viewer(format === 'wide')))].join('');
}

/** As many lines as there is room for. */
function screenful(text: string): string {
  const lines = text.split('\n');
  const room = (process.stdout.rows ?? lines.length + 1) - 2;
  if (lines.length - 1 <= room) return text;
  return `${lines.slice(0, room).join('\n')}\n… ${lines.length - 1 - room} more lines\n`;
}

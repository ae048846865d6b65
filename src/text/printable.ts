/**
 * Text as it may be written to a terminal. Names of files and objects come from others, and a terminal obeys control
 * characters; characters that turn the direction of writing can show one name as another.
 *
 * The escapes are those of JSON, so JSON stays what it was. Used where text is written: by the log, and by the commands.
 */

// Cf holds the bidirectional overrides and zero-width characters; Cs is half a character; Zl and Zp end lines.
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** Line ends and tabs stay: for text of several lines, each of which is printable. */
export function printable(text: string): string {
  return text.replaceAll(UNPRINTABLE, (character) =>
    character === '\n' || character === '\t' ? character : escaped(character),
  );
}

/** On one line, whatever is in it. */
export function printableLine(text: string): string {
  return text.replaceAll(UNPRINTABLE, escaped);
}

const NAMED: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

function escaped(character: string): string {
  const units = Array.from({ length: character.length }, (_, index) => character.charCodeAt(index));
  const code = (unit: number): string => `\\u${unit.toString(16).padStart(4, '0')}`;
  return NAMED[character] ?? units.map(code).join('');
}

const SHOWN = 40;

/** A value as it may stand in a message: short, on one line, nothing that a terminal would obey. */
export function quote(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  switch (typeof value) {
    case 'string':
      return quoteText(value);
    case 'number':
    case 'boolean':
      return String(value);
    case 'undefined':
      return 'nothing';
    case 'bigint':
      return 'a very large number';
    case 'object':
      return 'a map';
    default:
      return `a ${typeof value}`;
  }
}

function quoteText(text: string): string {
  const shown = escape(text.slice(0, SHOWN));
  return text.length > SHOWN ? `"${shown}…" (${text.length} characters)` : `"${shown}"`;
}

const QUOTED_NAMES: Readonly<Record<string, string>> = { ...NAMED, '"': '\\"', '\\': '\\\\' };

/** For text between quotes. */
export function escape(text: string): string {
  return text.replaceAll(
    /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}"\\]/gu,
    (character) => QUOTED_NAMES[character] ?? `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  );
}

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
  if (value === null || typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (Array.isArray(value)) return 'a list';
  if (typeof value !== 'string') return TYPES[typeof value] ?? `a ${typeof value}`;
  const shown = escape(value.slice(0, SHOWN));
  return value.length > SHOWN ? `"${shown}…" (${value.length} characters)` : `"${shown}"`;
}

const TYPES: Readonly<Record<string, string>> = {
  undefined: 'nothing',
  bigint: 'a very large number',
  object: 'a map',
};

const QUOTED_NAMES: Readonly<Record<string, string>> = { ...NAMED, '"': '\\"', '\\': '\\\\' };

/** For text between quotes. */
export function escape(text: string): string {
  return text.replaceAll(
    /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}"\\]/gu,
    (character) => QUOTED_NAMES[character] ?? `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  );
}

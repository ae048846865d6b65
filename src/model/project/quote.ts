/** A value as it may stand in a message: short, on one line, nothing that a terminal would obey. */
const SHOWN = 40;

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

const NAMED: Readonly<Record<string, string>> = {
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '"': '\\"',
  '\\': '\\\\',
};

// Cf holds the bidirectional overrides, with which a text can show itself as another; Cs is half a character.
export function escape(text: string): string {
  return text.replaceAll(
    /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}"\\]/gu,
    (character) => NAMED[character] ?? `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  );
}

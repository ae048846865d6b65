/**
 * Where things stand in a JSON text.
 *
 * A cluster's dump is JSON of many megabytes, for which the YAML parser needs minutes. `JSON.parse` reads it at once
 * but keeps no positions, so they are looked up here, when there is a problem to point at. The text is known to be
 * valid JSON: `JSON.parse` took it.
 */
type Path = readonly (string | number)[];

/** Offset of the value at this path, or of the nearest parent that exists. Maps and lists are shown by their key. */
export function offsetInJson(text: string, path: Path): number {
  let value = skipSpace(text, 0);
  let shown = value;
  for (const part of path) {
    const found = findChild(text, value, part);
    if (found === undefined) break;
    value = found.value;
    shown = found.key !== undefined && isCollection(text, value) ? found.key : value;
  }
  return shown;
}

interface Child {
  readonly key: number | undefined;
  readonly value: number;
}

function findChild(text: string, parent: number, part: string | number): Child | undefined {
  if (!isCollection(text, parent)) return undefined;
  const inMap = text[parent] === '{';
  let at = skipSpace(text, parent + 1);
  for (let index = 0; !isEnd(text, at); index++) {
    const key = inMap ? at : undefined;
    const name = inMap ? (JSON.parse(text.slice(at, skipString(text, at))) as string) : index;
    if (inMap) at = skipSpace(text, skipSpace(text, skipString(text, at)) + 1);
    if (name === part) return { key, value: at };
    at = skipSpace(text, skipValue(text, at));
    if (text[at] === ',') at = skipSpace(text, at + 1);
  }
  return undefined;
}

/** Offset of the first key that its map already has. `JSON.parse` would let the last one win. */
export function findRepeatedKey(text: string): number | undefined {
  const open: (Set<string> | undefined)[] = [];
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === '{') open.push(new Set());
    else if (character === '[') open.push(undefined);
    else if (character === '}' || character === ']') open.pop();
    else if (character === '"') {
      const end = skipString(text, at);
      const keys = open.at(-1);
      if (keys !== undefined && text[skipSpace(text, end)] === ':') {
        const key = text.slice(at, end);
        if (keys.has(key)) return at;
        keys.add(key);
      }
      at = end - 1;
    }
  }
  return undefined;
}

function isCollection(text: string, at: number): boolean {
  return text[at] === '{' || text[at] === '[';
}

function isEnd(text: string, at: number): boolean {
  return at >= text.length || text[at] === '}' || text[at] === ']';
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (' \t\r\n'.includes(text[at] ?? 'end')) at += 1;
  return at;
}

function skipString(text: string, from: number): number {
  let at = from + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  return at + 1;
}

function skipValue(text: string, from: number): number {
  if (text[from] === '"') return skipString(text, from);
  let depth = 0;
  let at = from;
  while (at < text.length) {
    if (text[at] === '"') {
      at = skipString(text, at);
      continue;
    }
    if (depth === 0 && (text[at] === ',' || isEnd(text, at))) return at;
    if (isCollection(text, at)) depth += 1;
    if (isEnd(text, at)) depth -= 1;
    at += 1;
    if (depth === 0 && isCollection(text, from)) return at;
  }
  return at;
}

/**
 * Where things stand in a JSON text.
 *
 * A cluster's dump is JSON of many megabytes, for which the YAML parser needs minutes. `JSON.parse` reads it at once
 * but keeps no positions, so they are looked up here, when there is a problem to point at. The text is known to be
 * valid JSON: `JSON.parse` took it.
 */
import type { RepeatedKey, TextPath } from './yaml.ts';

interface Child {
  readonly key: number | undefined;
  readonly value: number;
}

export class JsonPositions {
  readonly #text: string;
  /** A dump is one long list, and every item's place is asked for. */
  readonly #lists = new Map<number, readonly Child[]>();

  constructor(text: string) {
    this.#text = text;
  }

  /**
   * Offset of the value at this path, or of its key, or of the nearest parent that exists. Maps and lists are shown by
   * their key anyway.
   */
  offsetOf(path: TextPath, part: 'key' | 'value' = 'value'): number {
    let value = skipSpace(this.#text, 0);
    let shown = value;
    for (const step of path) {
      const child = typeof step === 'number' ? this.#items(value)[step] : this.#field(value, step);
      if (child === undefined) break;
      value = child.value;
      const atKey = part === 'key' || isCollection(this.#text, value);
      shown = child.key !== undefined && atKey ? child.key : value;
    }
    return shown;
  }

  #field(map: number, name: string): Child | undefined {
    const text = this.#text;
    if (text[map] !== '{') return undefined;
    for (let key = skipSpace(text, map + 1); !isEnd(text, key); ) {
      const keyEnd = skipString(text, key);
      const value = skipSpace(text, skipSpace(text, keyEnd) + 1);
      if (JSON.parse(text.slice(key, keyEnd)) === name) return { key, value };
      key = skipComma(text, skipValue(text, value));
    }
    return undefined;
  }

  #items(list: number): readonly Child[] {
    const text = this.#text;
    if (text[list] !== '[') return [];
    const known = this.#lists.get(list);
    if (known !== undefined) return known;
    const items: Child[] = [];
    for (let value = skipSpace(text, list + 1); !isEnd(text, value); ) {
      items.push({ key: undefined, value });
      value = skipComma(text, skipValue(text, value));
    }
    this.#lists.set(list, items);
    return items;
  }
}

interface JsonText {
  readonly raw: unknown;
  readonly text: string;
  readonly offset: number;
}

/** More objects than a cluster has; 64 MiB of `{}` would be thirty million. */
const MOST_TEXTS = 200_000;

/** One JSON text, or several one after the other, as of `jq '.items[]'`; nothing if this is no JSON. */
export function readJsonTexts(text: string): readonly JsonText[] | undefined {
  try {
    return [{ raw: JSON.parse(text), text, offset: 0 }];
  } catch {
    return readStream(text);
  }
}

function readStream(text: string): readonly JsonText[] | undefined {
  const texts: JsonText[] = [];
  for (let offset = skipSpace(text, 0); offset < text.length; ) {
    if (!isCollection(text, offset) || texts.length === MOST_TEXTS) return undefined;
    const end = skipValue(text, offset);
    const piece = text.slice(offset, end);
    try {
      texts.push({ raw: JSON.parse(piece), text: piece, offset });
    } catch {
      return undefined;
    }
    offset = skipSpace(text, end);
  }
  return texts;
}

/** The first key that its map already has. `JSON.parse` would let the last one win. */
export function findRepeatedKey(text: string): Omit<RepeatedKey, 'path'> | undefined {
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
        if (keys.has(key)) return { offset: at, name: key.slice(1, -1) };
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

function skipComma(text: string, from: number): number {
  const at = skipSpace(text, from);
  return text[at] === ',' ? skipSpace(text, at + 1) : at;
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

/**
 * YAML by the library `yaml`, within limits: a file of some hundred kilobytes must not keep it busy for minutes, or take
 * all memory. It compares each key of a map with all keys before it, so repeated keys are found here; it prints a key that
 * is a map again on each level above it; each of a hundred thousand errors would carry a stack trace.
 */
import {
  Composer,
  type CST,
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  Lexer,
  type Node,
  type Pair,
  Parser,
} from 'yaml';

/** Why a document, or the text from there on, cannot be read. */
interface YamlFault {
  readonly offset: number;
  readonly message: string;
  /** The parser's name of an error of syntax. */
  readonly code?: string;
}

/** A document as plain values. */
export interface YamlValue {
  readonly raw: unknown;
  readonly offset: number;
  /** Keys that their map has already. */
  readonly repeatedKeys: readonly RepeatedKey[];
  /** Of the key at this path, or of the nearest parent that exists. Of a repeated key the last one counts. */
  readonly offsetOfKey: (path: readonly string[]) => number;
  /** Of each item of the list `items`; none where there is none. */
  readonly offsetsOfItems: () => readonly number[];
}

interface RepeatedKey {
  readonly offset: number;
  readonly name: string;
  readonly path: readonly string[];
}

/** Scalars, brackets, commas, line ends: the parser takes some hundred bytes for each. */
const MAX_LEXEMES = 4_000_000;
/** The composer goes through nested parts by recursion. */
const MAX_DEPTH = 100;
/** The library looks for what an alias stands for among all anchors. */
const MAX_ALIASES = 1000;
/** An alias of aliases counts as often as it multiplies them. */
const MAX_USES_OF_AN_ANCHOR = 100;

/** The core schema whatever a %YAML line says: version 1.1 would turn times into Date objects. */
const OPTIONS = {
  prettyErrors: false,
  uniqueKeys: false,
  merge: true,
  schema: 'core',
  logLevel: 'silent',
} as const;

/** The documents of a text; none where it has only comments. */
export function readYaml(text: string): readonly (YamlValue | YamlFault)[] {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    const parser = new Parser();
    const tokens: CST.Token[] = [];
    let lexemes = 0;
    for (const lexeme of new Lexer().lex(text)) {
      lexemes += 1;
      if (lexemes > MAX_LEXEMES) return [{ offset: parser.offset, message: TOO_LONG }];
      for (const token of parser.next(lexeme)) tokens.push(token);
      if (parser.stack.length > MAX_DEPTH) return [{ offset: parser.offset, message: TOO_DEEP }];
    }
    for (const token of parser.end()) tokens.push(token);
    return Array.from(new Composer(OPTIONS).compose(tokens, false, text.length), readDocument);
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

const TOO_LONG = 'it is too long; write it as JSON, or as several documents';
const TOO_DEEP = `it is nested more than ${MAX_DEPTH} deep`;

function readDocument(document: Document): YamlValue | YamlFault {
  const { contents, errors } = document;
  const [error] = errors;
  if (error) return { offset: error.pos[0], message: error.message, code: error.code };
  const walk = new Walk();
  walk.visit(contents, []);
  if (walk.fault) return walk.fault;
  const offset = startOf(contents);
  try {
    return {
      raw: document.toJS({ maxAliasCount: MAX_USES_OF_AN_ANCHOR }) as unknown,
      offset,
      repeatedKeys: walk.repeatedKeys,
      offsetOfKey: (path) => offsetOfKey(contents, path),
      offsetsOfItems: () => {
        const list = isMap(contents) ? contents.get('items', true) : undefined;
        return isSeq(list) ? list.items.map(startOf) : [];
      },
    };
  } catch (failure) {
    return { offset, message: failure instanceof Error ? failure.message : String(failure) };
  }
}

class Walk {
  readonly repeatedKeys: RepeatedKey[] = [];
  fault: YamlFault | undefined;
  readonly #anchors = new Set<string>();
  #aliases = 0;

  visit(node: unknown, path: readonly string[]): void {
    if (this.fault || !isNode(node)) return;
    if (isAlias(node)) {
      this.#aliases += 1;
      if (this.#aliases > MAX_ALIASES) this.#fail(node, `it has more than ${MAX_ALIASES} aliases`);
      if (!this.#anchors.has(node.source))
        this.#fail(node, `Unresolved alias (the anchor must be set before the alias): ${node.source}`);
      return;
    }
    if (node.anchor !== undefined) this.#anchors.add(node.anchor);
    if (isSeq(node))
      for (const [index, item] of node.items.entries()) this.visit(item, [...path, String(index)]);
    if (!isMap(node)) return;
    const names = new Set<string>();
    for (const { key, value } of node.items) {
      if (isNode(key) && !isScalar(key)) return this.#fail(key, 'a key is a map, a list or an alias');
      const name = keyName(key);
      const inner = [...path, name];
      if (names.has(name) && name !== '<<')
        this.repeatedKeys.push({ offset: startOf(key), name, path: inner });
      names.add(name);
      this.visit(key, path);
      this.visit(value, inner);
    }
  }

  #fail(node: Node, message: string): void {
    this.fault ??= { offset: startOf(node), message };
  }
}

/** A key may be a number, and is text in the value that was made of it. */
function keyName(key: unknown): string {
  return isScalar(key) ? String(key.value) : '';
}

function offsetOfKey(contents: unknown, path: readonly string[]): number {
  let node = contents;
  let offset = startOf(node);
  for (const step of path) {
    const pair: Pair | undefined = isMap(node)
      ? node.items.findLast(({ key }) => keyName(key) === step)
      : undefined;
    if (!pair) break;
    offset = startOf(pair.key);
    node = pair.value;
  }
  return offset;
}

function startOf(node: unknown): number {
  return (isNode(node) ? node.range?.[0] : undefined) ?? 0;
}

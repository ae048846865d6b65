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

/** Why a text cannot be read, and where. */
interface YamlFault {
  readonly offset: number;
  readonly message: string;
}

/** A document without errors of syntax, as plain values. */
export interface YamlValue {
  readonly raw: unknown;
  /** Keys that their map has already. */
  readonly repeatedKeys: readonly RepeatedKey[];
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

/** Errors of syntax are in the documents; a fault is a text that is too much. */
export function parseYaml(text: string): { readonly documents: readonly Document[] } | YamlFault {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    const parser = new Parser();
    const tokens: CST.Token[] = [];
    let lexemes = 0;
    for (const lexeme of new Lexer().lex(text)) {
      lexemes += 1;
      if (lexemes > MAX_LEXEMES) return { offset: parser.offset, message: TOO_LONG };
      for (const token of parser.next(lexeme)) tokens.push(token);
      if (parser.stack.length > MAX_DEPTH) return { offset: parser.offset, message: TOO_DEEP };
    }
    for (const token of parser.end()) tokens.push(token);
    return { documents: [...new Composer(OPTIONS).compose(tokens, false, text.length)] };
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

const TOO_LONG = 'it is too long; write it as JSON, or as several documents';
const TOO_DEEP = `it is nested more than ${MAX_DEPTH} deep`;

/** For a document without errors of syntax. */
export function readDocument(document: Document): YamlValue | YamlFault {
  const walk = new Walk();
  walk.visit(document.contents, []);
  if (walk.fault) return walk.fault;
  try {
    const raw = document.toJS({ maxAliasCount: MAX_USES_OF_AN_ANCHOR }) as unknown;
    return { raw, repeatedKeys: walk.repeatedKeys };
  } catch (error) {
    return {
      offset: startOf(document.contents),
      message: error instanceof Error ? error.message : String(error),
    };
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

/** Offset of the key at this path, or of the nearest parent that exists. Of a repeated key the last one counts. */
export function offsetOfKey(document: Document, path: readonly string[]): number {
  let node: unknown = document.contents;
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

/** Offsets of the items of the list that a key of the document has; none where it is no list. */
export function offsetsOfItems(document: Document, key: string): readonly number[] {
  const list = isMap(document.contents) ? document.contents.get(key, true) : undefined;
  return isSeq(list) ? list.items.map(startOf) : [];
}

function startOf(node: unknown): number {
  return (isNode(node) ? node.range?.[0] : undefined) ?? 0;
}

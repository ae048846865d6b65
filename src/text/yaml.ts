/**
 * YAML in bounded time. The library (yaml 2.9.1) is linear for most texts and takes minutes for some that are small: each key of
 * a map is compared with all before it, each alias looks through all anchors, a key that is a map is printed again on each
 * level above it (nested 30 deep: minutes), and each of a hundred thousand errors carries a stack trace. So keys are compared here, and what Kubernetes has no use for is limited.
 */
import {
  type Alias,
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
  Parser,
  type YAMLMap,
} from 'yaml';

export interface YamlFault {
  readonly offset: number;
  readonly message: string;
}

export interface Yaml {
  /** The core schema whatever a %YAML line says: version 1.1 would turn times into Date objects. */
  readonly documents: readonly Document[];
}

/** The parser takes a hundred bytes of memory, and more, for each of these. */
const MOST_CHARACTERS = 16 * 1024 * 1024;
/** Brackets, commas, scalars, line ends: a text of nothing but commas has one for each character. */
const MOST_LEXEMES = 4_000_000;
const MOST_DEPTH = 100;
const MOST_ALIASES = 1000;
const MOST_ANCHORS = 10_000;
/** How many values aliases may add to those that are written. */
const MOST_COPIES = 1_000_000;
/** How often one anchor may be used. */
export const MOST_USES = 100;

/** Errors of syntax are in the documents; a fault is a text that is too much. */
export function parseYaml(text: string, onNewLine?: (offset: number) => void): Yaml | YamlFault {
  if (text.length > MOST_CHARACTERS) return { offset: 0, message: `it is too long; ${REMEDY}` };
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    const parsed = parseTokens(text, onNewLine);
    if ('message' in parsed) return parsed;
    const options = {
      prettyErrors: false,
      uniqueKeys: false,
      merge: true,
      schema: 'core',
      logLevel: 'silent',
    } as const;
    return { documents: [...new Composer(options).compose(parsed.tokens, false, text.length)] };
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

const REMEDY = 'write it as JSON, or as several documents';

interface Parsed {
  readonly tokens: readonly CST.Token[];
}

function parseTokens(text: string, onNewLine?: (offset: number) => void): Parsed | YamlFault {
  const parser = new Parser(onNewLine);
  const tokens: CST.Token[] = [];
  let lexemes = 0;
  onNewLine?.(0);
  for (const lexeme of new Lexer().lex(text)) {
    lexemes += 1;
    if (lexemes > MOST_LEXEMES) return { offset: parser.offset, message: `it is too long; ${REMEDY}` };
    for (const token of parser.next(lexeme)) tokens.push(token);
    // The composer would go through it by recursion.
    if (parser.stack.length > MOST_DEPTH) return { offset: parser.offset, message: TOO_DEEP };
  }
  for (const token of parser.end()) tokens.push(token);
  return { tokens };
}

const TOO_DEEP = `it is nested more than ${MOST_DEPTH} deep`;

export interface RepeatedKey {
  readonly offset: number;
  readonly name: string;
}

export interface Survey {
  /** What each alias stands for. */
  readonly targets: ReadonlyMap<Alias, Node>;
  /** Keys that their map has already. */
  readonly repeatedKeys: readonly RepeatedKey[];
}

/** Goes once through a document without errors. A fault: it must not be converted with `toJS`. */
export function survey(document: Document): Survey | YamlFault {
  const surveyor = new Surveyor();
  if (document.contents !== null) surveyor.visit(document.contents);
  return surveyor.fault ?? surveyor;
}

class Surveyor implements Survey {
  readonly targets = new Map<Alias, Node>();
  readonly repeatedKeys: RepeatedKey[] = [];
  fault: YamlFault | undefined;
  readonly #anchored = new Map<string, Node>();
  /** With all that aliases in it stand for; absent while the node is still being visited. */
  readonly #sizes = new Map<Node, number>();
  #anchors = 0;
  #aliases = 0;
  #copies = 0;

  /** Answers how many values the node stands for. */
  visit(node: unknown): number {
    if (this.fault || !isNode(node)) return 1;
    if (isAlias(node)) return this.#alias(node);
    this.#noteAnchor(node);
    let size = 1;
    if (isMap(node)) size += this.#map(node);
    else if (isSeq(node)) for (const item of node.items) size += this.visit(item);
    if (node.anchor !== undefined) this.#sizes.set(node, size);
    return size;
  }

  #map(map: YAMLMap): number {
    const keys = new Set<string>();
    let size = 0;
    for (const { key, value } of map.items) {
      size += this.visit(key) + this.visit(value);
      const scalar = isAlias(key) ? this.targets.get(key) : key;
      if (isMap(scalar) || isSeq(scalar)) this.#fail(key, 'a key is a map or a list');
      const name = isScalar(scalar) ? (scalar.source ?? String(scalar.value)) : '';
      if (keys.has(name) && name !== '<<') this.repeatedKeys.push({ offset: startOf(key), name });
      keys.add(name);
    }
    return size;
  }

  #noteAnchor(node: Node & { anchor?: string }): void {
    if (node.anchor === undefined) return;
    this.#anchors += 1;
    if (this.#anchors > MOST_ANCHORS) this.#fail(node, `it has more than ${MOST_ANCHORS} anchors`);
    this.#anchored.set(node.anchor, node);
  }

  #alias(alias: Alias): number {
    const target = this.#anchored.get(alias.source);
    if (target === undefined) {
      this.#fail(alias, `Unresolved alias (the anchor must be set before the alias): ${alias.source}`);
      return 1;
    }
    const size = this.#sizes.get(target);
    if (size === undefined) this.#fail(alias, 'an alias stands inside of what it stands for');
    this.#aliases += 1;
    this.#copies += size ?? 1;
    if (this.#aliases > MOST_ALIASES) this.#fail(alias, `it has more than ${MOST_ALIASES} aliases`);
    if (this.#copies > MOST_COPIES) {
      this.#fail(alias, `its aliases stand for more than ${MOST_COPIES} values`);
    }
    this.targets.set(alias, target);
    return size ?? 1;
  }

  #fail(node: unknown, message: string): void {
    this.fault ??= { offset: startOf(node), message };
  }
}

function startOf(node: unknown): number {
  return (isNode(node) ? node.range?.[0] : undefined) ?? 0;
}

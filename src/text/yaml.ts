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
  isCollection,
  isMap,
  isNode,
  isScalar,
  isSeq,
  Lexer,
  type Node,
  type Pair,
  Parser,
  type YAMLMap,
} from 'yaml';

/** Why a text cannot be read, and where. */
export interface YamlFault {
  readonly offset: number;
  readonly message: string;
  /** The library refused to convert it. */
  readonly isConversion?: true;
}

/** Fields by name, items by number. */
export type TextPath = readonly (string | number)[];

/** A document without errors of syntax, as plain values. */
export interface YamlValue {
  readonly raw: unknown;
  /** Keys that their map has already. */
  readonly repeatedKeys: readonly RepeatedKey[];
  /**
   * Offset of the value at this path, or of its key, or of the nearest parent that exists. Maps and lists are shown by
   * their key anyway. Of a repeated key the last one counts.
   */
  offsetOf(path: TextPath, part?: 'key' | 'value'): number;
}

export interface RepeatedKey {
  readonly offset: number;
  readonly name: string;
  readonly path: readonly string[];
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
const MOST_USES = 100;

/** Errors of syntax are in the documents; a fault is a text that is too much. */
export function parseYaml(text: string): { readonly documents: readonly Document[] } | YamlFault {
  if (text.length > MOST_CHARACTERS) return { offset: 0, message: `it is too long; ${REMEDY}` };
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    const parsed = parseTokens(text);
    if ('message' in parsed) return parsed;
    return { documents: [...new Composer(OPTIONS).compose(parsed.tokens, false, text.length)] };
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** The core schema whatever a %YAML line says: version 1.1 would turn times into Date objects. */
const OPTIONS = {
  prettyErrors: false,
  uniqueKeys: false,
  merge: true,
  schema: 'core',
  logLevel: 'silent',
} as const;

const REMEDY = 'write it as JSON, or as several documents';

function parseTokens(text: string): { readonly tokens: readonly CST.Token[] } | YamlFault {
  const parser = new Parser();
  const tokens: CST.Token[] = [];
  let lexemes = 0;
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

/** For a document without errors of syntax. */
export function readDocument(document: Document): YamlValue | YamlFault {
  const surveyor = new Surveyor();
  if (document.contents !== null) surveyor.visit(document.contents);
  const { fault, repeatedKeys, targets } = surveyor;
  if (fault) return fault;
  try {
    const raw = document.toJS({ maxAliasCount: MOST_USES }) as unknown;
    return { raw, repeatedKeys, offsetOf: (path, part) => offsetOf(document, targets, path, part) };
  } catch (error) {
    const message = error instanceof Error ? error.message : 'unknown reason';
    return { offset: startOf(document.contents) ?? 0, message, isConversion: true };
  }
}

/** Goes once through a document. After a fault it must not be converted. */
class Surveyor {
  /** What each alias stands for. */
  readonly targets = new Map<Alias, Node>();
  readonly repeatedKeys: RepeatedKey[] = [];
  fault: YamlFault | undefined;
  readonly #anchored = new Map<string, Node>();
  /** With all that aliases in it stand for; absent while the node is still being visited. */
  readonly #sizes = new Map<Node, number>();
  readonly #path: string[] = [];
  #anchors = 0;
  #aliases = 0;
  #copies = 0;

  /** Returns how many values the node stands for. */
  visit(node: unknown): number {
    if (this.fault || !isNode(node)) return 1;
    if (isAlias(node)) return this.#alias(node);
    this.#noteAnchor(node);
    let size = 1;
    if (isMap(node)) size += this.#map(node);
    else if (isSeq(node)) {
      for (const [index, item] of node.items.entries()) size += this.#visitAt(String(index), item);
    }
    if (node.anchor !== undefined) this.#sizes.set(node, size);
    return size;
  }

  #map(map: YAMLMap): number {
    const keys = new Set<string>();
    let size = 0;
    for (const { key, value } of map.items) {
      size += this.visit(key);
      const scalar = isAlias(key) ? this.targets.get(key) : key;
      // A map is not printed: that is what takes minutes.
      const step = isScalar(scalar) ? String(scalar.value) : '';
      size += this.#visitAt(step, value);
      if (isMap(scalar) || isSeq(scalar)) this.#fail(key, 'a key is a map or a list');
      const name = isScalar(scalar) ? (scalar.source ?? String(scalar.value)) : '';
      if (keys.has(name) && name !== '<<') {
        this.repeatedKeys.push({ offset: startOf(key) ?? 0, name, path: [...this.#path, step] });
      }
      keys.add(name);
    }
    return size;
  }

  #visitAt(step: string, node: unknown): number {
    this.#path.push(step);
    const size = this.visit(node);
    this.#path.pop();
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
    this.fault ??= { offset: startOf(node) ?? 0, message };
  }
}

type Child = Pick<Pair, 'key' | 'value'>;

function offsetOf(
  document: Document,
  targets: ReadonlyMap<Alias, Node>,
  path: TextPath,
  part: 'key' | 'value' = 'value',
): number {
  let node: unknown = document.contents;
  let shown = startOf(node) ?? 0;
  for (const step of path) {
    const child = findChild(isAlias(node) ? targets.get(node) : node, step);
    if (child === undefined) break;
    const atKey = isShownByKey(child) || (part === 'key' && child.key !== undefined);
    shown = (atKey ? startOf(child.key) : startOf(child.value)) ?? shown;
    node = child.value;
  }
  return shown;
}

function findChild(parent: unknown, step: string | number): Child | undefined {
  if (isSeq(parent) && typeof step === 'number') {
    return step < parent.items.length ? { key: undefined, value: parent.items[step] } : undefined;
  }
  if (!isMap(parent)) return undefined;
  // A key may be a number, and is text in the value that was made of it.
  return parent.items.findLast(({ key }: Pair) => isScalar(key) && String(key.value) === step);
}

function isShownByKey({ key, value }: Child): boolean {
  if (key === undefined) return false;
  const isEmpty = isScalar(value) && value.range?.[0] === value.range?.[1];
  return !isNode(value) || isCollection(value) || isEmpty;
}

function startOf(node: unknown): number | undefined {
  return isNode(node) ? node.range?.[0] : undefined;
}

/** A YAML or JSON text as plain values, with a way to say where each part of it stands. */
import {
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Pair,
  parseAllDocuments,
  visit,
} from 'yaml';

export interface Position {
  readonly line: number;
  readonly column: number;
}

export interface ParsedText {
  readonly raw: unknown;
  /** Where this key stands or, if there is no such key, the nearest that encloses it. */
  positionOf(path: readonly string[]): Position;
  /** Keys that stand twice in one map, at their later place; the later value counts. */
  readonly duplicates: readonly Duplicate[];
  readonly hasMoreDocuments: boolean;
}

export interface Duplicate {
  readonly path: readonly string[];
  readonly position: Position;
}

export interface Fault {
  readonly position: Position;
  readonly message: string;
}

/** One missing bracket can be followed by an error on every line below it. */
const MOST_FAULTS = 5;

export function parseText(text: string): ParsedText | { readonly faults: readonly Fault[] } {
  const lines = new LineCounter();
  const position = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  const documents: readonly Document[] = parseAllDocuments(text.replace(/^\uFEFF/, ''), {
    lineCounter: lines,
    prettyErrors: false,
    uniqueKeys: false,
    merge: true,
    schema: 'core',
    logLevel: 'silent',
  });
  const [document] = documents;
  if (!document) return fault(position(0), 'the file is empty');
  if (document.errors.length > 0) {
    return {
      faults: document.errors
        .slice(0, MOST_FAULTS)
        .map(({ pos, message }) => ({ position: position(pos[0]), message: firstLine(message) })),
    };
  }
  try {
    return {
      raw: document.toJS(),
      positionOf: (path) => position(offsetOf(document, path)),
      duplicates: [...duplicateKeys(document, document.contents, [])].map(({ path, offset }) => ({
        path,
        position: position(offset),
      })),
      hasMoreDocuments: documents.length > 1,
    };
  } catch (error) {
    return fault(
      position(offsetOfUnknownAlias(document)),
      error instanceof Error ? firstLine(error.message) : String(error),
    );
  }
}

function offsetOfUnknownAlias(document: Document): number {
  let offset = 0;
  visit(document, {
    Alias: (_, alias) => {
      if (alias.resolve(document) !== undefined) return undefined;
      offset = startOf(alias) ?? 0;
      return visit.BREAK;
    },
  });
  return offset;
}

function fault(position: Position, message: string): { readonly faults: readonly Fault[] } {
  return { faults: [{ position, message }] };
}

function firstLine(message: string): string {
  return message.split('\n')[0] ?? message;
}

function offsetOf(document: Document, path: readonly string[]): number {
  let node: unknown = document.contents;
  let offset = startOf(node) ?? 0;
  for (const key of path) {
    const pair = pairsOf(document, node).findLast((other) => keyOf(other) === key);
    if (!pair) break;
    offset = startOf(pair.key) ?? offset;
    node = pair.value;
  }
  return offset;
}

interface Found {
  readonly path: readonly string[];
  readonly offset: number;
}

function* duplicateKeys(document: Document, node: unknown, path: readonly string[]): Generator<Found> {
  const seen = new Set<string>();
  for (const pair of pairsOf(document, node)) {
    const key = keyOf(pair);
    if (seen.has(key) && key !== '<<') yield { path: [...path, key], offset: startOf(pair.key) ?? 0 };
    seen.add(key);
    // What an alias stands for has been looked at where it is written.
    if (!isAlias(pair.value)) yield* duplicateKeys(document, pair.value, [...path, key]);
  }
  if (isSeq(node)) {
    for (const [index, item] of node.items.entries()) {
      yield* duplicateKeys(document, item, [...path, String(index)]);
    }
  }
}

function pairsOf(document: Document, node: unknown): readonly Pair[] {
  const target = isAlias(node) ? node.resolve(document) : node;
  return isMap(target) ? target.items : [];
}

function keyOf({ key }: Pair): string {
  return String(isScalar(key) ? key.value : key);
}

function startOf(node: unknown): number | undefined {
  return isNode(node) ? node.range?.[0] : undefined;
}

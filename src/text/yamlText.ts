/** A YAML or JSON text as plain values, with a way to say where each part of it stands. */
import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
} from 'yaml';
import { MOST_USES, parseYaml, survey } from './yaml.ts';

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
  const yaml = parseYaml(text.replace(/^\uFEFF/, ''), lines.addNewLine);
  if ('message' in yaml) return fault(position(yaml.offset), `the file cannot be read: ${yaml.message}`);
  const { documents } = yaml;
  const [document] = documents;
  if (!document) return fault(position(0), 'the file is empty');
  if (document.errors.length > 0) {
    return {
      faults: document.errors
        .slice(0, MOST_FAULTS)
        .map(({ pos, message }) => ({ position: position(pos[0]), message: firstLine(message) })),
    };
  }
  const surveyed = survey(document);
  if ('message' in surveyed) {
    return fault(position(surveyed.offset), `the file cannot be read: ${surveyed.message}`);
  }
  const { targets } = surveyed;
  try {
    return {
      raw: document.toJS({ maxAliasCount: MOST_USES }),
      positionOf: (path) => position(offsetOf(document, targets, path)),
      duplicates: [...duplicateKeys(targets, document.contents, [])].map(({ path, offset }) => ({
        path,
        position: position(offset),
      })),
      hasMoreDocuments: documents.length > 1,
    };
  } catch (error) {
    return fault(position(0), error instanceof Error ? firstLine(error.message) : String(error));
  }
}

type Targets = ReadonlyMap<Alias, Node>;

function fault(position: Position, message: string): { readonly faults: readonly Fault[] } {
  return { faults: [{ position, message }] };
}

function firstLine(message: string): string {
  return message.split('\n')[0] ?? message;
}

function offsetOf(document: Document, targets: Targets, path: readonly string[]): number {
  let node: unknown = document.contents;
  let offset = startOf(node) ?? 0;
  for (const key of path) {
    const pair = pairsOf(targets, node).findLast((other) => keyOf(other) === key);
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

function* duplicateKeys(targets: Targets, node: unknown, path: readonly string[]): Generator<Found> {
  const seen = new Set<string>();
  for (const pair of pairsOf(targets, node)) {
    const key = keyOf(pair);
    if (seen.has(key) && key !== '<<') yield { path: [...path, key], offset: startOf(pair.key) ?? 0 };
    seen.add(key);
    // What an alias stands for has been looked at where it is written.
    if (!isAlias(pair.value)) yield* duplicateKeys(targets, pair.value, [...path, key]);
  }
  if (isSeq(node)) {
    for (const [index, item] of node.items.entries()) {
      yield* duplicateKeys(targets, item, [...path, String(index)]);
    }
  }
}

function pairsOf(targets: Targets, node: unknown): readonly Pair[] {
  const target = isAlias(node) ? targets.get(node) : node;
  return isMap(target) ? target.items : [];
}

function keyOf({ key }: Pair): string {
  return String(isScalar(key) ? key.value : key);
}

function startOf(node: unknown): number | undefined {
  return isNode(node) ? node.range?.[0] : undefined;
}

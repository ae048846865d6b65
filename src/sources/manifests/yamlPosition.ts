import {
  type Alias,
  type Document,
  isAlias,
  isCollection,
  isMap,
  isNode,
  isScalar,
  isSeq,
  type Node,
  type Pair,
} from 'yaml';

type Path = readonly (string | number)[];

interface Child {
  readonly key: unknown;
  readonly value: unknown;
}

/** Offset of the value at this path, or of the nearest parent that exists. Maps and lists are shown by their key. */
export function offsetInYaml(document: Document, targets: ReadonlyMap<Alias, Node>, path: Path): number {
  let node: unknown = document.contents;
  let shown = startOf(node) ?? 0;
  for (const part of path) {
    const child = findChild(isAlias(node) ? targets.get(node) : node, part);
    if (child === undefined) break;
    shown = (isShownByKey(child) ? startOf(child.key) : startOf(child.value)) ?? shown;
    node = child.value;
  }
  return shown;
}

function findChild(parent: unknown, part: string | number): Child | undefined {
  if (isSeq(parent) && typeof part === 'number') {
    return part < parent.items.length ? { key: undefined, value: parent.items[part] } : undefined;
  }
  if (!isMap(parent)) return undefined;
  const pair = parent.items.find(({ key }: Pair) => (isScalar(key) ? key.value : key) === part);
  return pair && { key: pair.key, value: pair.value };
}

function isShownByKey({ key, value }: Child): boolean {
  if (key === undefined) return false;
  const isEmpty = isScalar(value) && value.range?.[0] === value.range?.[1];
  return !isNode(value) || isCollection(value) || isEmpty;
}

function startOf(node: unknown): number | undefined {
  return isNode(node) ? node.range?.[0] : undefined;
}

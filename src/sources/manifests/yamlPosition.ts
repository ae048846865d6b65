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

/**
 * Offset of the value at this path, or of its key, or of the nearest parent that exists. Maps and lists are shown by
 * their key anyway.
 */
export function offsetInYaml(
  document: Document,
  targets: ReadonlyMap<Alias, Node>,
  path: Path,
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
  const pair = parent.items.find(({ key }: Pair) => isScalar(key) && String(key.value) === step);
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

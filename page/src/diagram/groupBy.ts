/** In the order in which the keys come first. */
export function groupBy<K, T>(items: readonly T[], keyOf: (item: T) => K): ReadonlyMap<K, readonly T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    const some = groups.get(key);
    if (some) some.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}

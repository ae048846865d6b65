/** Lists from this length on are cached once they were found equal. */
const LONG = 16;

/**
 * Structural equality of plain data: objects, arrays, primitives. A long list that many parts of a value share is
 * compared once: a Service with 20,000 ports has the same 20,000 addresses at each of them.
 */
export function deepEqual(a: unknown, b: unknown): boolean {
  return isEqual(a, b, new Map());
}

function isEqual(a: unknown, b: unknown, known: Map<unknown, unknown>): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    if (a.length >= LONG && known.get(a) === b) return true;
    if (!a.every((item, index) => isEqual(item, b[index], known))) return false;
    if (a.length >= LONG) known.set(a, b);
    return true;
  }
  const keys = Object.keys(a);
  return (
    keys.length === Object.keys(b).length &&
    keys.every((key) => Object.hasOwn(b, key) && isEqual(Reflect.get(a, key), Reflect.get(b, key), known))
  );
}

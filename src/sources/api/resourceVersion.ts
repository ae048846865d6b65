const NUMBER = /^(?:0|[1-9]\d*)$/;

/**
 * Whether one version is known to be older than another. They are opaque in old servers, comparable numbers since
 * 1.35; what is not a number is never older.
 */
export function isOlder(one: string, other: string): boolean {
  if (!NUMBER.test(one) || !NUMBER.test(other)) return false;
  return one.length === other.length ? one < other : one.length < other.length;
}

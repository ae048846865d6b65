const NUMBER = /^(?:0|[1-9]\d*)$/;

/**
 * Whether one version is known to be older than another. They are opaque in old servers, comparable numbers since
 * 1.35; what is not a number is never older.
 */
export function isOlder(one: string, other: string): boolean {
  if (!NUMBER.test(one) || !NUMBER.test(other)) return false;
  return one.length === other.length ? one < other : one.length < other.length;
}

/** What has come of one resource. */
export interface Received {
  /** As in paths: `services`. */
  readonly name: string;
  /** The last version that was seen. */
  readonly version: string | undefined;
  /** An attempt to list is under way. */
  readonly isListing: boolean;
  /** More has come than was worked on. */
  readonly isBehind: boolean;
  has(key: string): boolean;
}

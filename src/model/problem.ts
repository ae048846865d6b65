/** What is wrong with an object that somebody gave us, said so that they can correct it. */
export interface Problem {
  /** Path inside the object, e.g. `['spec', 'ports', 0, 'port']`. */
  readonly path: readonly (string | number)[];
  /** What is wrong: `port 70000 is out of range`. */
  readonly message: string;
  /** What would have been right: `a number from 1 to 65535`. */
  readonly expected: string;
}

/** The outcome of reading one raw object. */
export type Projection<T> =
  | {
      readonly kind: 'object';
      readonly value: T /** Parts that were left out. */;
      readonly warnings: readonly Problem[];
    }
  /** A sound object that is not for us: headless, another proxy's, an unknown kind. */
  | { readonly kind: 'ignored'; readonly reason: string }
  | { readonly kind: 'invalid'; readonly problems: readonly Problem[] };

/** `spec.ports[0].port` */
export function printPath(path: readonly (string | number)[]): string {
  return path.reduce<string>(
    (text, part) => (typeof part === 'number' ? `${text}[${part}]` : text === '' ? part : `${text}.${part}`),
    '',
  );
}

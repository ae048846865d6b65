/** Something to log, found before logging could be set up. */
export interface Note {
  readonly severity: 'info' | 'warning';
  readonly message: string;
  readonly fields?: Readonly<Record<string, unknown>>;
}

/** A value, or everything that is wrong with what it was to be made from. */
export type Result<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problems: readonly string[] };

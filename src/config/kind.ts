/** What a setting can be: how it is read from a flag and from a file, and how it is printed. */
export type FeatureGates = Readonly<Record<string, boolean>>;

export interface VerbosityRule {
  readonly filePattern: string;
  readonly verbosity: number;
}

/** `null` is a list that nobody set, which Kubernetes prints unlike an empty one. */
export type StringList = readonly string[] | null;

export type Value = boolean | number | string | StringList | FeatureGates | readonly VerbosityRule[];

export type Reading<T> =
  | { readonly value: T }
  | {
      readonly problem: string;
      /** kube-proxy finds it later than when it reads flags, and says so. */
      readonly stage?: 'failed complete';
    }
  /** The text counts as if the flag had not been given. */
  | { readonly unset: true };

export interface Kind<T> {
  readonly name: string;
  readonly placeholder: string;
  /** All that it takes, where there are only so many. */
  readonly choices?: readonly string[];
  /** What a file's absent field decodes to. */
  readonly zero: T;
  /** What the flag means when it stands alone; a flag without this needs a value. */
  readonly alone?: string;
  /** Of several occurrences of a flag only the last is read, where kube-proxy has plain text and looks at it later. */
  readonly readsLast?: true;
  /** `before` is what an earlier occurrence of the same flag gave. */
  fromFlag(text: string, before: T | undefined): Reading<T>;
  fromFile(raw: unknown): Reading<T>;
  /** As one would type it behind the flag. */
  print(value: T): string;
  toJson(value: T): unknown;
  /** How a flag that wins over the file joins the file's value; without this it replaces it. */
  join?(flag: T, file: T): T;
}

export function quote(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}

/** What a file holds where something else was expected. */
export function describe(raw: unknown): string {
  if (typeof raw === 'string') return `the text ${quote(raw)}`;
  if (Array.isArray(raw)) return 'a list';
  if (typeof raw === 'number' || typeof raw === 'boolean') return `the ${typeof raw} ${raw}`;
  return raw === null ? 'null' : 'a map';
}

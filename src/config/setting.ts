/** The shape of the table: kinds of settings, fields of the configuration file, flags, and the sections that group them. */
export type FeatureGates = Readonly<Record<string, boolean>>;

export interface VerbosityRule {
  readonly filePattern: string;
  readonly verbosity: number;
}

/** `null` is a list that nobody set, which Kubernetes prints unlike an empty one. */
export type StringList = readonly string[] | null;

export type SettingValue = boolean | number | string | StringList | FeatureGates | readonly VerbosityRule[];

export type Reading<T> =
  | { readonly value: T }
  | {
      readonly problem: string;
      /** kube-proxy finds it later than when it reads flags, and says so. */
      readonly stage?: 'failed complete';
    }
  /** The text counts as if the flag had not been given. */
  | { readonly unset: true };

/** What a setting can be: how it is read from a flag and from a file, and how it is printed. */
export interface SettingKind<T> {
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
  /** Zero in a file means zero. Elsewhere it means "not set", because Kubernetes cannot tell the two apart. */
  readonly keepsZero?: true;
  /** `before` is what an earlier occurrence of the same flag gave. */
  fromFlag(text: string, before: T | undefined): Reading<T>;
  fromFile(raw: unknown): Reading<T>;
  /** As one would type it behind the flag. */
  print(value: T): string;
  toJson(value: T): unknown;
  /** How a flag that wins over the file joins the file's value; without this it replaces it. */
  join?(flag: T, file: T): T;
}

/** Whether a running process takes a change of the file over by itself. */
export type Reload = 'live' | 'restart';

interface Details {
  readonly help: string;
  readonly choices?: readonly string[] | undefined;
  /** Accepted without effect, and why; of a field, the flag too. */
  readonly ignored?: string | undefined;
  /** Of the flag: its letter, and what `--help` shows for its value. */
  readonly short?: string | undefined;
  readonly placeholder?: string | undefined;
}

interface FieldDetails<T> extends Details {
  /** Where the flag's default is not the field's. */
  readonly flagDefault?: T;
  /** A flag of another field that sets this one too. */
  readonly sharesFlag?: string;
  readonly reload?: Reload | undefined;
  /** Not printed when it is zero, or when it is the default. */
  readonly omit?: 'zero' | 'default' | undefined;
  readonly flagWins?: boolean | undefined;
  /** Of a server's address: what a bare IP is completed to, and the default when bindAddress is IPv6. */
  readonly listen?: { readonly port: number; readonly ipv6Default: string };
}

/** One field of the configuration file, with the flag that goes with it. */
export interface Field<P extends string = string, T = SettingValue> extends FieldDetails<T> {
  readonly path: P;
  readonly flag: string | undefined;
  readonly kind: SettingKind<T>;
  readonly default: T;
}

interface FlagDetails extends Details {
  readonly deprecated?: string;
  /** Meant together with a configuration file, which otherwise replaces all flags. */
  readonly worksWithFile?: boolean | undefined;
}

export interface Flag<T = SettingValue> extends FlagDetails {
  readonly name: string;
  readonly kind: SettingKind<T>;
  readonly default: T;
  /** Where its value goes in the configuration; some flags have no such place. */
  readonly paths: readonly string[];
}

export interface Section extends Pick<Field, 'omit' | 'reload'> {
  readonly title: string;
  readonly intro?: string;
  readonly fields: readonly Field[];
  /** Those that no field has. */
  readonly flags?: readonly Flag[];
  readonly flagsWin?: boolean;
}

export function field<const P extends string, T>(
  path: P,
  flag: string | undefined,
  kind: SettingKind<T>,
  defaultValue: NoInfer<T>,
  details: FieldDetails<NoInfer<T>>,
): Field<P, T> {
  return { path, flag, kind, default: defaultValue, ...details };
}

export function flag<T>(
  name: string,
  kind: SettingKind<T>,
  defaultValue: NoInfer<T>,
  details: FlagDetails,
): Flag<T> {
  return { name, kind, default: defaultValue, paths: [], ...details };
}

/** What people should not begin to use is not offered to them. */
export function isOffered({ deprecated, ignored }: Flag): boolean {
  return deprecated === undefined && ignored === undefined;
}

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

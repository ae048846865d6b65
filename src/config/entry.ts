/** The shape of the table: fields of the configuration file, flags, and the sections that group them. */
import type { Kind, Value } from './kind.ts';

/** Whether a running process takes a change of the file over by itself. */
export type Reload = 'live' | 'restart';

export interface FlagName<T> {
  readonly name: string;
  readonly short?: string;
  /** Where the flag's default is not the field's. */
  readonly default?: T;
  readonly placeholder?: string;
  readonly deprecated?: string;
}

interface FieldDetails<T> {
  readonly default: T;
  readonly help: string;
  readonly choices?: readonly string[];
  readonly flag?: FlagName<T>;
  /** A flag of another field that sets this one too. */
  readonly sharesFlag?: string;
  /** `live` where a running process takes a change over. */
  readonly reload?: Reload;
  /** Zero in a file means zero. Elsewhere it means "not set", because Kubernetes cannot tell the two apart. */
  readonly keepsZero?: boolean;
  /** Not printed when it is zero, or when it is the default. */
  readonly omit?: 'zero' | 'default';
  /** Accepted without effect, and why; the flag too. */
  readonly ignored?: string;
  /** The flag wins over the file. */
  readonly flagWins?: boolean;
  /** Of a server's address: what a bare IP is completed to, and the default when bindAddress is IPv6. */
  readonly listen?: { readonly port: number; readonly ipv6Default: string };
}

/** One field of the configuration file, with the flag that goes with it. */
export interface Field<P extends string = string, T = Value> extends FieldDetails<T> {
  readonly path: P;
  readonly kind: Kind<T>;
}

interface FlagDetails<T> {
  readonly default: T;
  readonly help: string;
  readonly short?: string;
  readonly placeholder?: string;
  readonly choices?: readonly string[];
  readonly deprecated?: string;
  /** Accepted without effect, and why. */
  readonly ignored?: string;
  /** Meant together with a configuration file, which otherwise replaces all flags. */
  readonly worksWithFile?: boolean;
}

export interface Flag<T = Value> extends FlagDetails<T> {
  readonly name: string;
  readonly kind: Kind<T>;
  /** Where its value goes in the configuration; some flags have no such place. */
  readonly paths: readonly string[];
}

export interface Section {
  readonly title: string;
  readonly intro?: string;
  readonly fields: readonly Field[];
  /** Those that no field has. */
  readonly flags: readonly Flag[];
}

export function field<const P extends string, T>(
  path: P,
  kind: Kind<T>,
  details: FieldDetails<NoInfer<T>>,
): Field<P, T> {
  return { path, kind, ...details };
}

export function flag<T>(name: string, kind: Kind<T>, details: FlagDetails<NoInfer<T>>): Flag<T> {
  return { name, kind, paths: [], ...details };
}

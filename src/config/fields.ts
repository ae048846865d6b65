/** The configuration as the file has it: KubeProxyConfiguration v1alpha1, typed by the table. Durations are in ms. */
import type { Field } from './entry.ts';
import type { Value } from './kind.ts';
import { FIELDS, type KnownField } from './table.ts';

type AtPath<P extends string, T> = P extends `${infer Head}.${infer Rest}`
  ? { readonly [K in Head]: AtPath<Rest, T> }
  : { readonly [K in P]: T };

type Nested<F> = F extends Field<infer P, infer T> ? AtPath<P, T> : never;
type All<U> = (U extends unknown ? (each: U) => void : never) extends (all: infer I) => void ? I : never;
type Plain<T> = T extends readonly unknown[] | string | number | boolean | null
  ? T
  : { readonly [K in keyof T]: K extends 'featureGates' ? T[K] : Plain<T[K]> };

export type Fields = Plain<All<Nested<KnownField>>>;

/** Values by path: what a file or the flags gave. */
export type FieldValues = ReadonlyMap<string, Value>;

/** Every field of the table has a value here, so the result has every field. */
export function nest(valueOf: (field: Field) => Value): Fields {
  const root: Record<string, unknown> = {};
  for (const field of FIELDS) setAt(root, field.path, valueOf(field));
  return root as unknown as Fields;
}

export function setAt(root: Record<string, unknown>, path: string, value: unknown): void {
  const keys = path.split('.');
  const last = keys.pop() ?? path;
  let parent = root;
  for (const key of keys) parent = (parent[key] ??= {}) as Record<string, unknown>;
  parent[last] = value;
}

export function valueAt(fields: Fields, field: Field): Value {
  const value = field.path
    .split('.')
    .reduce<unknown>((parent, key) => (parent as Readonly<Record<string, unknown>>)[key], fields);
  return value as Value;
}

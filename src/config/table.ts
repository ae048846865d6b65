/** The one table that flags, the configuration file, defaults, help, the reference page and `/configz` come from. */
import { JUNCTION, UNUSED, WINDOWS } from './sections/own.ts';
import { LOGGING, NODE, PROCESS, PROGRAM } from './sections/process.ts';
import { API_SERVER, FEATURES, IPTABLES, IPVS, LOCAL_TRAFFIC, MODE, NFTABLES } from './sections/proxy.ts';
import type { Field, Flag, Section, SettingValue } from './setting.ts';

export const API_VERSION = 'kubeproxy.config.k8s.io/v1alpha1';
export const KIND = 'KubeProxyConfiguration';

/** In the order of the fields of KubeProxyConfiguration, which `/configz` keeps. */
const TABLE = [
  PROGRAM,
  FEATURES,
  API_SERVER,
  LOGGING,
  NODE,
  MODE,
  IPTABLES,
  IPVS,
  NFTABLES,
  WINDOWS,
  LOCAL_TRAFFIC,
  PROCESS,
  UNUSED,
  JUNCTION,
] as const satisfies readonly Section[];

export const SECTIONS: readonly Section[] = TABLE.map((section: Section) => {
  const { fields, omit, reload, flagsWin: flagWins } = section;
  return { ...section, fields: fields.map((field) => ({ omit, reload, flagWins, ...field })) };
});

export const CONFIG_FIELDS: readonly Field[] = SECTIONS.flatMap(({ fields }) => fields);

/** By flag, the paths of fields that share it with its own. */
const SHARING: ReadonlyMap<string, readonly string[]> = sharedFlags();

function sharedFlags(): ReadonlyMap<string, readonly string[]> {
  const sharing = new Map<string, string[]>();
  for (const { sharesFlag, path } of CONFIG_FIELDS)
    if (sharesFlag !== undefined) sharing.set(sharesFlag, [...(sharing.get(sharesFlag) ?? []), path]);
  return sharing;
}

export const FLAGS: readonly Flag[] = SECTIONS.flatMap(sectionFlags);

/** The flags of a section, those of its fields first. */
export function sectionFlags({ fields, flags = [] }: Section): readonly Flag[] {
  return [...fields.flatMap((field) => flagOfField(field) ?? []), ...flags];
}

export function flagOfField(field: Field): Flag | undefined {
  const { flag: name, path, flagDefault, flagWins: worksWithFile } = field;
  if (name === undefined) return undefined;
  const paths = [path, ...(SHARING.get(name) ?? [])];
  return { ...field, name, default: flagDefault ?? field.default, paths, worksWithFile };
}

export function isZero<T extends SettingValue>({ kind }: Pick<Field<string, T>, 'kind'>, value: T): boolean {
  return kind.print(value) === kind.print(kind.zero);
}

export function isDefault(field: Field, value: SettingValue): boolean {
  return field.kind.print(value) === field.kind.print(field.default);
}

type KnownField = (typeof TABLE)[number]['fields'][number];
type AtPath<P extends string, T> = P extends `${infer Head}.${infer Rest}`
  ? { readonly [K in Head]: AtPath<Rest, T> }
  : { readonly [K in P]: T };
type Nested<F> = F extends Field<infer P, infer T> ? AtPath<P, T> : never;
type All<U> = (U extends unknown ? (each: U) => void : never) extends (all: infer I) => void ? I : never;
type Plain<T> = T extends readonly unknown[] | string | number | boolean | null
  ? T
  : { readonly [K in keyof T]: K extends 'featureGates' ? T[K] : Plain<T[K]> };

/** The configuration as the file has it: KubeProxyConfiguration v1alpha1, typed by the table. Durations are in ms. */
export type ConfigFields = Plain<All<Nested<KnownField>>>;

/** Values by path: what a file or the flags gave. */
export type FieldValues = ReadonlyMap<string, SettingValue>;

/** Every field of the table has a value here, so the result has every field. */
export function nestFields(valueOf: (field: Field) => SettingValue): ConfigFields {
  const root: Record<string, unknown> = {};
  for (const field of CONFIG_FIELDS) setAt(root, field.path, valueOf(field));
  return root as unknown as ConfigFields;
}

export function setAt(root: Record<string, unknown>, path: string, value: unknown): void {
  const keys = path.split('.');
  const last = keys.pop() ?? path;
  let parent = root;
  for (const key of keys) parent = (parent[key] ??= {}) as Record<string, unknown>;
  parent[last] = value;
}

export function valueAt(fields: ConfigFields, { path }: Pick<Field, 'path'>): SettingValue {
  return path
    .split('.')
    .reduce<unknown>(
      (parent, key) => (parent as Readonly<Record<string, unknown>>)[key],
      fields,
    ) as SettingValue;
}

/** The one table that flags, the configuration file, defaults, help, the reference page and `/configz` come from. */
import type { Field, Flag, Section } from './entry.ts';
import type { Value } from './kind.ts';
import { API_SERVER, GATES } from './sections/cluster.ts';
import { JUNCTION } from './sections/junction.ts';
import { LOGGING } from './sections/logging.ts';
import { IPTABLES, IPVS, MODE, NFTABLES } from './sections/modes.ts';
import { NODE } from './sections/node.ts';
import { PROCESS } from './sections/process.ts';
import { PROGRAM } from './sections/program.ts';
import { LOCAL_TRAFFIC } from './sections/traffic.ts';
import { UNUSED, WINDOWS } from './sections/windows.ts';

export const API_VERSION = 'kubeproxy.config.k8s.io/v1alpha1';
export const KIND = 'KubeProxyConfiguration';

/** In the order of the fields of KubeProxyConfiguration, which `/configz` keeps. */
export const SECTIONS = [
  PROGRAM,
  GATES,
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

export type KnownField = (typeof SECTIONS)[number]['fields'][number];

export const FIELDS: readonly Field[] = SECTIONS.flatMap(({ fields }): readonly Field[] => fields);

export const FLAGS: readonly Flag[] = SECTIONS.flatMap((section: Section) => flagsOf(section));

/** The flags of a section, those of its fields first. */
export function flagsOf(section: Section): readonly Flag[] {
  return [...section.fields.flatMap((field) => flagOfField(field) ?? []), ...section.flags];
}

export function flagOfField({ flag, path, kind, help, choices, ...field }: Field): Flag | undefined {
  if (flag === undefined) return undefined;
  const sharing = SECTIONS.flatMap(({ fields }): readonly Field[] => fields)
    .filter(({ sharesFlag }) => sharesFlag === flag.name)
    .map((other) => other.path);
  return {
    name: flag.name,
    kind,
    help,
    default: flag.default ?? field.default,
    paths: [path, ...sharing],
    ...(flag.short !== undefined && { short: flag.short }),
    ...(flag.placeholder !== undefined && { placeholder: flag.placeholder }),
    ...(flag.deprecated !== undefined && { deprecated: flag.deprecated }),
    ...(choices !== undefined && { choices }),
    ...(field.ignored !== undefined && { ignored: field.ignored }),
    ...(field.flagWins === true && { worksWithFile: true }),
  };
}

export function isZero<T extends Value>({ kind }: Pick<Field<string, T>, 'kind'>, value: T): boolean {
  return kind.print(value) === kind.print(kind.zero);
}

export function isDefault(field: Field, value: Value): boolean {
  return field.kind.print(value) === field.kind.print(field.default);
}

/** The tables of docs/compatibility.md: every flag, field, feature gate and metric of kube-proxy, and what it is here. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { GATES, type Gate } from '../../src/config/featureGates.ts';
import { CONFIG_FIELDS, FLAGS } from '../../src/config/table.ts';

/** What kube-proxy has, from its `--help` and `--write-config-to` (test/config/kubeProxySettings.txt). */
export interface KubeProxySettings {
  readonly flags: Readonly<Record<string, string>>;
  readonly deprecatedFlags: Readonly<Record<string, string>>;
  readonly windowsFlags: Readonly<Record<string, string>>;
  readonly fields: readonly string[];
  readonly gates: Readonly<Record<string, string>>;
}

const SAME = 'as kube-proxy';
const PROFILES = "profiles are Node's, not Go's";
const FILE_NAMES = "file names are those of Junction's source";
const UNKNOWN_GATES = 'a gate that Junction does not know is named in a warning, not refused';

/** Accepted and in force, but not the same. */
const DIFFERENT_FLAGS: Readonly<Record<string, string>> = {
  config: 'a change of the file is taken over where it can be; kube-proxy ends',
  'feature-gates': UNKNOWN_GATES,
  profiling: PROFILES,
  version: "prints Junction's version",
  vmodule: FILE_NAMES,
};

const DIFFERENT_FIELDS: Readonly<Record<string, string>> = {
  enableProfiling: PROFILES,
  featureGates: UNKNOWN_GATES,
  'logging.vmodule': FILE_NAMES,
};

const DIFFERENT_METRICS: Readonly<Record<string, string>> = {
  go_goroutines: 'what Node waits for: timers, sockets, programs, requests',
  kubernetes_build_info: '`git_version` ends with `+junction-` and the version',
  kubernetes_feature_enabled: 'only gates that concern a service proxy',
  rest_client_request_duration_seconds: 'streaming lists are measured too',
  process_virtual_memory_bytes: 'Node reserves much more address space than Go',
};

export const COMPATIBILITY = {
  'compatibility-flags': (root: string) => Promise.resolve(flagTable(readSettings(root))),
  'compatibility-fields': (root: string) => Promise.resolve(fieldTable(readSettings(root))),
  'compatibility-gates': (root: string) => Promise.resolve(gateTable(readSettings(root))),
  'compatibility-metrics': (root: string) => Promise.resolve(metricTable(root)),
};

export function readSettings(root: string): KubeProxySettings {
  const text = readFileSync(join(root, 'test/config/kubeProxySettings.txt'), 'utf8');
  const sections = new Map<string, readonly string[]>();
  for (const [, name = '', words = ''] of text.matchAll(/^\[(.*)\]$([^[]*)/gm))
    sections.set(name, words.trim().split(/\s+/));
  const wordsOf = (name: string): readonly string[] => sections.get(name) ?? [];
  const valuesOf = (name: string): Readonly<Record<string, string>> =>
    Object.fromEntries(wordsOf(name).map((word) => word.split('=')));
  const states = [...sections.keys()].flatMap((name) => /^gates (.*)$/.exec(name)?.[1] ?? []);
  const gates = states.flatMap((state) => wordsOf(`gates ${state}`).map((name) => [name, state] as const));
  return {
    flags: valuesOf('flags'),
    deprecatedFlags: valuesOf('deprecatedFlags'),
    windowsFlags: valuesOf('windowsFlags'),
    fields: wordsOf('fields'),
    gates: Object.fromEntries(gates.sort(([a], [b]) => (a < b ? -1 : 1))),
  };
}

function flagTable({ flags, deprecatedFlags, windowsFlags }: KubeProxySettings): string {
  const names = Object.keys({ ...flags, ...deprecatedFlags, ...windowsFlags }).sort();
  return table(
    ['flag', 'here'],
    names.map((name) => {
      const own = FLAGS.find((flag) => flag.name === name);
      const isKnown = own !== undefined || name === 'help';
      return [`\`--${name}\``, verdict(isKnown, own?.ignored, DIFFERENT_FLAGS[name])];
    }),
  );
}

function fieldTable({ fields }: KubeProxySettings): string {
  return table(
    ['field', 'here'],
    fields.map((path) => {
      const own = CONFIG_FIELDS.find((field) => field.path === path);
      return [`\`${path}\``, verdict(own !== undefined, own?.ignored, DIFFERENT_FIELDS[path])];
    }),
  );
}

/** Gates of other components are many, and of one kind. */
function gateTable({ gates }: KubeProxySettings): string {
  const known = Object.entries<Gate>(GATES).map(([name, { effect }]) => [
    `\`${name}\``,
    effect.includes('without effect') ? 'without effect' : `${SAME}: ${effect}`,
  ]);
  const others = Object.keys(gates).filter((name) => !Object.hasOwn(GATES, name));
  const rest = [
    others.map((name) => `\`${name}\``).join(', '),
    'without effect: they are of other components; a warning names those that are set',
  ];
  return table(['gate', 'here'], [...known, rest]);
}

function metricTable(root: string): string {
  const reasons = absentMetrics(readFileSync(join(root, 'docs/metrics.md'), 'utf8'));
  const names = readFileSync(join(root, 'test/telemetry/metrics/golden/kube-proxy-1.36.txt'), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => line.slice(0, line.indexOf(' ')));
  const isAbsent = (name: string): boolean =>
    !Object.hasOwn(DIFFERENT_METRICS, name) && reasons.some(({ patterns }) => matches(name, patterns));
  const same = names.filter((name) => !Object.hasOwn(DIFFERENT_METRICS, name) && !isAbsent(name));
  const different = names.filter((name) => Object.hasOwn(DIFFERENT_METRICS, name));
  return table(
    ['metric', 'here'],
    [
      ...same.map((name) => [`\`${name}\``, SAME]),
      ...different.map((name) => [`\`${name}\``, `different: ${DIFFERENT_METRICS[name]}`]),
      ...reasons.map(({ patterns, reason }) => [
        patterns.map((pattern) => `\`${pattern}\``).join(', '),
        `not here: ${reason}`,
      ]),
    ],
  );
}

interface AbsentMetrics {
  readonly patterns: readonly string[];
  readonly reason: string;
}

/** The table of docs/metrics.md, which a test compares with what a running Junction has. */
function absentMetrics(page: string): readonly AbsentMetrics[] {
  const [, section = ''] = page.split('\n## Metrics of kube-proxy that are not here\n');
  const rows = (section.split('\n## ')[0] ?? '').matchAll(/^\| (`[^|]+`) \| ([^|]+) \|$/gm);
  return [...rows].map(([, cell = '', reason = '']) => ({
    patterns: [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name),
    reason: reason.replace(/, but for the one above\. .*$/, '').trim(),
  }));
}

function matches(name: string, patterns: readonly string[]): boolean {
  return patterns.some((pattern) =>
    pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern,
  );
}

function verdict(isKnown: boolean, ignored: string | undefined, different: string | undefined): string {
  if (!isKnown) return 'unknown';
  if (ignored !== undefined) return `without effect: ${ignored}`;
  return different === undefined ? SAME : `different: ${different}`;
}

function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |\n`;
  return [header, header.map(() => '---'), ...rows].map(line).join('');
}

/** The page docs/reference/configuration.md, written from the table. */
import { GATES, type Gate } from '../../src/config/featureGates.ts';
import { printUsage } from '../../src/config/help.ts';
import type { Field, Flag, Section } from '../../src/config/setting.ts';
import { API_VERSION, CONFIG_FIELDS, isZero, KIND, SECTIONS } from '../../src/config/table.ts';

export function referencePage(): string {
  return `${[INTRO, ...SECTIONS.map(printSection), withoutEffect(), gates()].join('\n\n')}\n`;
}

const INTRO = `<!-- Written by \`node scripts/docs.mjs\` from the table in src/config/; edit that instead. -->
# Configuration

Junction takes kube-proxy's flags and kube-proxy's configuration file, and a few settings of its own. This page is written from the
table in \`src/config/sections/\`, where each setting has its default.

\`\`\`yaml
apiVersion: ${API_VERSION}
kind: ${KIND}
mode: nftables
clusterCIDR: 10.244.0.0/16,fd00:244::/32
nftables:
  minSyncPeriod: 500ms
junction:
  firewalld: false
\`\`\`

## Which setting counts

1. With \`--config\` the file replaces the flags, and flags that are ignored for that reason are logged. The exceptions:
   flags for logging, \`--hostname-override\` and Junction's own flags win over the file when they are given;
   \`--master\`, \`--write-config-to\`, \`--cleanup\` and \`--init-only\` have no field.
2. A field that the file leaves out, and a flag that is not given, have the default below. Zero in a file means "not set",
   except where the table says that 0 has a meaning.
3. There is one sync period, one minimum and one \`masqueradeAll\`: those of the section of the mode. The ipvs mode takes
   \`masqueradeAll\` from the \`iptables\` section.

Flags are written \`--name=value\` or \`--name value\`; booleans only \`--name\` or \`--name=false\`. Lists are separated by commas.
A flag may be repeated: lists, feature gates and \`--vmodule\` add up, of any other the last counts. Underscores count as hyphens. Durations are numbers with units, such as \`30s\`, \`15m0s\` or
\`2h22m\`.

An unknown field, or one that is there twice, is reported with its place in the file and what was probably meant, and the
rest of the file counts. Anything else that cannot be read ends the program, and so does a value that validation refuses;
all of them are reported at once.

**Reload** says what happens when the file changes while Junction runs: \`live\` settings are taken over, and all others
need a restart.`;

function printSection(section: Section): string {
  const parts = [
    `## ${section.title}`,
    section.intro,
    section.fields.length > 0 ? fieldTable(section.fields) : undefined,
    section.flags === undefined ? undefined : flagTable(section.flags),
  ];
  return parts.filter((part) => part !== undefined).join('\n\n');
}

function fieldTable(fields: readonly Field[]): string {
  return table(
    ['Field', 'Flag', 'Type', 'Default', 'Reload', 'Meaning'],
    fields.map((field) => [
      code(field.path),
      flagCell(field),
      type(field),
      code(field.kind.print(field.default)),
      field.ignored === undefined ? (field.reload ?? 'restart') : '',
      meaning(field),
    ]),
  );
}

function flagCell({ flag, short, flagDefault: own, sharesFlag, default: normal, kind }: Field): string {
  const name = flag ?? sharesFlag;
  if (name === undefined) return '';
  const names = short === undefined ? code(`--${name}`) : `${code(`-${short}`)}, ${code(`--${name}`)}`;
  return own === undefined || own === normal ? names : `${names} (default ${code(kind.print(own))})`;
}

function type({ kind, choices, default: normal }: Field): string {
  if (choices) return choices.map(code).join(', ');
  const hasNumber = typeof kind.zero === 'number';
  return kind.keepsZero === true && hasNumber && !isZero({ kind }, normal)
    ? `${kind.name}; 0 has a meaning`
    : kind.name;
}

function flagTable(flags: readonly Flag[]): string {
  return table(
    ['Flag', 'Default', 'Meaning'],
    flags.map((flag) => [code(printUsage(flag)), code(flag.kind.print(flag.default)), meaning(flag)]),
  );
}

function meaning({ help, deprecated, ignored }: Pick<Flag, 'help' | 'ignored' | 'deprecated'>): string {
  if (deprecated !== undefined) return `**Deprecated**: ${deprecated}. ${sentence(help)}`;
  return ignored === undefined ? help : `**Without effect**: ${ignored}. In kube-proxy: ${help}.`;
}

function withoutEffect(): string {
  const fields = CONFIG_FIELDS.flatMap(({ path, flag, ignored }) =>
    ignored === undefined ? [] : [[code(path), flag === undefined ? '' : code(`--${flag}`), ignored]],
  );
  const flags = SECTIONS.flatMap(({ flags = [] }) => flags).flatMap(({ name, ignored }) =>
    ignored === undefined ? [] : [['', code(`--${name}`), ignored]],
  );
  return `## Settings without effect

Accepted, so that files and command lines of kube-proxy can be taken as they are. A flag of these that is given is named in a
warning; a field of these that a file sets to something else than its default is named in the log.

${table(['Field', 'Flag', 'Why'], [...fields, ...flags])}`;
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

function gates(): string {
  const rows = Object.entries<Gate>(GATES).map(([name, gate]) => [
    code(name),
    gate.stage,
    `${gate.default ? 'on' : 'off'}${gate.locked === true ? ', locked' : ''}`,
    gate.effect,
  ]);
  return `## The feature gates

A locked gate cannot be changed. A gate that is not in this table is accepted, has no effect, and is named in a warning.

${table(['Gate', 'Stage', 'Default', 'Effect'], rows)}`;
}

function code(text: string): string {
  return text === '' ? '' : `\`${text.replaceAll('|', '\\|')}\``;
}

function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [line(header), line(header.map(() => '---')), ...rows.map(line)].join('\n');
}

/** The text of `--help`: flags by section, with their defaults, as wide as the terminal. */
import { type Flag, isOffered } from './setting.ts';
import { FLAGS, sectionFlags, SECTIONS } from './table.ts';
import { wrap } from '../text/wrap.ts';

interface FlagGroup {
  readonly title: string;
  readonly flags: readonly Flag[];
}

/** Without the flags that are deprecated; those without effect come last, with the reason. */
export const FLAG_GROUPS: readonly FlagGroup[] = [
  ...SECTIONS.map((section) => ({ title: section.title, flags: sectionFlags(section).filter(isOffered) })),
  {
    title: 'Accepted, without effect in Junction',
    flags: FLAGS.filter(({ ignored }) => ignored !== undefined),
  },
].filter(({ flags }) => flags.length > 0);

/** Long words, such as content types, need that much. */
const NARROWEST = 72;
const WIDEST = 120;
const INDENT = 32;

export function helpColumns(width: number): number {
  return Math.min(WIDEST, Math.max(NARROWEST, width));
}

export function flagHelp(width: number, groups: readonly FlagGroup[] = FLAG_GROUPS): string {
  const columns = helpColumns(width);
  return groups
    .map(({ title, flags }) => `${title}:\n${flags.map((flag) => describeFlag(flag, columns)).join('')}`)
    .join('\n');
}

/** `--name VALUE`, as one types it. */
export function printUsage({ name, short, kind, placeholder, choices }: Flag): string {
  const value = placeholder ?? choices?.join('|') ?? kind.placeholder;
  const separated = kind.alone === undefined ? ` ${value}` : `[=${value}]`;
  const long = value === '' ? `--${name}` : `--${name}${separated}`;
  return short === undefined ? long : `-${short}, ${long}`;
}

function describeFlag(flag: Flag, columns: number): string {
  const usage = `${flag.short === undefined ? '      ' : '  '}${printUsage(flag)}`;
  const [first = '', ...rest] = wrap(withDefault(flag), columns - INDENT);
  const fits = usage.length + 2 <= INDENT;
  const lines = fits ? [usage.padEnd(INDENT) + first] : [usage, ' '.repeat(INDENT) + first];
  return [...lines, ...rest.map((line) => ' '.repeat(INDENT) + line)].map((line) => `${line}\n`).join('');
}

function withDefault(flag: Flag): string {
  if (flag.ignored !== undefined) return `no effect, because ${flag.ignored}`;
  const text = flag.kind.print(flag.default);
  return text === '' || text === 'false' ? flag.help : `${flag.help} (default ${text})`;
}

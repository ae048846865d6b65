/** What `--help` prints. */
import { FLAG_GROUPS, flagHelp, helpColumns } from '../config/help.ts';
import { wrap } from '../text/wrap.ts';
import { type CommandInfo, COMMANDS } from './commands.ts';

export function commandHelp(command: CommandInfo, width: number): string {
  const shared = FLAG_GROUPS.map(({ title, flags }) => ({
    title,
    flags: flags.filter(({ name }) => command.uses?.includes(name) ?? true),
  })).filter(({ flags }) => flags.length > 0);
  const own = command.ownFlags.length === 0 ? [] : [{ title: 'This command', flags: command.ownFlags }];
  const columns = helpColumns(width);
  const examples = command.examples.map((example) => printExample(example, columns)).join('');
  const usage = [
    command.name,
    ...(command.arguments === undefined ? [] : [command.arguments.usage]),
    '[flags]',
  ];
  const summary = wrap(command.summary, columns).join('\n');
  return `Usage: junction ${usage.join(' ')}\n\n${summary}\n\nExamples:\n${examples}\n${flagHelp(width, [...own, ...shared])}`;
}

const UNBREAKABLE = '\u00a0';

/** One that is too long is broken as a shell takes it, and not between a flag and its value. */
function printExample(example: string, columns: number): string {
  const indent = '  ';
  if (indent.length + example.length <= columns) return `${indent}${example}\n`;
  const room = columns - ' \\'.length - 2 * indent.length;
  const lines = wrap(example.replaceAll(/ (?!--|\|)/g, UNBREAKABLE), room);
  return `${indent}${lines.join(` \\\n${indent}${indent}`).replaceAll(UNBREAKABLE, ' ')}\n`;
}

const NAME_COLUMNS = 14;

export function overview(width: number): string {
  const columns = helpColumns(width);
  const commands = COMMANDS.map(({ name, summary }) => {
    const lines = wrap(summary, columns - NAME_COLUMNS);
    return `${`  ${name}`.padEnd(NAME_COLUMNS)}${lines.join(`\n${' '.repeat(NAME_COLUMNS)}`)}\n`;
  });
  const about =
    'A Kubernetes service proxy that syncs in milliseconds and says why a packet goes where it goes.';
  const more =
    'junction COMMAND --help explains a command and its flags. Without a command, flags alone mean run, so that Junction can stand where kube-proxy stood. junction --version prints the version.';
  return `Usage: junction COMMAND [flags]

${wrap(about, columns).join('\n')}

Commands:
${commands.join('')}
${wrap(more, columns).join('\n')}
`;
}

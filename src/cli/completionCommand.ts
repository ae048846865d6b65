/** `junction completion`: scripts by which shells complete commands, flags and their values. */
import { type Flag, isOffered } from '../config/setting.ts';
import { FLAGS } from '../config/table.ts';
import { COMMANDS, type CommandInfo, commandFlags, UsageError } from './commands.ts';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];

export function completionCommand(word: string | undefined): string {
  const shell = SHELLS.find((each) => each === word);
  if (shell !== undefined) return completionScript(shell);
  const problem = word === undefined ? 'which shell?' : `no completion for ${JSON.stringify(word)}:`;
  throw new UsageError([`${problem} junction completion ${SHELLS.join('|')}`]);
}

export function completionScript(shell: Shell): string {
  return { bash, zsh, fish }[shell]();
}

function offered(command: CommandInfo): readonly Flag[] {
  return commandFlags(command).filter(isOffered);
}

/** What a flag takes, where there are only so many. */
function valuesOf({ choices, kind }: Flag): readonly string[] {
  return choices ?? kind.choices ?? [];
}

function takesFile({ placeholder = '' }: Flag): boolean {
  return /\b(?:FILE|DIR)\b/.test(placeholder);
}

function bash(): string {
  const words = COMMANDS.map(
    (command) => `    ${command.name}) words=${quoted(flagWords(command).join(' '))} ;;\n`,
  ).join('');
  // Two commands may have flags of one name that take different values.
  const flags = [
    ...COMMANDS.flatMap(({ name, ownFlags }) =>
      ownFlags.map((flag) => ({ flag, pattern: `'${name} --${flag.name}'` })),
    ),
    ...FLAGS.map((flag) => ({ flag, pattern: `*' --${flag.name}'` })),
  ];
  const values = flags
    .filter(({ flag }) => valuesOf(flag).length > 0)
    .map(
      ({ flag, pattern }) =>
        `    ${pattern}) COMPREPLY=($(compgen -W ${quoted(valuesOf(flag).join(' '))} -- "$cur")); return ;;\n`,
    )
    .join('');
  const files = flags.filter(({ flag }) => takesFile(flag)).map(({ pattern }) => pattern);
  return `# bash completion for junction. Use it: source <(junction completion bash)
_junction() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}" words
  # --flag=value is three words to bash.
  if [[ "$cur" == "=" ]]; then cur=""; elif [[ "$prev" == "=" ]]; then prev="\${COMP_WORDS[COMP_CWORD-2]}"; fi
  if [[ "$COMP_CWORD" -eq 1 && "$cur" != -* || "$COMP_CWORD" -eq 2 && "\${COMP_WORDS[1]}" == help ]]; then
    COMPREPLY=($(compgen -W ${quoted(COMMANDS.map(({ name }) => name).join(' '))} -- "$cur"))
    return
  fi
  case "\${COMP_WORDS[1]} $prev" in
    *' completion') COMPREPLY=($(compgen -W ${quoted(SHELLS.join(' '))} -- "$cur")); return ;;
${values}    ${files.join('|')}) COMPREPLY=($(compgen -f -- "$cur")); return ;;
  esac
  case "\${COMP_WORDS[1]}" in
${words}    *) words=${quoted(flagWords(COMMANDS[0]).join(' '))} ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o filenames -F _junction junction
`;
}

function flagWords(command: CommandInfo | undefined): readonly string[] {
  return command ? offered(command).map(({ name }) => `--${name}`) : [];
}

function zsh(): string {
  const cases = COMMANDS.map((command) => {
    const specs = offered(command).map((flag) => `        ${quoted(zshSpec(flag))}`);
    if (command.name === 'completion') specs.push(`        ${quoted(`1:shell:(${SHELLS.join(' ')})`)}`);
    return `    ${command.name})\n      _arguments ${['\\', ...specs].join(' \\\n').replace('\\ \\', '\\')}\n      ;;\n`;
  }).join('');
  const commands = COMMANDS.map(
    ({ name, summary }) => `    ${quoted(`${name}:${summary.replaceAll(':', '\\:')}`)}\n`,
  ).join('');
  return `#compdef junction
# zsh completion for junction. Use it: source <(junction completion zsh)
_junction() {
  local -a commands
  commands=(
${commands}  )
  if (( CURRENT == 2 )) || [[ CURRENT -eq 3 && "$words[2]" == help ]]; then
    _describe command commands
    return
  fi
  local command="$words[2]"
  shift words
  (( CURRENT-- ))
  case "$command" in
${cases}  esac
}
compdef _junction junction
`;
}

function zshSpec(flag: Flag): string {
  const help = flag.help.replaceAll(/[[\]:]/g, '\\$&');
  const values = valuesOf(flag);
  const action = values.length > 0 ? `(${values.join(' ')})` : takesFile(flag) ? '_files' : ' ';
  const argument = flag.kind.alone === undefined ? `:value:${action}` : '';
  return `--${flag.name}${argument === '' ? '' : '='}[${help}]${argument}`;
}

function fish(): string {
  const names = COMMANDS.map(({ name }) => name).join(' ');
  const lines = COMMANDS.flatMap((command) => {
    const inCommand = `-n ${quoted(`__fish_seen_subcommand_from ${command.name}`)}`;
    return [
      `complete -c junction -f -n ${quoted(`not __fish_seen_subcommand_from ${names}`)} -a ${command.name} -d ${quoted(command.summary)}`,
      ...offered(command).map(
        (flag) =>
          `complete -c junction ${inCommand} -l ${flag.name}${fishValue(flag)} -d ${quoted(flag.help)}`,
      ),
    ];
  });
  const shells = `complete -c junction -f -n '__fish_seen_subcommand_from completion' -a ${quoted(SHELLS.join(' '))}`;
  return `# fish completion for junction. Use it: junction completion fish | source\n${[...lines, shells].join('\n')}\n`;
}

function fishValue(flag: Flag): string {
  const values = valuesOf(flag);
  if (values.length > 0) return ` -x -a ${quoted(values.join(' '))}`;
  if (takesFile(flag)) return ' -r -F';
  return flag.kind.alone === undefined ? ' -x' : '';
}

/** As one word of a shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** `junction completion`: scripts by which shells complete commands, flags and their values. */
import { type Flag, isOffered } from '../config/setting.ts';
import { FLAGS } from '../config/table.ts';
import { COMMANDS, type CommandInfo, type CommandName, commandFlags, UsageError } from './commands.ts';
import type { NameKind } from './completeCommand.ts';

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

/** Fish offers files by itself. */
function takesFileArgument(command: CommandInfo): boolean {
  return /\bFILE\b/.test(command.arguments?.usage ?? '');
}

/** What the running proxy can name: values of flags, and words that are no flag. */
const NAMED_FLAGS: Readonly<Record<string, NameKind>> = {
  namespace: 'namespaces',
  'hostname-override': 'nodes',
  from: 'sources',
  to: 'destinations',
  'wait-for': 'services',
};
const NAMED_ARGUMENTS: Readonly<Partial<Record<CommandName, NameKind>>> = {
  explain: 'services',
  services: 'services',
  endpoints: 'services',
  watch: 'services',
};

function bash(): string {
  const words = COMMANDS.map(
    (command) => `    ${command.name}) words=${quoted(flagWords(command).join(' '))} ;;\n`,
  ).join('');
  // Two commands may have flags of one name that take different values.
  const flags = [
    ...COMMANDS.flatMap(({ name, ownFlags }) =>
      ownFlags.map((flag) => ({ flag, pattern: patternOf(`'${name} `, flag) })),
    ),
    ...FLAGS.map((flag) => ({ flag, pattern: patternOf("*' ", flag) })),
  ];
  const names = flags
    .flatMap(({ flag, pattern }) => {
      const kind = NAMED_FLAGS[flag.name];
      return kind === undefined ? [] : [`    ${pattern}) _junction_names ${kind}; return ;;\n`];
    })
    .join('');
  const named = Object.entries(NAMED_ARGUMENTS)
    .map(([name, kind]) => `    ${name}) _junction_names ${kind}; return ;;\n`)
    .join('');
  const withFile = COMMANDS.filter(takesFileArgument)
    .map(({ name }) => `    ${name}) COMPREPLY=($(compgen -f -- "$cur")); return ;;\n`)
    .join('');
  const values = flags
    .filter(({ flag }) => valuesOf(flag).length > 0)
    .map(
      ({ flag, pattern }) =>
        `    ${pattern}) COMPREPLY=($(compgen -W ${quoted(valuesOf(flag).join(' '))} -- "$cur")); return ;;\n`,
    )
    .join('');
  const files = flags.filter(({ flag }) => takesFile(flag)).map(({ pattern }) => pattern);
  return `# bash completion for junction. Use it: source <(junction completion bash)
_junction_names() {
  compopt +o filenames 2> /dev/null
  COMPREPLY=($(compgen -W "$("\${COMP_WORDS[0]}" __complete "$1" "$cur" "\${COMP_WORDS[@]}" 2> /dev/null)" -- "$cur"))
}
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
${values}${names}    ${files.join('|')}) COMPREPLY=($(compgen -f -- "$cur")); return ;;
  esac
  [[ "$cur" == -* ]] || case "\${COMP_WORDS[1]}" in
${named}${withFile}  esac
  case "\${COMP_WORDS[1]}" in
${words}    *) words=${quoted(flagWords(COMMANDS[0]).join(' '))} ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o filenames -F _junction junction
`;
}

function patternOf(command: string, { name, short }: Flag): string {
  const long = `${command}--${name}'`;
  return short === undefined ? long : `${long}|${command}-${short}'`;
}

function flagWords(command: CommandInfo | undefined): readonly string[] {
  return command ? offered(command).map(({ name }) => `--${name}`) : [];
}

function zsh(): string {
  const cases = COMMANDS.map((command) => {
    const specs = offered(command).map((flag) => `        ${quoted(zshSpec(flag))}`);
    if (command.name === 'completion') specs.push(`        ${quoted(`1:shell:(${SHELLS.join(' ')})`)}`);
    const kind = NAMED_ARGUMENTS[command.name];
    if (kind !== undefined) specs.push(`        ${quoted(`1:service: _junction_names ${kind}`)}`);
    if (takesFileArgument(command)) specs.push(`        ${quoted('1:file:_files')}`);
    return `    ${command.name})\n      _arguments ${['\\', ...specs].join(' \\\n').replace('\\ \\', '\\')}\n      ;;\n`;
  }).join('');
  const commands = COMMANDS.map(
    ({ name, summary }) => `    ${quoted(`${name}:${summary.replaceAll(':', '\\:')}`)}\n`,
  ).join('');
  return `#compdef junction
# zsh completion for junction. Use it: source <(junction completion zsh)
_junction_names() {
  local -a names
  names=(\${(f)"$("$_junction_program" __complete "$1" "$PREFIX" "\${_junction_words[@]}" 2> /dev/null)"})
  compadd -a names
}
_junction() {
  local _junction_program="$words[1]"
  local -a _junction_words
  _junction_words=("\${words[@]}")
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
  const kind = NAMED_FLAGS[flag.name];
  const names = kind === undefined ? ' ' : ` _junction_names ${kind}`;
  const action = values.length > 0 ? `(${values.join(' ')})` : takesFile(flag) ? '_files' : names;
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
          `complete -c junction ${inCommand} -l ${flag.name}${flag.short === undefined ? '' : ` -s ${flag.short}`}${fishValue(flag)} -d ${quoted(flag.help)}`,
      ),
    ];
  });
  const named = Object.entries(NAMED_ARGUMENTS).map(
    ([name, kind]) =>
      `complete -c junction -f -n ${quoted(`__fish_seen_subcommand_from ${name}`)} -a '(__junction_names ${kind})'`,
  );
  const shells = `complete -c junction -f -n '__fish_seen_subcommand_from completion' -a ${quoted(SHELLS.join(' '))}`;
  return `# fish completion for junction. Use it: junction completion fish | source
function __junction_names
  set -l words (commandline -opc)
  $words[1] __complete $argv[1] (commandline -ct | string replace -r '^-.*?=' '') $words 2> /dev/null
end
${[...lines, ...named, shells].join('\n')}
`;
}

function fishValue(flag: Flag): string {
  const values = valuesOf(flag);
  if (values.length > 0) return ` -x -a ${quoted(values.join(' '))}`;
  if (takesFile(flag)) return ' -r -F';
  const kind = NAMED_FLAGS[flag.name];
  if (kind !== undefined) return ` -x -a '(__junction_names ${kind})'`;
  return flag.kind.alone === undefined ? ' -x' : '';
}

/** As one word of a shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

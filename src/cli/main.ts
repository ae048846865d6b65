/** The command line. Exit codes: 0 done, 1 it did not work out, 2 the command line or the configuration is wrong. */
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { flagValue, type ParsedFlags, parseCommandLine } from '../config/commandLine.ts';
import type { ValidConfig } from '../config/effective.ts';
import { type LoadedConfig, loadConfig, nodeNameOf } from '../config/load.ts';
import { toSettings } from '../config/settings.ts';
import { isValid, validate } from '../config/validate.ts';
import { didYouMean } from '../text/suggest.ts';
import { isJunctionError } from '../errors.ts';
import { requireNetAdmin } from '../modes/prerequisites/capabilities.ts';
import { FAMILIES, type Family } from '../model/ip.ts';
import { printableLine } from '../text/printable.ts';
import { BUILD, VERSION } from '../version.ts';
import { checkCommand } from './checkCommand.ts';
import { runningMode } from '../daemon/otherProxies.ts';
import { cleanupCommand, refuseBesideJunction } from './cleanupCommand.ts';
import {
  type CommandInfo,
  commandFlags,
  commandHelp,
  COMMANDS,
  flagsElsewhere,
  overview,
  OWN_FLAGS,
  UsageError,
} from './commands.ts';
import { completionScript, type Shell, SHELLS } from './completionCommand.ts';
import type { Output } from './output.ts';
import { planCommand } from './planCommand.ts';
import { runCommand } from './runCommand.ts';

export async function main(argv: readonly string[], io: Output): Promise<number> {
  try {
    return await dispatch(argv, io);
  } catch (error) {
    return explain(error, io);
  }
}

/** Whether this runs until it is stopped. Flags alone mean run, as with kube-proxy. */
export function isDaemon([first = '']: readonly string[]): boolean {
  return first === 'run' || (first.startsWith('-') && first !== '--help' && first !== '-h');
}

async function dispatch(argv: readonly string[], io: Output): Promise<number> {
  const [first, ...rest] = argv;
  if (first === undefined || first === '--help' || first === '-h' || first === 'help') {
    const isOfOne = first === 'help' && rest[0] !== undefined && !rest[0].startsWith('-');
    io.out(isOfOne ? commandHelp(commandNamed(rest[0] ?? ''), columns()) : overview(columns()));
    return 0;
  }
  if (first.startsWith('-')) return execute(commandNamed('run'), argv, io);
  return execute(commandNamed(first), rest, io);
}

/** A pipe has no width: it ends in a file or a pager. */
function columns(): number {
  return process.stdout.columns ?? 80;
}

function commandNamed(name: string): CommandInfo {
  const command = COMMANDS.find((each) => each.name === name);
  if (command) return command;
  const names = COMMANDS.map((each) => each.name);
  const longer = name.length > 2 ? names.find((each) => each.startsWith(name)) : undefined;
  const hint = didYouMean(longer ?? name, names) || ` (expected one of ${names.join(', ')})`;
  throw new UsageError(
    [`unknown command ${JSON.stringify(name)}${hint}`],
    'junction --help explains the commands',
  );
}

function parse(command: CommandInfo, args: readonly string[]): ParsedFlags {
  const parsed = parseCommandLine(args, commandFlags(command), flagsElsewhere(command));
  if (!parsed.ok) throw new UsageError(parsed.problems, `junction ${command.name} --help lists its flags`);
  return parsed.value;
}

async function execute(command: CommandInfo, args: readonly string[], io: Output): Promise<number> {
  const [first, ...rest] = args;
  if (command.name === 'completion' && first?.startsWith('-') !== true) {
    const script = completionScript(shellOf(first));
    parse(command, rest);
    io.out(script);
    return 0;
  }
  const parsed = parse(command, args);
  if (parsed.help) {
    io.out(commandHelp(command, columns()));
    return 0;
  }
  if (parsed.version !== 'no') {
    io.out(parsed.version === 'raw' ? printVersion('text') : `Junction v${VERSION}\n`);
    return 0;
  }
  if (command.name === 'version') {
    io.out(printVersion(flagValue(parsed, OWN_FLAGS.output)));
    return 0;
  }
  const loaded = load(parsed);
  const { config } = loaded;
  // Each of them has a flag of that name.
  const output = flagValue(parsed, OWN_FLAGS.planOutput);
  const printing = { families: familiesOf(parsed), output, columns: process.stdout.columns };
  switch (command.name) {
    case 'run':
      return runCommand(loaded, parsed, io, {
        nodeName: () => nodeName(config),
        reload: () => load(parsed).config,
      });
    case 'plan':
      needInput(config);
      return planCommand(config, toSettings(config, nodeName(config)), io, printing);
    case 'check':
      return checkCommand(config, io, printing);
    case 'cleanup': {
      requireNetAdmin();
      const dryRun = flagValue(parsed, OWN_FLAGS.dryRun);
      if (!dryRun) await refuseBesideJunction(io, flagValue(parsed, OWN_FLAGS.force));
      const mode = flagValue(parsed, OWN_FLAGS.cleanupMode);
      const settings = { ...printing, variant: config.junction.iptablesVariant, dryRun, mode };
      const machine = { runningMode: () => runningMode(config.metricsBindAddress) };
      return cleanupCommand(io, settings, machine);
    }
    case 'completion':
      throw new UsageError([`which shell? junction completion ${SHELLS.join('|')}`]);
  }
}

function shellOf(word: string | undefined): Shell {
  const shell = SHELLS.find((each) => each === word);
  if (shell !== undefined) return shell;
  const problem = word === undefined ? 'which shell?' : `no completion for ${JSON.stringify(word)}:`;
  throw new UsageError([`${problem} junction completion ${SHELLS.join('|')}`]);
}

function printVersion(output: string): string {
  const { commit, date } = BUILD;
  const node = process.version;
  if (output === 'json')
    return `${JSON.stringify({ version: `v${VERSION}`, commit, buildDate: date, node }, null, 2)}\n`;
  return `Junction v${VERSION}\n  commit  ${commit}\n  built   ${date}\n  Node    ${node}\n`;
}

function load(parsed: ParsedFlags): LoadedConfig & { readonly config: ValidConfig } {
  const loaded = loadConfig(parsed, (path) => readFileSync(path, 'utf8'));
  if (!loaded.ok) throw new UsageError(loaded.problems);
  const { config } = loaded.value;
  if (!isValid(config)) throw new UsageError(validate(config));
  return { ...loaded.value, config };
}

function familiesOf(parsed: ParsedFlags): readonly Family[] {
  const text = flagValue(parsed, OWN_FLAGS.family);
  return FAMILIES.filter((family) => text === 'both' || family.toLowerCase() === text);
}

function nodeName(config: ValidConfig): string {
  const name = nodeNameOf(config, hostname());
  if (name === undefined) throw new UsageError(['--hostname-override must not be empty']);
  return name;
}

/** In a pod the API server could be found without either; but a plan is for people, who say what they mean. */
function needInput({ junction, clientConnection, master }: ValidConfig): void {
  if ((junction.manifests ?? []).length > 0 || clientConnection.kubeconfig !== '' || master !== '') return;
  throw new UsageError(
    [
      '--manifests and --kubeconfig are missing: name files with Services and EndpointSlices (- is standard input), or the kubeconfig of a cluster',
    ],
    'junction plan --help has examples',
  );
}

/** Says what went wrong and what to do about it; returns the exit code. */
function explain(error: unknown, io: Output): number {
  if (error instanceof UsageError) {
    for (const problem of error.problems) io.err(`junction: ${printableLine(problem)}\n`);
    if (error.see !== undefined) io.err(`  what to do: ${error.see}\n`);
    return 2;
  }
  if (isJunctionError(error)) {
    io.err(`junction: ${printableLine(error.message)} (${error.code})\n`);
    if (error.detail !== undefined) io.err(`${error.detail.trimEnd()}\n`);
    io.err(`  what to do: ${printableLine(error.hint)}\n`);
    return 1;
  }
  io.err(`junction: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  return 1;
}

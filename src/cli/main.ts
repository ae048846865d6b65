/** The command line. Exit codes: 0 done, 1 it did not work out, 2 the command line or the configuration is wrong. */
import { flagValue, type ParsedFlags, parseCommandLine } from '../config/commandLine.ts';
import { printableLine } from '../text/printable.ts';
import { didYouMean } from '../text/suggest.ts';
import { FAMILIES, type Family } from '../model/ip.ts';
import { BUILD, VERSION } from '../version.ts';
import {
  type CommandInfo,
  type CommandName,
  commandFlags,
  COMMANDS,
  flagsElsewhere,
  UsageError,
} from './commands.ts';
import { completeCommand } from './completeCommand.ts';
import { endpointsCommand } from './endpointsCommand.ts';
import { explainCommand } from './explainCommand.ts';
import { OWN_FLAGS } from './ownFlags.ts';
import { servicesCommand } from './servicesCommand.ts';
import { statusCommand } from './statusCommand.ts';
import { watchCommand } from './watchCommand.ts';
import type { Output, PrintOptions } from './output.ts';
import { reportError } from './reportError.ts';

export async function main(argv: readonly string[], io: Output): Promise<number> {
  try {
    return await dispatch(argv, io);
  } catch (error) {
    return reportError(error, io);
  }
}

/** Whether this runs until it is stopped. Flags alone mean run, as with kube-proxy. */
export function isDaemon([first = '']: readonly string[]): boolean {
  return first === 'run' || (first.startsWith('-') && !/^(?:--help|-h|--version(?:=.*)?)$/.test(first));
}

async function dispatch(argv: readonly string[], io: Output): Promise<number> {
  const [first, ...rest] = argv;
  if (first === undefined || first === '--help' || first === '-h' || first === 'help') {
    const isOfOne = first === 'help' && rest[0] !== undefined && !rest[0].startsWith('-');
    const { commandHelp, overview } = await planning();
    io.out(isOfOne ? commandHelp(commandNamed(rest[0] ?? ''), columns()) : overview(columns()));
    return 0;
  }
  if (first === '__complete') return completeCommand(rest, io);
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
  const parsed = parseCommandLine(
    args,
    commandFlags(command),
    flagsElsewhere(command),
    command.arguments?.most,
  );
  if (!parsed.ok) throw new UsageError(parsed.problems, `junction ${command.name} --help lists its flags`);
  return parsed.value;
}

async function execute(command: CommandInfo, args: readonly string[], io: Output): Promise<number> {
  const parsed = parse(command, args);
  if (parsed.help) {
    const { commandHelp } = await planning();
    io.out(commandHelp(command, columns()));
    return 0;
  }
  if (parsed.version !== 'no') {
    io.out(parsed.version === 'raw' ? printVersion('text') : `Junction v${VERSION}\n`);
    return 0;
  }
  // `run` logs them.
  if (command.name !== 'run')
    for (const { message } of parsed.removed) io.err(`${printableLine(`warning: ${message}`)}\n`);
  return RUN[command.name](parsed, io);
}

/** A question to the running proxy does not wait for the proxy's code: what others need is loaded when they are called. */
const planning = (): Promise<typeof import('./planningCommands.ts')> => import('./planningCommands.ts');
const node = (): Promise<typeof import('./nodeCommands.ts')> => import('./nodeCommands.ts');

const RUN: Readonly<Record<CommandName, (parsed: ParsedFlags, io: Output) => Promise<number>>> = {
  run: async (parsed, io) => {
    const { loadValid, nodeName, runCommand } = await import('./startCommand.ts');
    const loaded = loadValid(parsed);
    return runCommand(loaded, parsed, io, {
      nodeName: () => nodeName(loaded.config),
      reload: () => loadValid(parsed).config,
    });
  },
  explain: explainCommand,
  services: servicesCommand,
  endpoints: endpointsCommand,
  status: statusCommand,
  watch: watchCommand,
  ui: async (parsed, io) => (await node()).uiCommand(parsed, io),
  plan: async (parsed, io) => {
    const { loadValid, needInput, nodeSettings, planCommand } = await planning();
    const { config } = loadValid(parsed);
    needInput(config);
    return planCommand(config, nodeSettings(config), io, printing(parsed));
  },
  check: async (parsed, io) => {
    const [{ checkCommand }, { loadValid }] = await Promise.all([node(), planning()]);
    return checkCommand(loadValid(parsed).config, io, printing(parsed));
  },
  cleanup: async (parsed, io) => {
    const [{ runCleanup }, { loadValid }] = await Promise.all([node(), planning()]);
    const { config } = loadValid(parsed);
    return runCleanup(config, io, {
      ...printing(parsed),
      variant: config.junction.iptablesVariant,
      mode: flagValue(parsed, OWN_FLAGS.cleanupMode),
      dryRun: flagValue(parsed, OWN_FLAGS.dryRun),
      force: flagValue(parsed, OWN_FLAGS.force),
      waitForProxy: flagValue(parsed, OWN_FLAGS.waitForProxy),
      timeoutMs: flagValue(parsed, OWN_FLAGS.timeout),
      stay: flagValue(parsed, OWN_FLAGS.stay),
    });
  },
  doctor: async (parsed, io) => (await node()).doctorCommand(parsed, io, familiesOf(parsed)),
  diff: async (parsed, io) => (await node()).diffCommand(parsed, io, familiesOf(parsed)),
  bundle: async (parsed, io) => (await node()).bundleCommand(parsed, io, familiesOf(parsed)),
  version: (parsed, io) => {
    io.out(printVersion(flagValue(parsed, OWN_FLAGS.output)));
    return Promise.resolve(0);
  },
  completion: async ({ arguments: [shell] }, io) => {
    io.out((await planning()).completionCommand(shell));
    return 0;
  },
};

/** Each command that prints has a flag of that name. */
function printing(parsed: ParsedFlags): PrintOptions {
  const output = flagValue(parsed, OWN_FLAGS.planOutput);
  return { families: familiesOf(parsed), output, columns: process.stdout.columns };
}

function printVersion(output: string): string {
  const { commit, date } = BUILD;
  const node = process.version;
  if (output === 'json')
    return `${JSON.stringify({ version: `v${VERSION}`, commit, buildDate: date, node }, null, 2)}\n`;
  return `Junction v${VERSION}\n  commit  ${commit}\n  built   ${date}\n  Node    ${node}\n`;
}

function familiesOf(parsed: ParsedFlags): readonly Family[] {
  const text = flagValue(parsed, OWN_FLAGS.family);
  return FAMILIES.filter((family) => text === 'both' || family.toLowerCase() === text);
}

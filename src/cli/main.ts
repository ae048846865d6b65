/** The command line. */
import { Command, CommanderError, Option } from 'commander';
import { isJunctionError } from '../errors.ts';
import { VERSION } from '../version.ts';
import { normaliseArguments } from './arguments.ts';
import { cleanupCommand } from './cleanupCommand.ts';
import { type CommandName, type Flag, FLAGS, flagsOf } from './flags.ts';
import { type Output, planCommand } from './planCommand.ts';
import { runCommand } from './runCommand.ts';
import { type FlagValues, readSettings, type Settings, SettingsError } from './settings.ts';

const EXAMPLES: Readonly<Record<CommandName, string>> = {
  run: `
Examples:
  sudo junction run --manifests examples --hostname-override node1 --cluster-cidr 10.244.0.0/16,fd00:244::/32
  sudo junction run --manifests services.yaml --iptables-layout classic --v=1`,
  plan: `
Examples:
  junction plan --manifests examples --family ipv4
  junction plan --manifests examples --hostname-override node1 --output table
  junction plan --manifests services.yaml --family ipv6 | sudo ip6tables-restore --noflush`,
  cleanup: `
Examples:
  sudo junction cleanup --dry-run
  sudo junction cleanup --output json`,
};

const SUMMARIES: Readonly<Record<CommandName, string>> = {
  run: 'serve: keep the kernel forwarding service addresses, until stopped; the rules then stay in place',
  plan: 'print what would be written for given manifests; needs no root, touches nothing',
  cleanup: "remove everything that is Junction's (or kube-proxy's) from iptables, and say what it was",
};

type Action = (settings: Settings) => Promise<number>;

export async function main(argv: readonly string[]): Promise<number> {
  let exitCode = 0;
  const program = new Command('junction')
    .description(
      'A Kubernetes service proxy that syncs in milliseconds and says why a packet goes where it goes.',
    )
    .version(VERSION, '--version', 'print the version')
    .helpOption('-h, --help', 'print this')
    .configureHelp({ showGlobalOptions: false })
    .showSuggestionAfterError(true)
    .exitOverride();
  const actions: Readonly<Record<CommandName, Action>> = {
    run: (settings) => untilSignalled((signal) => runCommand(needManifests(settings), signal)),
    plan: (settings) => planCommand(needManifests(settings), STDIO),
    cleanup: (settings) => cleanupCommand(settings, STDIO),
  };
  for (const name of ['run', 'plan', 'cleanup'] as const) {
    program.addCommand(
      makeCommand(name, async (settings) => {
        exitCode = await actions[name](settings);
      }),
    );
  }
  try {
    await program.parseAsync([...normaliseArguments(argv, FLAGS)], { from: 'user' });
    return exitCode;
  } catch (error) {
    return explain(error);
  }
}

const STDIO: Output = {
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
};

function makeCommand(name: CommandName, action: (settings: Settings) => Promise<void>): Command {
  const flags = flagsOf(name);
  const command = new Command(name)
    .description(SUMMARIES[name])
    .helpOption('-h, --help', 'print this')
    .addHelpText('after', EXAMPLES[name])
    .allowExcessArguments(false)
    .showSuggestionAfterError(true)
    .exitOverride();
  for (const flag of flags) command.addOption(makeOption(flag));
  return command.action((_, parsed: Command) => action(readSettings(flags, valuesOf(flags, parsed))));
}

function makeOption(flag: Flag): Option {
  const value = flag.kind === 'bool' ? '[BOOL]' : `<${flag.placeholder ?? flag.kind.toUpperCase()}>`;
  const names = flag.short === undefined ? `--${flag.name}` : `-${flag.short}, --${flag.name}`;
  const details = [
    ...(flag.choices ? [flag.choices.join(' | ')] : []),
    ...(flag.default === undefined ? [] : [`default ${flag.default}`]),
  ];
  const help = details.length > 0 ? `${flag.help} (${details.join('; ')})` : flag.help;
  const option = new Option(`${names} ${value}`, help);
  return flag.kind === 'list'
    ? option.argParser((text: string, before: readonly string[] | undefined) => [...(before ?? []), text])
    : option;
}

function valuesOf(flags: readonly Flag[], command: Command): FlagValues {
  const options = command.opts<Record<string, string | readonly string[] | undefined>>();
  return Object.fromEntries(flags.map(({ name }) => [name, options[camelCase(name)]]));
}

function camelCase(name: string): string {
  return name.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}

function needManifests(settings: Settings): Settings {
  if (settings.manifests.length > 0) return settings;
  throw new SettingsError([
    '--manifests is missing: name a file or a directory with Services and EndpointSlices',
  ]);
}

async function untilSignalled(work: (signal: AbortSignal) => Promise<number>): Promise<number> {
  const controller = new AbortController();
  const abort = (): void => controller.abort();
  process.once('SIGINT', abort);
  process.once('SIGTERM', abort);
  return work(controller.signal);
}

/** Says what went wrong and what to do about it; answers the exit code. */
function explain(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode; // it has spoken already
  if (error instanceof SettingsError) {
    for (const problem of error.problems) process.stderr.write(`junction: ${problem}\n`);
    return 2;
  }
  if (isJunctionError(error)) {
    process.stderr.write(`junction: ${error.message}\n`);
    if (error.detail !== undefined) process.stderr.write(`${error.detail.trimEnd()}\n`);
    process.stderr.write(`  what to do: ${error.hint}\n`);
    return 1;
  }
  process.stderr.write(
    `junction: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
  );
  return 1;
}

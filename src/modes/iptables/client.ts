/**
 * The client to iptables: the only place that runs its programs, one client per address family.
 *
 * Commands through one client never overlap, because iptables-nft reads the ruleset before it changes it, and two of
 * them at once make one of them start over.
 */
import { isJunctionError, JunctionError } from '../../errors.ts';
import type { Family } from '../../model/ip.ts';
import { printHolder } from '../../system/procfs.ts';
import {
  type Argv,
  type CommandRunner,
  isUnanswered,
  type ProcessObserver,
  run,
  type RunOptions,
  type RunResult,
} from '../../system/processes.ts';
import { held, lockHolder, type LockOptions, takeXtablesLocks, XTABLES_LOCK_PATH } from './locks.ts';
import {
  around,
  failingLine,
  isCommit,
  killed,
  type Outcome,
  outcomeOf,
  outputOf,
  printEnd,
} from './outcome.ts';
import { savedRuleExists } from './savedRule.ts';
import {
  chooseVariant,
  featuresOf,
  type IptablesFeatures,
  needsRestoreProbe,
  parseVersion,
  type Programs,
  type Variant,
  type VariantChoice,
} from './variant.ts';

export type TableName = 'filter' | 'nat' | 'mangle' | 'raw' | 'security';

export interface ClientOptions {
  readonly family: Family;
  readonly variant?: VariantChoice | undefined;
  readonly runner?: CommandRunner | undefined;
  /** How long iptables waits for its lock. */
  readonly lockSeconds?: number | undefined;
  /** Another lock file than /run/xtables.lock; iptables gets it in XTABLES_LOCKFILE. */
  readonly lockPath?: string | undefined;
  /** For the locks that we take ourselves, around an old iptables-restore. */
  readonly ownLocks?: Omit<LockOptions, 'path'> | undefined;
  /** Notified of every program that we start, before it changes anything, so far as its input is ours to hold back. */
  readonly programs?: ProcessObserver | undefined;
  /** How long a command with little input may take; twice as long after each that took longer. */
  readonly timeoutMs?: number | undefined;
  /** Called for every command that ended, for slow-command logs and metrics. */
  readonly onCommand?: ((command: CommandReport) => void) | undefined;
}

interface CommandReport {
  readonly argv: Argv;
  readonly code: number | null;
  readonly milliseconds: number;
}

interface RestoreOptions {
  /** Empties the whole table first, foreign rules and all. */
  readonly flush?: boolean | undefined;
  /** Reads the counters in the input. */
  readonly counters?: boolean | undefined;
}

export type ChainLook =
  | { readonly state: 'present' }
  | { readonly state: 'absent'; readonly reason: string }
  /** The question is open: the lock, rights, a program that was killed. */
  | { readonly state: 'unknown'; readonly error: JunctionError };

/** A command that has ended. */
interface Command {
  readonly argv: Argv;
  readonly result: RunResult;
  readonly outcome: Outcome;
}

interface ClientState {
  readonly family: Family;
  readonly version: string;
  readonly variant: Variant;
  readonly reason: string;
  readonly features: IptablesFeatures;
  readonly programs: Programs;
}

/**
 * How long a command may take, and how much more for each megabyte of its input. kube-proxy waits for iptables-restore
 * without a limit, so that one that hangs ends all syncs. A machine that is merely slow gets twice the time after each
 * failure, up to the last limit.
 */
const TIMEOUT_MS = 30_000;
const TIMEOUT_MS_PER_MEGABYTE = 15_000;
const LAST_TIMEOUT_MS = 5 * 60_000;

export class IptablesClient {
  readonly family: Family;
  /** `1.8.9` */
  readonly version: string;
  readonly variant: Variant;
  /** Why this variant. */
  readonly reason: string;
  readonly features: IptablesFeatures;
  readonly programs: Programs;
  readonly #options: ClientOptions;
  readonly #runner: CommandRunner;
  readonly #queue = new SerialQueue();
  /** In a row. */
  #timeouts = 0;

  private constructor(state: ClientState, options: ClientOptions) {
    this.family = state.family;
    this.version = state.version;
    this.variant = state.variant;
    this.reason = state.reason;
    this.features = state.features;
    this.programs = state.programs;
    this.#options = options;
    this.#runner = options.runner ?? run;
  }

  static async open(options: ClientOptions): Promise<IptablesClient> {
    const { family, variant = 'auto', runner = run, lockSeconds = 5 } = options;
    const { programs, reason } = await chooseVariant(family, variant, runner);
    const printed = await runner([programs.iptables, '--version'], { timeoutMs: TIMEOUT_MS });
    const version = parseVersion(printed.stdout + printed.stderr);
    if (!version) {
      if (printed.code === null) throw killed([programs.iptables, '--version'], printed);
      const detail = outputOf(printed);
      throw new JunctionError('IPTABLES_VERSION_UNKNOWN', `${programs.iptables} --version names no version`, {
        detail,
      });
    }
    const restoreHasVersion =
      needsRestoreProbe(version.text) && (await printsVersion(runner, programs.restore));
    const features = featuresOf(version.text, restoreHasVersion, lockSeconds);
    const state = { family, version: version.text, variant: version.variant, reason, features, programs };
    return new IptablesClient(state, options);
  }

  /** Returns whether the chain was there before. */
  ensureChain(table: TableName, chain: string): Promise<boolean> {
    return this.#queue.run(async () => {
      const command = await this.#rule('-N', table, chain);
      if (command.outcome === 'done') return false;
      if (command.outcome === 'no') return true;
      throw this.#failure(command);
    });
  }

  /** Returns whether the chain was there. */
  flushChain(table: TableName, chain: string): Promise<boolean> {
    return this.#queue.run(() => this.#changeIfThere('-F', table, chain));
  }

  /** Returns whether the chain was there. It must be empty, and nothing may jump to it. */
  deleteChain(table: TableName, chain: string): Promise<boolean> {
    return this.#queue.run(() => this.#changeIfThere('-X', table, chain));
  }

  lookForChain(table: TableName, chain: string): Promise<ChainLook> {
    return this.#queue.run(async () => {
      try {
        const command = await this.#rule('-S', table, chain);
        const { outcome, result } = command;
        if (outcome === 'done') return { state: 'present' };
        if (outcome === 'no' || outcome === 'notFound') return { state: 'absent', reason: printEnd(result) };
        return { state: 'unknown', error: this.#failure(command) };
      } catch (error) {
        if (isJunctionError(error) && isUnanswered(error)) return { state: 'unknown', error };
        throw error;
      }
    });
  }

  checkRule(table: TableName, chain: string, args: readonly string[]): Promise<boolean> {
    return this.#queue.run(() => this.#check(table, chain, args));
  }

  /** Returns whether the rule was there before; where it stood then, it stays. */
  ensureRule(
    position: 'prepend' | 'append',
    table: TableName,
    chain: string,
    args: readonly string[],
  ): Promise<boolean> {
    return this.#queue.run(async () => {
      if (await this.#check(table, chain, args)) return true;
      const command = await this.#rule(position === 'prepend' ? '-I' : '-A', table, chain, args);
      if (command.outcome !== 'done') throw this.#failure(command);
      return false;
    });
  }

  /** Returns whether the rule was there. A rule whose chain, target or match does not exist is not. */
  deleteRule(table: TableName, chain: string, args: readonly string[]): Promise<boolean> {
    return this.#queue.run(async () => {
      const check = await this.#find(table, chain, args);
      if (check.outcome === 'no' || check.outcome === 'notFound') return false;
      if (check.outcome !== 'done') throw this.#failure(check);
      return await this.#changeIfThere('-D', table, chain, args);
    });
  }

  save(table: TableName, options: { readonly counters?: boolean } = {}): Promise<string> {
    return this.#queue.run(async () => {
      const command = await this.#save(table, options.counters ?? false);
      if (command.outcome !== 'done') throw this.#failure(command);
      return command.result.stdout;
    });
  }

  /** The same in pieces, which come while iptables prints them. */
  readSave(
    table: TableName,
    options: { readonly counters?: boolean },
    take: (text: string) => Promise<void>,
  ): Promise<void> {
    return this.#queue.run(async () => {
      const command = await this.#save(table, options.counters ?? false, take);
      if (command.outcome !== 'done') throw this.#failure(command);
      // A runner that cannot pass it on has kept it.
      if (command.result.stdout !== '') await take(command.result.stdout);
    });
  }

  /** One chain in the form of a save; `undefined` where there is none. */
  list(table: TableName, chain: string): Promise<string | undefined> {
    return this.#queue.run(async () => {
      const command = await this.#rule('-S', table, chain);
      if (command.outcome === 'no' || command.outcome === 'notFound') return undefined;
      if (command.outcome !== 'done') throw this.#failure(command);
      const rules = command.result.stdout.split('\n').filter((line) => line.startsWith('-A '));
      return [`*${table}`, `:${chain} - [0:0]`, ...rules, 'COMMIT', ''].join('\n');
    });
  }

  /** Without a table, all tables of the input. Either a table's part of the input is done as a whole, or not at all. */
  restore(table: TableName | undefined, input: string, options: RestoreOptions = {}): Promise<void> {
    return this.#queue.run(async () => {
      const { restoreWait } = this.features;
      const argv: Argv = [
        this.programs.restore,
        ...(restoreWait ?? []),
        ...(table === undefined ? [] : ['-T', table]),
        ...(options.flush ? [] : ['--noflush']),
        ...((options.counters ?? true) ? ['--counters'] : []),
      ];
      const locks = restoreWait ? undefined : await takeXtablesLocks(this.#lockOptions());
      try {
        const command = await this.#run(argv, { stdin: input });
        if (command.outcome !== 'done') throw this.#restoreFailure(command, input);
      } finally {
        locks?.release();
      }
    });
  }

  async #check(table: TableName, chain: string, args: readonly string[]): Promise<boolean> {
    const command = await this.#find(table, chain, args);
    if (command.outcome === 'done') return true;
    const { outcome, result } = command;
    if (outcome === 'no' || (outcome === 'notFound' && result.code === 1)) return false;
    throw this.#failure(command);
  }

  /** Looks for a rule: `done` when it is there. */
  async #find(table: TableName, chain: string, args: readonly string[]): Promise<Command> {
    if (this.features.check) return await this.#rule('-C', table, chain, args);
    const saved = await this.#save(table, false);
    const there = saved.outcome === 'done' && savedRuleExists(saved.result.stdout, chain, args);
    return saved.outcome === 'done' && !there ? { ...saved, outcome: 'no' } : saved;
  }

  async #changeIfThere(
    operation: string,
    table: TableName,
    chain: string,
    args?: readonly string[],
  ): Promise<boolean> {
    const command = await this.#rule(operation, table, chain, args);
    if (command.outcome === 'done') return true;
    if (command.outcome === 'notFound') return false;
    throw this.#failure(command);
  }

  #save(table: TableName, counters: boolean, onStdout?: RunOptions['onStdout']): Promise<Command> {
    return this.#run([this.programs.save, '-t', table, ...(counters ? ['-c'] : [])], { onStdout });
  }

  #rule(operation: string, table: TableName, chain: string, args: readonly string[] = []): Promise<Command> {
    const argv: Argv = [
      this.programs.iptables,
      ...this.features.wait,
      operation,
      chain,
      '-t',
      table,
      ...args,
    ];
    return this.#run(argv, {});
  }

  async #run(argv: Argv, options: Pick<RunOptions, 'stdin' | 'onStdout'>): Promise<Command> {
    const { lockPath, onCommand, programs } = this.#options;
    const started = performance.now();
    const result = await this.#inTime(argv, {
      ...options,
      observer: programs,
      timeoutMs: this.#limitFor(options.stdin?.length ?? 0),
      env: lockPath ? { XTABLES_LOCKFILE: lockPath } : undefined,
    });
    onCommand?.({ argv, code: result.code, milliseconds: performance.now() - started });
    return { argv, result, outcome: outcomeOf(result, this.variant) };
  }

  #limitFor(inputLength: number): number {
    const { timeoutMs = TIMEOUT_MS } = this.#options;
    const once = timeoutMs + (inputLength / (1 << 20)) * TIMEOUT_MS_PER_MEGABYTE;
    return Math.round(Math.min(once * 2 ** this.#timeouts, Math.max(once, LAST_TIMEOUT_MS)));
  }

  async #inTime(argv: Argv, options: RunOptions): Promise<RunResult> {
    try {
      const result = await this.#runner(argv, options);
      this.#timeouts = 0;
      return result;
    } catch (error) {
      if (isJunctionError(error, 'PROGRAM_TIMED_OUT')) this.#timeouts++;
      throw error;
    }
  }

  #failure({ argv, result, outcome }: Command): JunctionError {
    const message = `${argv.join(' ')} ${printEnd(result)}`;
    const detail = outputOf(result);
    if (outcome === 'lockHeld') return this.#heldError();
    if (outcome === 'lockUnusable') return new JunctionError('XTABLES_LOCK_UNUSABLE', message, { detail });
    if (result.code === null) return killed(argv, result);
    return new JunctionError('IPTABLES_FAILED', message, { detail });
  }

  #restoreFailure(command: Command, input: string): JunctionError {
    const { argv, result, outcome } = command;
    if (outcome === 'lockHeld' || outcome === 'lockUnusable') return this.#failure(command);
    const output = outputOf(result);
    const line = failingLine(output, input);
    const place = line === undefined ? '' : ` (line ${line}${isCommit(input, line) ? ', the COMMIT' : ''})`;
    const detail = line === undefined ? output : `${output}\n${around(input, line)}`;
    return new JunctionError('IPTABLES_RESTORE_FAILED', `${argv.join(' ')} ${printEnd(result)}${place}`, {
      line,
      detail,
    });
  }

  #heldError(): JunctionError {
    const { path } = this.#lockOptions();
    return held(path, printHolder(lockHolder(path)));
  }

  #lockOptions(): LockOptions & { readonly path: string } {
    const { lockPath, ownLocks } = this.#options;
    return { ...ownLocks, path: lockPath ?? process.env['XTABLES_LOCKFILE'] ?? XTABLES_LOCK_PATH };
  }
}

async function printsVersion(runner: CommandRunner, restore: string): Promise<boolean> {
  // With empty input: a restore that does not know the option goes on to read rules.
  const result = await runner([restore, '--version'], { stdin: '', timeoutMs: TIMEOUT_MS });
  return parseVersion(result.stdout + result.stderr) !== undefined;
}

/** Runs tasks one after another, in the order in which they were given. A failed task does not stop the next. */
class SerialQueue {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(task: () => Promise<T>): Promise<T> {
    const result = this.#last.then(task);
    this.#last = result.catch(() => undefined);
    return result;
  }
}

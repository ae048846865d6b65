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
  type RunResult,
} from '../../system/processes.ts';
import { systemClock } from '../../time/systemClock.ts';
import { TimeSlice } from '../../time/timeSlice.ts';
import { held, lockHolder, type LockOptions, takeXtablesLocks, XTABLES_LOCK_PATH } from './locks.ts';
import { type NftLook, nftLook } from './kernelTables.ts';
import {
  isIncompatible,
  killed,
  type Outcome,
  outcomeOf,
  outputOf,
  printEnd,
  restoreFailure,
} from './outcome.ts';
import { CHAINS_PER_RESTORE, printStep, type Step } from './rules/edit.ts';
import { TextRule } from './rules/textRule.ts';
import { keyOf, parseWords } from './rules/words.ts';
import type { Table } from './rules/rule.ts';
import {
  chooseVariant,
  featuresOf,
  type IptablesFeatures,
  needsRestoreProbe,
  parseVersion,
  type Programs,
  restorePrintsVersion,
  type Variant,
  type VariantChoice,
} from './variant.ts';

const TIMEOUT_MS = 30_000;
const TIMEOUT_MS_PER_MEGABYTE = 15_000;
const LAST_TIMEOUT_MS = 5 * 60_000;

export interface ClientOptions {
  readonly family: Family;
  readonly variant?: VariantChoice | undefined;
  readonly runner?: CommandRunner | undefined;
  /** By which the variant is found, and chains that iptables cannot print; by default this thread's kernel. */
  readonly nft?: NftLook | undefined;
  /** How long iptables waits for its lock. */
  readonly lockSeconds?: number | undefined;
  /** Another lock file than /run/xtables.lock, also for iptables. */
  readonly lockPath?: string | undefined;
  /** For the locks that we take ourselves, around an old iptables-restore. */
  readonly ownLocks?: Omit<LockOptions, 'path'> | undefined;
  /** Notified of every program that we start, before it changes anything, so far as its input is ours to hold back. */
  readonly programs?: ProcessObserver | undefined;
  /** How long a command with little input may take; twice as long after each that took longer. */
  readonly timeoutMs?: number | undefined;
}

/** Takes text while a program prints it. */
export type TakeText = (text: string) => Promise<void>;

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

/** What a command returns by its outcome; any other is an error. */
type Meanings<T> = Readonly<Partial<Record<Outcome, T>>>;

/** Of a command that changes what may not be there: returns whether it was. */
const IF_THERE: Meanings<boolean> = { done: true, notFound: false };

export class IptablesClient {
  readonly family: Family;
  /** `1.8.9` */
  readonly version: string;
  readonly variant: Variant;
  /** Why this variant. */
  readonly reason: string;
  readonly features: IptablesFeatures;
  readonly programs: Programs;
  readonly timeSlice = new TimeSlice(systemClock);
  readonly #options: ClientOptions;
  readonly #runner: CommandRunner;
  #last: Promise<unknown> = Promise.resolve();
  /** In a row. */
  #timeouts = 0;

  private constructor(
    options: ClientOptions,
    version: { readonly text: string; readonly variant: Variant },
    chosen: { readonly programs: Programs; readonly reason: string },
    features: IptablesFeatures,
  ) {
    this.family = options.family;
    this.version = version.text;
    this.variant = version.variant;
    this.reason = chosen.reason;
    this.features = features;
    this.programs = chosen.programs;
    this.#options = options;
    this.#runner = options.runner ?? run;
  }

  static async open(options: ClientOptions): Promise<IptablesClient> {
    const { family, variant = 'auto', runner = run, lockSeconds = 5 } = options;
    const chosen = await chooseVariant(family, variant, runner, options.nft);
    const { iptables, restore } = chosen.programs;
    const printed = await runner([iptables, '--version'], { timeoutMs: TIMEOUT_MS });
    const version = parseVersion(printed.stdout + printed.stderr);
    if (!version) {
      if (printed.code === null) throw killed([iptables, '--version'], printed);
      throw new JunctionError('IPTABLES_VERSION_UNKNOWN', `${iptables} --version names no version`, {
        detail: outputOf(printed),
      });
    }
    const restoreHasVersion =
      needsRestoreProbe(version.text) && (await restorePrintsVersion(runner, restore));
    const features = featuresOf(version.text, restoreHasVersion, lockSeconds);
    return new IptablesClient(options, version, chosen, features);
  }

  /** Returns whether the chain was there before. */
  ensureChain(table: Table, chain: string): Promise<boolean> {
    return this.#change('-N', table, chain, { done: false, no: true });
  }

  /** Returns whether the chain was there. */
  flushChain(table: Table, chain: string): Promise<boolean> {
    return this.#change('-F', table, chain, IF_THERE);
  }

  /** Returns whether the chain was there. It must be empty, and nothing may jump to it. */
  deleteChain(table: Table, chain: string): Promise<boolean> {
    return this.#change('-X', table, chain, IF_THERE);
  }

  lookForChain(table: Table, chain: string): Promise<ChainLook> {
    return this.#queued(async () => {
      try {
        const command = await this.#rule('-S', table, chain);
        const { outcome, result } = command;
        if (outcome === 'done') return { state: 'present' };
        if (outcome === 'incompatible' && this.#nft.hasChain(table, chain)) return { state: 'present' };
        if (outcome === 'incompatible' || outcome === 'no' || outcome === 'notFound')
          return { state: 'absent', reason: printEnd(result) };
        return { state: 'unknown', error: this.#failure(command) };
      } catch (error) {
        if (isJunctionError(error) && isUnanswered(error)) return { state: 'unknown', error };
        throw error;
      }
    });
  }

  checkRule(table: Table, chain: string, args: readonly string[]): Promise<boolean> {
    return this.#queued(() => this.#check(table, chain, args));
  }

  /** Returns whether the rule was there before; where it stood then, it stays. */
  ensureRule(
    position: 'prepend' | 'append',
    table: Table,
    chain: string,
    args: readonly string[],
  ): Promise<boolean> {
    return this.#queued(async () => {
      if (await this.#check(table, chain, args)) return true;
      const operation = position === 'prepend' ? '-I' : '-A';
      return this.#meaning(await this.#rule(operation, table, chain, args), { done: false });
    });
  }

  /** Returns whether the rule was there. A rule whose chain, target or match does not exist is not. */
  deleteRule(table: Table, chain: string, args: readonly string[]): Promise<boolean> {
    return this.#queued(async () => {
      const found = await this.#find(table, chain, args);
      if (!this.#meaning(found, { done: true, no: false, notFound: false })) return false;
      return this.#meaning(await this.#rule('-D', table, chain, args), IF_THERE);
    });
  }

  save(table: Table, counters = false): Promise<string> {
    return this.#queued(async () => {
      const command = await this.#run(this.#saveArgv(table, counters));
      return this.#meaning(command, { done: command.result.stdout });
    });
  }

  /** In the nft variant asked of the kernel: to list them, iptables reads all rules. */
  async chainNames(table: Table): Promise<ReadonlySet<string>> {
    if (this.variant === 'nft' && this.#options.nft) return this.#options.nft.chainNames(table);
    const text = await this.save(table);
    if (isIncompatible(text)) return this.#nft.chainNames(table);
    return new Set([...text.matchAll(/^:(\S+)/gm)].map(([, name]) => name ?? ''));
  }

  /** `undefined` where there is none. Of a chain that iptables cannot print only jumps are returned, and are opaque. */
  readChain(table: Table, chain: string): Promise<readonly TextRule[] | undefined> {
    return this.#queued(async () => {
      const command = await this.#rule('-S', table, chain);
      const place = { table, name: chain };
      if (command.outcome === 'incompatible' && this.#nft.hasChain(table, chain))
        return this.#nft
          .jumps(table, chain)
          .map((next) => new TextRule(`-j ${next}`, place, 0, undefined, true));
      if (['incompatible', 'no', 'notFound'].includes(command.outcome)) return undefined;
      return appendedRules(this.#meaning(command, { done: command.result.stdout }), place);
    });
  }

  // Reads for questions do not wait in the queue, so that no sync waits for them. They take no lock: legacy's save has none.
  /** What `-S` prints of a chain, with counters. Returns why there is none, where that is so. */
  async listRules(table: string, chain: string, take: TakeText): Promise<string | undefined> {
    const command = await this.#read(this.#ruleArgv('-S', table, chain, ['-v']), take);
    if (['incompatible', 'no', 'notFound'].includes(command.outcome)) return outputOf(command.result);
    this.#meaning(command, { done: true });
    return undefined;
  }

  /** What a save prints of a table, with counters, while it prints it. */
  async readTable(table: string, take: TakeText): Promise<void> {
    this.#meaning(await this.#read(this.#saveArgv(table, true), take), { done: true });
  }

  get chainsPerRestore(): number {
    return this.variant === 'legacy' ? Number.POSITIVE_INFINITY : CHAINS_PER_RESTORE;
  }

  async commit(step: Step): Promise<number> {
    const text = printStep(step);
    await this.restore(step.table, text);
    return text.length;
  }

  /** Without a table, all tables of the input. Either a table's part of the input is done as a whole, or not at all. */
  restore(table: Table | undefined, input: string, options: RestoreOptions = {}): Promise<void> {
    return this.#queued(async () => {
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
        const command = await this.#run(argv, input);
        if (command.outcome !== 'done') throw this.#restoreFailure(command, input);
      } finally {
        locks?.release();
      }
    });
  }

  /** Runs tasks one after another, in the order in which they were given. A failed task does not stop the next. */
  #queued<T>(task: () => Promise<T>): Promise<T> {
    const result = this.#last.then(task);
    this.#last = result.catch(() => undefined);
    return result;
  }

  #change<T>(operation: string, table: Table, chain: string, meanings: Meanings<T>): Promise<T> {
    return this.#queued(async () => this.#meaning(await this.#rule(operation, table, chain), meanings));
  }

  #meaning<T>(command: Command, meanings: Meanings<T>): T {
    const meaning = meanings[command.outcome];
    if (meaning === undefined) throw this.#failure(command);
    return meaning;
  }

  async #check(table: Table, chain: string, args: readonly string[]): Promise<boolean> {
    const command = await this.#find(table, chain, args);
    if (command.outcome === 'incompatible') return this.#hasJump(table, chain, args);
    if (command.outcome === 'notFound' && command.result.code === 1) return false;
    return this.#meaning(command, { done: true, no: false });
  }

  #hasJump(table: Table, chain: string, args: readonly string[]): boolean {
    const next = args[args.indexOf('-j') + 1] ?? '';
    return this.#nft.jumps(table, chain).includes(next);
  }

  get #nft(): NftLook {
    return this.#options.nft ?? nftLook(this.family);
  }

  /** Looks for a rule: `done` when it is there. */
  async #find(table: Table, chain: string, args: readonly string[]): Promise<Command> {
    if (this.features.check) return await this.#rule('-C', table, chain, args);
    const saved = await this.#run(this.#saveArgv(table));
    const wanted = parseWords(args);
    const rules = appendedRules(saved.result.stdout, { table, name: chain });
    const isHere = wanted && rules.some(({ key }) => key === keyOf(wanted));
    return saved.outcome !== 'done' || isHere ? saved : { ...saved, outcome: 'no' };
  }

  #saveArgv(table: string, counters = false): Argv {
    return [this.programs.save, '-t', table, ...(counters ? ['-c'] : [])];
  }

  #rule(operation: string, table: string, chain: string, args: readonly string[] = []): Promise<Command> {
    return this.#run(this.#ruleArgv(operation, table, chain, args));
  }

  #ruleArgv(operation: string, table: string, chain: string, args: readonly string[]): Argv {
    return [this.programs.iptables, ...this.features.wait, operation, chain, '-t', table, ...args];
  }

  async #read(argv: Argv, onStdout: TakeText): Promise<Command> {
    const { lockPath, timeoutMs = TIMEOUT_MS } = this.#options;
    const env = lockPath ? { XTABLES_LOCKFILE: lockPath } : undefined;
    const result = await this.#runner(argv, { onStdout, timeoutMs, env });
    // A runner that cannot pass output on has kept it.
    if (result.code === 0 && result.stdout !== '') await onStdout(result.stdout);
    return { argv, result, outcome: outcomeOf(result, this.variant) };
  }

  async #run(argv: Argv, stdin?: string): Promise<Command> {
    const { lockPath, programs: observer } = this.#options;
    const env = lockPath ? { XTABLES_LOCKFILE: lockPath } : undefined;
    const timeoutMs = this.#timeLimit(stdin?.length ?? 0);
    try {
      const result = await this.#runner(argv, { stdin, observer, env, timeoutMs });
      this.#timeouts = 0;
      return { argv, result, outcome: outcomeOf(result, this.variant) };
    } catch (error) {
      if (isJunctionError(error, 'PROGRAM_TIMED_OUT')) this.#timeouts++;
      throw error;
    }
  }

  /** A machine that is merely slow gets twice the time after each failure. kube-proxy waits for ever, so that one hang ends all syncs. */
  #timeLimit(inputLength: number): number {
    const { timeoutMs = TIMEOUT_MS } = this.#options;
    const once = timeoutMs + (inputLength / (1 << 20)) * TIMEOUT_MS_PER_MEGABYTE;
    return Math.round(Math.min(once * 2 ** this.#timeouts, Math.max(once, LAST_TIMEOUT_MS)));
  }

  #failure({ argv, result, outcome }: Command): JunctionError {
    const message = `${argv.join(' ')} ${printEnd(result)}`;
    const detail = outputOf(result);
    if (outcome === 'lockHeld') {
      const { path } = this.#lockOptions();
      return held(path, printHolder(lockHolder(path)));
    }
    if (outcome === 'lockUnusable') return new JunctionError('XTABLES_LOCK_UNUSABLE', message, { detail });
    if (result.code === null) return killed(argv, result);
    return new JunctionError('IPTABLES_FAILED', message, { detail });
  }

  #restoreFailure(command: Command, input: string): JunctionError {
    const { argv, result, outcome } = command;
    if (outcome === 'lockHeld' || outcome === 'lockUnusable') return this.#failure(command);
    return restoreFailure(argv, result, input);
  }

  #lockOptions(): LockOptions & { readonly path: string } {
    const { lockPath, ownLocks } = this.#options;
    return { ...ownLocks, path: lockPath ?? process.env['XTABLES_LOCKFILE'] ?? XTABLES_LOCK_PATH };
  }
}

/** The rules of one chain, from what `-S` or a save prints. */
function appendedRules(
  text: string,
  chain: { readonly table: string; readonly name: string },
): readonly TextRule[] {
  const prefix = `-A ${chain.name} `;
  const lines = text.split('\n').filter((line) => `${line} `.startsWith(prefix));
  return lines.map((line, index) => new TextRule(line.slice(prefix.length), chain, index));
}

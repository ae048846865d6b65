/**
 * Reads a command line as kube-proxy does: `--name=value`, `--name value`, booleans only with `=`, underscores for
 * hyphens, no positional arguments. Finds all mistakes, not just the first.
 */
import { didYouMean } from '../text/suggest.ts';
import { quoteWord } from './kinds.ts';
import { REMOVED_SETTINGS, removedNote, type RemovedSetting } from './removed.ts';
import { type Flag, isOffered, type Note, type Result, type SettingValue } from './setting.ts';
import { FLAGS } from './table.ts';

export interface ParsedFlags {
  /** The flags that were given, by name. */
  readonly values: ReadonlyMap<string, SettingValue>;
  /** Nothing else matters then, mistakes included. */
  readonly help: boolean;
  readonly version: 'no' | 'yes' | 'raw';
  /** What is no flag, where the command takes such. */
  readonly arguments: readonly string[];
  /** Deprecated flags, and flags without effect. */
  readonly notes: readonly Note[];
  /** Flags that a version took away, and that are ignored. */
  readonly removed: readonly Note[];
}

/**
 * `flags` are all that the command knows: the table's, and perhaps some of its own. `elsewhere`: names of those that do
 * nothing for it. `mostArguments`: how many words it takes besides; `run`, as kube-proxy, none.
 */
export function parseCommandLine(
  argv: readonly string[],
  flags: readonly Flag[] = FLAGS,
  elsewhere: readonly string[] = [],
  mostArguments = 0,
  removed: readonly RemovedSetting[] = REMOVED_SETTINGS,
): Result<ParsedFlags> {
  const parser = new Parser(flags, elsewhere, mostArguments, removed);
  parser.parse(argv);
  const { values, problems, notes } = parser;
  const help = values.get('help') === true;
  if (problems.length > 0 && !help) return { ok: false, problems };
  const asked = values.get('version');
  const version = asked === 'raw' ? 'raw' : asked === 'true' ? 'yes' : 'no';
  return {
    ok: true,
    value: { values, help, version, notes, removed: parser.removed, arguments: parser.arguments },
  };
}

/** What a flag says or, where it was not given, its default. */
export function flagValue<T extends SettingValue>(parsed: ParsedFlags, flag: Flag<T>): T {
  return (parsed.values.get(flag.name) as T | undefined) ?? flag.default;
}

/** Every flag with its value, as text in JSON without the quotes around it. */
export function flagTexts(
  parsed: ParsedFlags,
  flags: readonly Flag[] = FLAGS,
): readonly (readonly [name: string, text: string])[] {
  return flags.map((flag) => {
    const text = JSON.stringify(flag.kind.print(flagValue(parsed, flag))).slice(1, -1);
    // `--master=https://user:password@host` is refused, but not before flags are logged.
    return [flag.name, text.replace(/\/\/[^/@\s]*@/g, '//…@')];
  });
}

/** The lines that are logged at verbosity 1. */
export function printFlags(parsed: ParsedFlags, flags: readonly Flag[] = FLAGS): readonly string[] {
  return flagTexts(parsed, flags)
    .map(([name, text]) => `FLAG: --${name}="${text}"`)
    .sort();
}

/** What other tools, and other commands of this one, call the same. */
const OTHER_NAMES: ReadonlyMap<string, string> = new Map([
  ['mode', 'proxy-mode'],
  ['proxy-mode', 'mode'],
  ['f', 'manifests'],
  ['file', 'manifests'],
  ['filename', 'manifests'],
  ['node', 'hostname-override'],
  ['node-name', 'hostname-override'],
  ['verbose', 'v'],
]);

interface Argument {
  readonly flag: Flag;
  readonly text: string | undefined;
  /** For a value that is missing. */
  readonly needs: string;
}

class Parser {
  readonly values = new Map<string, SettingValue>();
  readonly problems: string[] = [];
  readonly notes: Note[] = [];
  readonly removed: Note[] = [];
  readonly arguments: string[] = [];
  readonly #mostArguments: number;
  readonly #byName: ReadonlyMap<string, Flag>;
  readonly #byLetter: ReadonlyMap<string, Flag>;
  readonly #elsewhere: ReadonlySet<string>;
  readonly #removed: ReadonlyMap<string, RemovedSetting>;
  /** What was given last, of flags that are read at the end. */
  readonly #last = new Map<Flag, string>();

  constructor(
    flags: readonly Flag[],
    elsewhere: readonly string[],
    mostArguments: number,
    removed: readonly RemovedSetting[],
  ) {
    this.#mostArguments = mostArguments;
    this.#removed = new Map(removed.flatMap((each) => (each.flag === undefined ? [] : [[each.flag, each]])));
    this.#elsewhere = new Set(elsewhere);
    this.#byName = new Map(flags.map((flag) => [flag.name, flag]));
    this.#byLetter = new Map(flags.flatMap((flag) => (flag.short === undefined ? [] : [[flag.short, flag]])));
  }

  parse(argv: readonly string[]): void {
    const rest = [...argv];
    let before: Flag | undefined;
    for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
      if (word === '--') {
        for (const argument of rest.splice(0)) this.#takeArgument(argument, undefined);
        break;
      }
      if (!word.startsWith('-') || word === '-') {
        this.#takeArgument(word, before);
        continue;
      }
      if (this.#ignoreRemoved(word, rest)) continue;
      const argument = word.startsWith('--') ? this.#splitLong(word) : this.#splitShort(word);
      before = argument?.flag;
      if (argument) this.#take(argument, rest);
      // What follows an unknown flag is probably its value, and no mistake of its own.
      else if (!word.includes('=') && rest[0]?.startsWith('-') === false) rest.shift();
    }
    for (const [flag, value] of this.#last) this.#read(flag, value);
  }

  /** A command may still have a flag of the same name. */
  #ignoreRemoved(word: string, rest: string[]): boolean {
    const [, written = '', text] = /^--([^=]*)(?:=(.*))?$/s.exec(word) ?? [];
    const name = written.replaceAll('_', '-');
    const removed = this.#byName.has(name) ? undefined : this.#removed.get(name);
    if (!removed) return false;
    if (text === undefined && removed.isBoolean !== true) rest.shift();
    const note = removedNote(`--${name}`, removed);
    if (this.removed.every(({ message }) => message !== note.message)) this.removed.push(note);
    return true;
  }

  #splitLong(word: string): Argument | undefined {
    const [, written = '', text] = /^--([^=]*)(?:=(.*))?$/s.exec(word) ?? [];
    const name = written.replaceAll('_', '-');
    const flag = this.#byName.get(name);
    if (flag) return { flag, text, needs: `--${name}` };
    if (name === '' || name.startsWith('-')) this.problems.push(`bad flag syntax: ${word}`);
    else if (this.#elsewhere.has(name))
      this.problems.push(
        `flag --${name} has no effect on this command: it is one of junction run${this.#otherName(name)}`,
      );
    else this.problems.push(`unknown flag: --${written}${this.#suggestion(name)}`);
    return undefined;
  }

  /** `-v2`, `-v=2`, `-v 2` */
  #splitShort(word: string): Argument | undefined {
    const letter = word.charAt(1);
    const flag = this.#byLetter.get(letter);
    // Go's own flag package, unlike kube-proxy, takes one hyphen: a likely slip for `-config`.
    const longName = word.slice(1).split('=')[0] ?? '';
    if (!flag || (longName.length > 1 && this.#byName.has(longName.replaceAll('_', '-')))) {
      const hint = longName.length > 1 ? this.#suggestion(longName) : this.#otherName(letter);
      this.problems.push(`unknown shorthand flag: '${letter}' in ${word}${hint}`);
      return undefined;
    }
    const text = word.length > 2 ? word.slice(2).replace(/^=/, '') : undefined;
    return { flag, text, needs: `'${letter}' in ${word}` };
  }

  #take({ flag, text, needs }: Argument, rest: string[]): void {
    const value = text ?? flag.kind.alone ?? rest.shift();
    if (value === undefined) this.problems.push(`flag needs an argument: ${needs}`);
    else if (flag.kind.readsLast === true) this.#last.set(flag, value);
    else this.#read(flag, value);
  }

  #read(flag: Flag, value: string): void {
    const { name, short, kind } = flag;
    const reading = kind.fromFlag(value, this.values.get(name));
    if ('problem' in reading) {
      // However it was written.
      const shown = short === undefined ? `--${name}` : `-${short}, --${name}`;
      const { stage = `invalid argument ${quoteWord(value)} for "${shown}" flag`, problem } = reading;
      this.problems.push(`${stage}: ${problem}`);
      return;
    }
    if (!this.values.has(name)) this.#note(flag);
    if ('value' in reading) this.values.set(name, reading.value);
  }

  #note({ name, deprecated, ignored }: Flag): void {
    const warn = (text: string): void => {
      this.notes.push({ severity: 'warning', message: `Flag --${name} ${text}` });
    };
    if (deprecated !== undefined) warn(`has been deprecated, ${deprecated}`);
    if (ignored !== undefined) warn(`has no effect, because ${ignored}`);
  }

  #takeArgument(word: string, before: Flag | undefined): void {
    const isFree = before?.kind.alone === undefined || !('value' in before.kind.fromFlag(word, undefined));
    if (this.arguments.length < this.#mostArguments && isFree) this.arguments.push(word);
    else this.#refuse(word, before);
  }

  #refuse(word: string, before: Flag | undefined): void {
    const isBool = before?.kind.alone !== undefined && 'value' in before.kind.fromFlag(word, undefined);
    const hint = isBool ? ` (write --${before.name}=${word})` : this.#flagFor(word);
    const limit = this.#mostArguments === 0 ? ': there are flags only' : '';
    this.problems.push(`unexpected argument ${quoteWord(word)}${limit}${hint}`);
  }

  /** The flag that a word is probably for: one that takes it, or the input. */
  #flagFor(word: string): string {
    const flags = [...this.#byName.values()].filter((flag) => isOffered(flag) && !this.values.has(flag.name));
    const taking = flags.find(({ choices, kind }) => (choices ?? kind.choices ?? []).includes(word));
    // Not for `run`, which stands where kube-proxy stood: a word is no file there.
    const isForPeople = this.#elsewhere.size > 0 && !word.startsWith('-');
    const meant = taking ?? flags.find(({ name }) => isForPeople && name === 'manifests');
    return meant && word !== '' ? ` (did you mean --${meant.name} ${word}?)` : '';
  }

  #suggestion(name: string): string {
    const known = Array.from(this.#byName.keys(), (each) => `--${each}`);
    return this.#otherName(name) || didYouMean(`--${name}`, known);
  }

  #otherName(name: string): string {
    const meant = OTHER_NAMES.get(name);
    return meant !== undefined && this.#byName.has(meant) ? ` (did you mean --${meant}?)` : '';
  }
}

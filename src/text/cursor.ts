/**
 * A place inside a raw object, and the notes taken while walking it.
 *
 * Readers that refuse a value note a problem and return a stand-in, so that one pass finds everything that is wrong.
 * `attempt` throws away the part, and `project` the whole value, when there is any problem, so no stand-in is ever seen.
 *
 * The API server lets through more than a reader expects, and a refused object keeps its last good version: what it says
 * now would never be served. So a problem inside a part (an endpoint, a port, an address) may only cost that part, as
 * with kube-proxy. Refused is what cannot be decoded at all, or has no name.
 */
import { quote } from './printable.ts';
import { parseRfc3339 } from './time.ts';

/** What is wrong with an object, said so that they can correct it. */
export interface Problem {
  /** Path inside the object, e.g. `['spec', 'ports', 0, 'port']`. */
  readonly path: readonly (string | number)[];
  /** What is wrong: `port 70000 is out of range`. */
  readonly message: string;
  /** What would have been right: `a number from 1 to 65535`. */
  readonly expected: string;
}

/** The outcome of reading one raw object. */
export type Projection<T> =
  /** `warnings`: parts that were left out. */
  | { readonly kind: 'object'; readonly value: T; readonly warnings: readonly Problem[] }
  /** A sound object that is not for us: headless, another proxy's, an unknown kind. */
  | { readonly kind: 'ignored'; readonly reason: string }
  | { readonly kind: 'invalid'; readonly problems: readonly Problem[] };

export function mapProjection<T, U>(projection: Projection<T>, map: (value: T) => U): Projection<U> {
  return projection.kind === 'object' ? { ...projection, value: map(projection.value) } : projection;
}

/** `spec.ports[0].port` */
export function printPath(path: readonly (string | number)[]): string {
  return path.reduce<string>(
    (text, part) => (typeof part === 'number' ? `${text}[${part}]` : text === '' ? part : `${text}.${part}`),
    '',
  );
}

/** The message with the field's whole path: `spec.ports[0].port 70000 is out of range`. */
export function printMessage({ path, message }: Problem): string {
  const label = labelOf(path);
  return path.length > 0 && message.startsWith(label)
    ? `${printPath(path)}${message.slice(label.length)}`
    : message;
}

type Key = string | number;

/** One bad template can make a hundred thousand bad entries; nobody reads more than this of them. */
const MOST_NOTES = 50;

/** More than a Service may have of anything (see plan/capacity.ts), and ten times what a slice may. */
export const MOST_ITEMS = 10_000;

class Notes {
  readonly taken: Problem[] = [];
  #more = 0;

  add(problem: Problem): void {
    if (this.taken.length < MOST_NOTES) this.taken.push(problem);
    else this.#more += 1;
  }

  all(): readonly Problem[] {
    if (this.#more === 0) return this.taken;
    const message = `the object has ${this.#more} more problems like these`;
    return [...this.taken, { path: [], message, expected: 'to see them, correct these first' }];
  }
}

interface Notebook {
  readonly problems: Notes;
  readonly warnings: Notes;
}

export class Cursor {
  readonly value: unknown;
  readonly #notebook: Notebook;
  readonly #parent: Cursor | undefined;
  readonly #key: Key;

  constructor(value: unknown, notebook: Notebook, parent?: Cursor, key: Key = '') {
    this.value = value;
    this.#notebook = notebook;
    this.#parent = parent;
    this.#key = key;
  }

  /** Absent and null are the same to Kubernetes. */
  get missing(): boolean {
    return this.value === undefined || this.value === null;
  }

  field(key: string): Cursor {
    return new Cursor(ownField(this.value, key), this.#notebook, this, key);
  }

  /** A field that holds a map, if it is there at all. */
  map(key: string): Cursor {
    const child = this.field(key);
    if (!child.missing && !isMap(child.value)) child.refuse(`is ${quote(child.value)}`, 'a map');
    return child;
  }

  /**
   * The items of a field that holds a list, if it is there at all. No more than the first ones are read: a Service's ports
   * take 10 microseconds each, 40,000 of them fit into one, and meanwhile nothing else is done.
   */
  list(key: string, most: number = MOST_ITEMS): readonly Cursor[] {
    const child = this.field(key);
    if (child.missing) return [];
    if (!Array.isArray(child.value)) {
      child.refuse(`is ${quote(child.value)}`, 'a list');
      return [];
    }
    const items: readonly unknown[] = child.value.length > most ? child.value.slice(0, most) : child.value;
    return Array.from(items, (item, index) => new Cursor(item, this.#notebook, child, index));
  }

  /** `list` of maps; other items are left out. */
  maps(key: string, most: number = MOST_ITEMS): readonly Cursor[] {
    return this.list(key, most).filter((item) => {
      if (!isMap(item.value)) item.warn(`is ${quote(item.value)}; it is left out`, 'a map');
      return isMap(item.value);
    });
  }

  /**
   * Reads a part that the rest of the object can do without. If the part has problems they become warnings, with
   * `consequence` saying what happens instead, and nothing is returned.
   */
  attempt<T>(consequence: string, read: (part: Cursor) => T): T | undefined {
    const problems = new Notes();
    const { warnings } = this.#notebook;
    const value = read(new Cursor(this.value, { problems, warnings }, this.#parent, this.#key));
    if (problems.taken.length === 0) return value;
    for (const problem of problems.all()) {
      warnings.add({ ...problem, message: `${problem.message}; ${consequence}` });
    }
    return undefined;
  }

  /** How many items of a list are more than these. */
  countBeyond(most: number = MOST_ITEMS): number {
    return Array.isArray(this.value) ? Math.max(0, this.value.length - most) : 0;
  }

  /** What messages call this place. */
  get label(): string {
    return labelOf(this.#path());
  }

  /** The object cannot be used. */
  refuse(what: string, expected: string): void {
    this.#notebook.problems.add(this.#note(what, expected));
  }

  /** This part is left out, the rest of the object is used. */
  warn(what: string, expected: string): void {
    this.#notebook.warnings.add(this.#note(what, expected));
  }

  #note(what: string, expected: string): Problem {
    const path = this.#path();
    return { path, message: `${labelOf(path)} ${what}`, expected };
  }

  #path(): readonly Key[] {
    return this.#parent ? [...this.#parent.#path(), this.#key] : [];
  }
}

/** What a message calls the field: `port`, `externalIPs[1]`. */
function labelOf(path: readonly Key[]): string {
  const start = path.findLastIndex((part) => typeof part === 'string');
  if (start < 0) return 'the object';
  return path
    .slice(start)
    .map((part) => (typeof part === 'number' ? `[${part}]` : part))
    .join('');
}

export function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Own fields only: `constructor` is not a label that somebody set. */
export function ownField(value: unknown, key: string): unknown {
  return isMap(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

/** '' for what is no text. */
export function ownText(value: unknown, key: string): string {
  const text = ownField(value, key);
  return typeof text === 'string' ? text : '';
}

/** A sound object that is not for us. */
export class Ignored {
  readonly reason: string;
  constructor(reason: string) {
    this.reason = reason;
  }
}

export function project<T>(raw: unknown, read: (root: Cursor) => T | Ignored): Projection<T> {
  const notebook: Notebook = { problems: new Notes(), warnings: new Notes() };
  const root = new Cursor(raw, notebook);
  if (!isMap(raw)) root.refuse(`is ${quote(raw)}`, 'a map with apiVersion, kind and metadata');
  const value = read(root);
  const problems = notebook.problems.all();
  if (problems.length > 0) return { kind: 'invalid', problems };
  if (value instanceof Ignored) return { kind: 'ignored', reason: value.reason };
  return { kind: 'object', value, warnings: notebook.warnings.all() };
}

// Readers of single values. Each notes what is wrong and then returns a stand-in.

/** Missing reads as ''. */
export function readText(at: Cursor): string {
  if (at.missing) return '';
  if (typeof at.value === 'string') return at.value;
  const hint = typeof at.value === 'number' || typeof at.value === 'boolean' ? ', in quotes' : '';
  at.refuse(`${quote(at.value)} is not text`, `text${hint}`);
  return '';
}

/** Missing reads as `fallback`. */
export function readInteger(at: Cursor, from: number, to: number, fallback: number): number {
  if (at.missing) return fallback;
  const expected = `a whole number from ${from} to ${to}`;
  if (typeof at.value !== 'number' || !Number.isInteger(at.value)) {
    at.refuse(`${quote(at.value)} is not a whole number`, expected);
  } else if (at.value < from || at.value > to) {
    at.refuse(`${at.value} is out of range`, expected);
  } else {
    return at.value;
  }
  return fallback;
}

export function readPort(at: Cursor): number {
  if (at.missing) at.refuse('is missing', 'a whole number from 1 to 65535');
  return readInteger(at, 1, 65535, 1);
}

/** 0 or missing: none. */
export function readOptionalPort(at: Cursor): number {
  return at.value === 0 ? 0 : readInteger(at, 1, 65535, 0);
}

export function readFlag(at: Cursor, fallback: boolean): boolean {
  if (at.missing) return fallback;
  if (typeof at.value === 'boolean') return at.value;
  at.refuse(`${quote(at.value)} is neither true nor false`, 'true or false');
  return fallback;
}

/** Missing or empty reads as `fallback`: an empty string is Go's way to leave a field out. */
export function readChoice<T extends string>(at: Cursor, choices: readonly T[], fallback: NoInfer<T>): T {
  if (at.missing || at.value === '') return fallback;
  const found = choices.find((choice) => choice === at.value);
  if (found === undefined) at.refuse(`${quote(at.value)} is not known`, orList(choices));
  return found ?? fallback;
}

/** `readChoice`, for a field that the object can do without: what is not known counts as `fallback`, as with kube-proxy. */
export function readChoiceOr<T extends string>(at: Cursor, choices: readonly T[], fallback: NoInfer<T>): T {
  return at.attempt(`it counts as ${fallback}`, (part) => readChoice(part, choices, fallback)) ?? fallback;
}

export function orList(choices: readonly string[]): string {
  return choices.length < 2
    ? choices.join('')
    : `${choices.slice(0, -1).join(', ')} or ${choices.at(-1) ?? ''}`;
}

/** Milliseconds since the epoch; nothing when it is missing or, with a warning, when it cannot be read. */
export function readTime(at: Cursor): number | undefined {
  if (at.missing || at.value === '') return undefined;
  const milliseconds = typeof at.value === 'string' ? parseRfc3339(at.value) : undefined;
  if (milliseconds !== undefined) return milliseconds;
  at.warn(`${quote(at.value)} is not a time`, 'a time such as 2026-05-01T12:00:00Z');
  return undefined;
}

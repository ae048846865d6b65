/**
 * Decodes a configuration file. Strict first: unknown and repeated fields. Those alone do not fail it, because old and
 * new versions of Kubernetes share files; anything else does.
 */
import { isMap } from '../model/project/cursor.ts';
import { nearest } from '../text/suggest.ts';
import { type ParsedText, parseText, type Position } from '../text/yamlText.ts';
import { describeRaw } from './scalarKinds.ts';
import type { Field, Note, Result, SettingValue } from './setting.ts';
import { API_VERSION, CONFIG_FIELDS, type FieldValues, KIND } from './table.ts';

export interface DecodedFile {
  /** Only what the file sets. */
  readonly values: FieldValues;
  readonly notes: readonly Note[];
}

/** `file` is for messages. */
export function decodeFile(text: string, file: string): Result<DecodedFile> {
  const parsed = parseText(text);
  const at = ({ line, column }: Position): string => `${file}:${line}:${column}`;
  if ('faults' in parsed) {
    return failed(parsed.faults.map(({ position, message }) => `${at(position)}: ${message}`));
  }
  const decoder = new Decoder(parsed, at);
  decoder.decode();
  if (decoder.problems.length > 0) return failed(decoder.problems);
  return { ok: true, value: { values: decoder.values, notes: decoder.notes() } };
}

function failed(problems: readonly string[]): Result<never> {
  return { ok: false, problems: problems.map((problem) => `failed to decode: ${problem}`) };
}

/** The fields below a path, by their next key; a field itself where the path ends. */
type Tree = Map<string, Tree | Field>;

const TREE = makeTree();
const HEADER = new Set(['apiVersion', 'kind', 'metadata']);

function makeTree(): Tree {
  const root: Tree = new Map();
  for (const field of CONFIG_FIELDS) {
    const keys = field.path.split('.');
    const last = keys.pop() ?? '';
    let branch = root;
    for (const key of keys) {
      const next = branch.get(key);
      const child: Tree = next instanceof Map ? next : new Map();
      branch.set(key, child);
      branch = child;
    }
    branch.set(last, field);
  }
  return root;
}

/** Each costs a search for its place and for what was meant; nobody reads more. */
const MOST_ODDITIES = 50;

interface Oddity {
  /** In the words of Kubernetes. */
  readonly brief: string;
  readonly full: string;
}

class Decoder {
  readonly values = new Map<string, SettingValue>();
  readonly problems: string[] = [];
  readonly #oddities: Oddity[] = [];
  #moreOddities = 0;
  readonly #parsed: ParsedText;
  readonly #at: (position: Position) => string;

  constructor(parsed: ParsedText, at: (position: Position) => string) {
    this.#parsed = parsed;
    this.#at = at;
  }

  decode(): void {
    const { raw, duplicates } = this.#parsed;
    if (!isMap(raw)) {
      this.#complain([], `the file must hold a map, and holds ${describeRaw(raw)}`);
      return;
    }
    if (!this.#checkHeader(raw)) return;
    this.#decodeMap(raw, TREE, []);
    for (const { path, position } of duplicates) {
      const name = path.join('.');
      this.#note(() => ({
        brief: `field "${name}" already set`,
        full: `${this.#at(position)}: ${name} is here a second time; the last one counts`,
      }));
    }
  }

  notes(): readonly Note[] {
    const notes: Note[] = [];
    if (this.#oddities.length > 0) {
      const err = `strict decoding error: ${this.#oddities.map(({ brief }) => brief).join(', ')}`;
      notes.push({
        severity: 'info',
        message: 'Using lenient decoding as strict decoding failed',
        fields: { err },
      });
    }
    for (const { full } of this.#oddities) notes.push({ severity: 'warning', message: full });
    if (this.#moreOddities > 0) {
      const message = `${this.#at({ line: 1, column: 1 })}: ${this.#moreOddities} more fields are unknown or repeated`;
      notes.push({ severity: 'warning', message });
    }
    if (this.#parsed.hasMoreDocuments) {
      const message = `${this.#at({ line: 1, column: 1 })}: the file holds several documents; only the first is read`;
      notes.push({ severity: 'warning', message });
    }
    return notes;
  }

  #checkHeader({ apiVersion, kind }: Readonly<Record<string, unknown>>): boolean {
    if (apiVersion === API_VERSION && kind === KIND) return true;
    const wanted = `a configuration file begins with "apiVersion: ${API_VERSION}" and "kind: ${KIND}"`;
    const missing = kind === undefined || kind === '' ? 'kind' : 'apiVersion';
    if (kind === undefined || kind === '' || apiVersion === undefined || apiVersion === '') {
      this.#complain([missing], `no ${missing}: ${wanted}`);
      return false;
    }
    const where = kind === KIND ? 'apiVersion' : 'kind';
    const [found, version] = [JSON.stringify(kind), JSON.stringify(apiVersion)];
    this.#complain([where], `no kind ${found} is registered for version ${version}: ${wanted}`);
    return false;
  }

  #decodeMap(raw: Readonly<Record<string, unknown>>, tree: Tree, path: readonly string[]): void {
    for (const [key, value] of Object.entries(raw)) {
      const known = tree.get(key);
      const here = [...path, key];
      if (path.length === 0 && HEADER.has(key)) continue;
      if (known === undefined) this.#unknown(here, tree);
      else if (value === null)
        continue; // as good as absent
      else if (!(known instanceof Map)) this.#decodeField(value, known);
      else if (isMap(value)) this.#decodeMap(value, known, here);
      else this.#complain(here, `${here.join('.')} must be a map, and is ${describeRaw(value)}`);
    }
  }

  #decodeField(raw: unknown, { path, kind }: Field): void {
    const reading = kind.fromFile(raw);
    if ('value' in reading) this.values.set(path, reading.value);
    else if ('problem' in reading) this.#complain(path.split('.'), `${path} ${reading.problem}`);
  }

  #unknown(path: readonly string[], siblings: Tree): void {
    this.#note(() => {
      const name = path.join('.');
      const meant = suggestField(path, siblings);
      return {
        brief: `unknown field "${name}"`,
        full: `${this.#where(path)}: unknown field ${name} is ignored${meant === undefined ? '' : ` (did you mean ${meant}?)`}`,
      };
    });
  }

  #note(describeIt: () => Oddity): void {
    if (this.#oddities.length < MOST_ODDITIES) this.#oddities.push(describeIt());
    else this.#moreOddities += 1;
  }

  #complain(path: readonly string[], message: string): void {
    this.problems.push(`${this.#where(path)}: ${message}`);
  }

  #where(path: readonly string[]): string {
    return this.#at(this.#parsed.positionOf(path));
  }
}

/** A misspelt name in the right place, or the right name in the wrong place. */
function suggestField(path: readonly string[], siblings: Tree): string | undefined {
  const key = path.at(-1) ?? '';
  const elsewhere = CONFIG_FIELDS.find((field) => field.path === key || field.path.endsWith(`.${key}`));
  if (elsewhere) return elsewhere.path;
  const sibling = nearest(key, siblings.keys());
  return sibling === undefined ? undefined : [...path.slice(0, -1), sibling].join('.');
}

/**
 * Decodes a configuration file. Strict first: unknown and repeated fields. Those alone do not fail it, because old and
 * new versions of Kubernetes share files; anything else does.
 */
import { nearest } from '../text/suggest.ts';
import { LineIndex } from '../text/lines.ts';
import { readYaml, type YamlValue } from '../text/yaml.ts';
import { describeRaw } from './kinds.ts';
import { REMOVED_SETTINGS, removedNote, type RemovedSetting } from './removed.ts';
import type { Field, Note, Result, SettingValue } from './setting.ts';
import { API_VERSION, CONFIG_FIELDS, type FieldValues, KIND, setAt } from './table.ts';
import { isMap, ownField } from '../text/cursor.ts';

/** Only what the file sets. Its name is for messages. */
export function decodeFile(
  contents: string,
  file: string,
  removed: readonly RemovedSetting[] = REMOVED_SETTINGS,
): Result<{ readonly values: FieldValues; readonly notes: readonly Note[] }> {
  const text = contents.replace(/^\uFEFF/, '');
  const lines = new LineIndex(text);
  const at = (offset: number): string => {
    const { line, column } = lines.position(offset);
    return `${file}:${line}:${column}`;
  };
  const [value, ...others] = readYaml(text);
  if (!value) return failed([`${at(0)}: the file is empty`]);
  if ('message' in value) {
    const reason = value.code === undefined ? 'the file cannot be read: ' : '';
    return failed([`${at(value.offset)}: ${reason}${firstLine(value.message)}`]);
  }
  const decoder = new Decoder(value, at, removed);
  decoder.decode();
  if (decoder.problems.length > 0) return failed(decoder.problems);
  return { ok: true, value: { values: decoder.values, notes: decoder.notes(others.length > 0) } };
}

function firstLine(message: string): string {
  return message.split('\n')[0] ?? message;
}

function failed(problems: readonly string[]): Result<never> {
  return { ok: false, problems: problems.map((problem) => `failed to decode: ${problem}`) };
}

/** The fields as the file nests them. */
const TREE: Record<string, unknown> = {};
for (const field of CONFIG_FIELDS) setAt(TREE, field.path, field);
const HEADER = new Set(['apiVersion', 'kind', 'metadata']);

function isField(known: unknown): known is Field {
  return CONFIG_FIELDS.some((field) => field === known);
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
  readonly #removed: readonly RemovedSetting[];
  readonly #ignored: Note[] = [];
  #moreOddities = 0;
  readonly #file: YamlValue;
  readonly #at: (offset: number) => string;

  constructor(file: YamlValue, at: (offset: number) => string, removed: readonly RemovedSetting[]) {
    this.#removed = removed;
    this.#file = file;
    this.#at = at;
  }

  decode(): void {
    const { raw, repeatedKeys } = this.#file;
    if (!isMap(raw)) {
      this.#complain([], `the file must hold a map, and holds ${describeRaw(raw)}`);
      return;
    }
    if (!this.#checkHeader(raw)) return;
    this.#decodeMap(raw, TREE, []);
    const inOrder = [...repeatedKeys].sort((a, b) => a.offset - b.offset);
    for (const { path } of inOrder) {
      const name = path.join('.');
      this.#note(() => ({
        brief: `field "${name}" already set`,
        full: `${this.#where(path)}: ${name} is here a second time; the last one counts`,
      }));
    }
  }

  notes(hasMoreDocuments: boolean): readonly Note[] {
    const notes: Note[] = [];
    const warn = (message: string): void => void notes.push({ severity: 'warning', message });
    if (this.#oddities.length > 0) {
      const message = 'Using lenient decoding as strict decoding failed';
      const err = `strict decoding error: ${this.#oddities.map(({ brief }) => brief).join(', ')}`;
      notes.push({ severity: 'info', message, fields: { err } });
    }
    for (const { full } of this.#oddities) warn(full);
    notes.push(...this.#ignored);
    if (this.#moreOddities > 0)
      warn(`${this.#where([])}: ${this.#moreOddities} more fields are unknown or repeated`);
    if (hasMoreDocuments)
      warn(`${this.#where([])}: the file holds several documents; only the first is read`);
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

  #decodeMap(raw: Readonly<Record<string, unknown>>, tree: unknown, path: readonly string[]): void {
    for (const [key, value] of Object.entries(raw)) {
      const known = ownField(tree, key);
      const here = [...path, key];
      if (path.length === 0 && HEADER.has(key)) continue;
      if (known === undefined) {
        if (!this.#ignoreRemoved(here.join('.'))) this.#unknown(here, tree);
      } else if (value === null)
        continue; // as good as absent
      else if (isField(known)) this.#decodeField(value, known);
      else if (isMap(value)) this.#decodeMap(value, known, here);
      else this.#complain(here, `${here.join('.')} must be a map, and is ${describeRaw(value)}`);
    }
  }

  #decodeField(raw: unknown, { path, kind }: Field): void {
    const reading = kind.fromFile(raw);
    if ('value' in reading) this.values.set(path, reading.value);
    else if ('problem' in reading) this.#complain(path.split('.'), `${path} ${reading.problem}`);
  }

  #ignoreRemoved(path: string): boolean {
    const removed = this.#removed.find(({ field }) => field === path);
    if (removed) this.#ignored.push(removedNote(path, removed));
    return removed !== undefined;
  }

  #unknown(path: readonly string[], siblings: unknown): void {
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
    return this.#at(this.#file.offsetOfKey(path));
  }
}

/** A misspelt name in the right place, or the right name in the wrong place. */
function suggestField(path: readonly string[], siblings: unknown): string | undefined {
  const key = path.at(-1) ?? '';
  const elsewhere = CONFIG_FIELDS.find((field) => field.path === key || field.path.endsWith(`.${key}`));
  if (elsewhere) return elsewhere.path;
  const sibling = nearest(key, Object.keys(siblings ?? {}));
  return sibling === undefined ? undefined : [...path.slice(0, -1), sibling].join('.');
}

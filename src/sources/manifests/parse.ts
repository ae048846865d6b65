/** Text → plain values, with a way to find where each part stands. Never throws. */
import { type Document, parseAllDocuments, type YAMLError } from 'yaml';
import { escape } from '../../model/project/index.ts';
import { findRepeatedKey, JsonPositions } from './json.ts';
import { offsetInYaml, offsetOfUnknownAlias } from './yamlPosition.ts';

export interface ParsedDocument {
  readonly raw: unknown;
  offsetOf(path: readonly (string | number)[]): number;
}

export interface Fault {
  readonly severity: 'error' | 'warning';
  readonly offset: number;
  readonly message: string;
}

export interface Parsed {
  readonly documents: readonly ParsedDocument[];
  readonly faults: readonly Fault[];
}

/** One missing bracket can be followed by an error on every line below it. */
const MOST_FAULTS = 5;
const TOO_DEEP = 'it is nested too deeply';
const MOST_ALIASES = 100;
/** The YAML parser takes a hundred bytes of memory, and more, for each of these. */
const MOST_YAML_CHARACTERS = 16 * 1024 * 1024;

export function parseText(text: string): Parsed {
  return parseJson(text) ?? parseYaml(text);
}

function parseJson(text: string): Parsed | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined;
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch {
    return undefined; // perhaps YAML in flow style, and the YAML parser says where it is wrong
  }
  const repeated = findRepeatedKey(text);
  if (repeated !== undefined) return { documents: [], faults: [fault(repeated, 'this key is here twice')] };
  const positions = new JsonPositions(text);
  return { documents: [{ raw, offsetOf: (path) => positions.offsetOf(path) }], faults: [] };
}

function parseYaml(text: string): Parsed {
  if (text.length > MOST_YAML_CHARACTERS) {
    return {
      documents: [],
      faults: [fault(0, 'this YAML document is too long: write it as JSON, or as several')],
    };
  }
  let parsed: readonly Document[];
  try {
    // The core schema whatever a %YAML line says: version 1.1 would turn times into Date objects.
    parsed = parseAllDocuments(text, {
      prettyErrors: false,
      merge: true,
      schema: 'core',
      logLevel: 'silent',
    });
  } catch (error) {
    return { documents: [], faults: [fault(0, `this document cannot be parsed: ${reasonOf(error)}`)] };
  }
  const documents: ParsedDocument[] = [];
  const faults: Fault[] = [];
  for (const document of parsed) {
    const { errors, warnings } = document;
    faults.push(...syntaxFaults(errors));
    for (const { pos, message } of warnings.slice(0, MOST_FAULTS)) {
      faults.push({ severity: 'warning', offset: pos[0], message: tidy(message) });
    }
    if (errors.length > 0) continue;
    const offsetOf: ParsedDocument['offsetOf'] = (path) => offsetInYaml(document, path);
    try {
      documents.push({ raw: document.toJS({ maxAliasCount: MOST_ALIASES }), offsetOf });
    } catch (error) {
      const offset = offsetOfUnknownAlias(document) ?? offsetOf([]);
      faults.push(fault(offset, `this document cannot be read: ${reasonOf(error)}`));
    }
  }
  return { documents, faults };
}

function syntaxFaults(errors: readonly YAMLError[]): readonly Fault[] {
  // The parser runs out of stack, notes that, and goes on to complain about all that it could not see.
  const overflow = errors.find(({ message }) => message.includes('call stack'));
  if (overflow) return [fault(overflow.pos[0], `this document cannot be parsed: ${TOO_DEEP}`)];
  return errors.slice(0, MOST_FAULTS).map(({ pos, message }) => fault(pos[0], tidy(message)));
}

function fault(offset: number, message: string): Fault {
  return { severity: 'error', offset, message };
}

function reasonOf(error: unknown): string {
  if (error instanceof RangeError) return TOO_DEEP;
  return error instanceof Error ? tidy(error.message) : 'unknown reason';
}

/** The parser's messages quote the text. */
function tidy(message: string): string {
  const line = message.length > 200 ? `${message.slice(0, 200)}…` : message;
  return escape(line).replaceAll('\\"', '"');
}

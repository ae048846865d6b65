/** Text → plain values, with a way to find where each part stands. Never throws. */
import type { Document, YAMLError } from 'yaml';
import { escape } from '../../model/project/index.ts';
import { MOST_USES, parseYaml, type Survey, survey, type YamlFault } from '../../yaml.ts';
import { findRepeatedKey, JsonPositions } from './json.ts';
import { offsetInYaml } from './yamlPosition.ts';

export interface ParsedDocument {
  readonly raw: unknown;
  offsetOf(path: readonly (string | number)[], part?: 'key' | 'value'): number;
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

export function parseText(text: string): Parsed {
  return parseJson(text) ?? parseYamlText(text);
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
  return { documents: [{ raw, offsetOf: (path, part) => positions.offsetOf(path, part) }], faults: [] };
}

function parseYamlText(text: string): Parsed {
  const yaml = parseYaml(text);
  if ('message' in yaml) return { documents: [], faults: [unreadable(yaml)] };
  const documents: ParsedDocument[] = [];
  const faults: Fault[] = [];
  for (const document of yaml.documents) {
    const { errors, warnings } = document;
    faults.push(...syntaxFaults(errors));
    for (const { pos, message } of warnings.slice(0, MOST_FAULTS)) {
      faults.push({ severity: 'warning', offset: pos[0], message: tidy(message) });
    }
    if (errors.length > 0) continue;
    const surveyed = survey(document);
    if ('message' in surveyed) faults.push(unreadable(surveyed));
    else if (surveyed.repeatedKeys.length > 0) faults.push(...repeatedKeys(surveyed));
    else readDocument(document, surveyed, documents, faults);
  }
  return { documents, faults };
}

function readDocument(
  document: Document,
  { targets }: Survey,
  documents: ParsedDocument[],
  faults: Fault[],
): void {
  const offsetOf: ParsedDocument['offsetOf'] = (path, part) => offsetInYaml(document, targets, path, part);
  try {
    documents.push({ raw: document.toJS({ maxAliasCount: MOST_USES }), offsetOf });
  } catch (error) {
    const message = error instanceof Error ? error.message : 'unknown reason';
    faults.push(unreadable({ offset: offsetOf([]), message }));
  }
}

function repeatedKeys(surveyed: Survey): readonly Fault[] {
  return surveyed.repeatedKeys
    .slice(0, MOST_FAULTS)
    .map((offset) => fault(offset, 'Map keys must be unique'));
}

function unreadable({ offset, message }: YamlFault): Fault {
  return fault(offset, `this document cannot be read: ${tidy(message)}`);
}

function syntaxFaults(errors: readonly YAMLError[]): readonly Fault[] {
  return errors.slice(0, MOST_FAULTS).map(({ pos, message }) => fault(pos[0], tidy(message)));
}

function fault(offset: number, message: string): Fault {
  return { severity: 'error', offset, message };
}

/** The parser's messages quote the text. */
function tidy(message: string): string {
  const line = message.length > 200 ? `${message.slice(0, 200)}…` : message;
  return escape(line).replaceAll('\\"', '"');
}

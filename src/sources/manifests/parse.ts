/** Text → plain values, with a way to find where each part stands. Never throws. */
import type { ErrorCode } from 'yaml';
import { findRepeatedKey, JsonPositions, readJsonTexts } from '../../text/json.ts';
import {
  parseYaml,
  readDocument,
  type RepeatedKey,
  type YamlFault,
  type YamlValue,
} from '../../text/yaml.ts';
import { escape, quote } from '../../text/printable.ts';
import type { SourceProblem } from '../source.ts';

export type ParsedDocument = Pick<YamlValue, 'raw' | 'offsetOf'>;

interface ManifestFault extends Pick<SourceProblem, 'severity' | 'message' | 'expected'> {
  readonly offset: number;
}

interface ParsedManifest {
  readonly documents: readonly ParsedDocument[];
  readonly faults: readonly ManifestFault[];
}

/** One missing bracket can be followed by an error on every line below it. */
const MOST_FAULTS = 5;

export function parseManifest(text: string): ParsedManifest {
  return parseJson(text) ?? parseYamlText(text);
}

function parseJson(text: string): ParsedManifest | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined;
  const texts = readJsonTexts(text);
  if (texts === undefined) return undefined; // perhaps YAML in flow style, and the YAML parser says where it is wrong
  const repeated = findRepeatedKey(text);
  if (repeated !== undefined) return { documents: [], faults: [repeatedKey(repeated)] };
  const documents = texts.map(({ raw, text: piece, offset }): ParsedDocument => {
    const positions = new JsonPositions(piece);
    return { raw, offsetOf: (path, part) => offset + positions.offsetOf(path, part) };
  });
  return { documents, faults: [] };
}

function parseYamlText(text: string): ParsedManifest {
  const yaml = parseYaml(text);
  if ('message' in yaml) return { documents: [], faults: [unreadable(yaml)] };
  const documents: ParsedDocument[] = [];
  const faults: ManifestFault[] = [];
  for (const document of yaml.documents) {
    const { errors, warnings } = document;
    for (const { pos, code, message } of errors.slice(0, MOST_FAULTS))
      faults.push(fault(pos[0], tidy(message), EXPECTED[code]));
    for (const { pos, message } of warnings.slice(0, MOST_FAULTS)) {
      faults.push({ severity: 'warning', offset: pos[0], message: tidy(message) });
    }
    if (errors.length > 0) continue;
    const value = readDocument(document);
    if ('message' in value) faults.push(unreadable(value));
    else if (value.repeatedKeys.length === 0) documents.push(value);
    else {
      const keys = value.repeatedKeys.slice(0, MOST_FAULTS);
      faults.push(
        ...keys.map((key) => repeatedKey(key, key.name === 'apiVersion' ? TWO_OBJECTS : undefined)),
      );
    }
  }
  const isTemplate = faults.some(({ severity }) => severity === 'error') && text.includes('{{');
  return { documents, faults: isTemplate ? faults.map(asTemplate) : faults };
}

/** Charts are tried as manifests, and the parser has its own ideas about their braces. */
function asTemplate(fault: ManifestFault): ManifestFault {
  return { ...fault, expected: 'a manifest; this looks like a template, which helm template renders' };
}

/** `cat *.yaml` of files that do not begin with `---`. */
const TWO_OBJECTS = 'each key once; is the line --- between two objects missing?';

function repeatedKey(
  { offset, name }: Pick<RepeatedKey, 'offset' | 'name'>,
  expected = 'each key once',
): ManifestFault {
  return fault(offset, `key ${quote(name)} is already set in this map`, expected);
}

function unreadable({ offset, message }: YamlFault): ManifestFault {
  return fault(offset, `this document cannot be read: ${tidy(message)}`);
}

const INDENTATION = 'the keys of a map below each other; look at the indentation here and on the next line';

/** For messages of the parser that do not say what would be right. */
const EXPECTED: Readonly<Partial<Record<ErrorCode, string>>> = {
  BLOCK_AS_IMPLICIT_KEY: INDENTATION,
  MULTILINE_IMPLICIT_KEY: INDENTATION,
  TAB_AS_INDENT: 'spaces',
};

function fault(offset: number, message: string, expected?: string): ManifestFault {
  return { severity: 'error', offset, message, ...(expected !== undefined && { expected }) };
}

/** The parser's messages quote the text. */
function tidy(message: string): string {
  const line = message.length > 200 ? `${message.slice(0, 200)}…` : message;
  return escape(line).replaceAll('\\"', '"');
}

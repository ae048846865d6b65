/**
 * `metadata`: names, checked as the API server checks them, labels and times.
 *
 * They end up in rules, comments and file names, so nothing passes here that needs quoting there.
 */
import { type Cursor, readText, readTime } from '../../text/cursor.ts';
import { quote } from '../../text/printable.ts';

interface NameRule {
  readonly most: number;
  readonly pattern: RegExp;
  readonly expected: string;
}

export const LABEL: NameRule = {
  most: 63,
  pattern: /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/,
  expected: 'at most 63 lower-case letters, digits and "-", with a letter or digit at both ends',
};

export const SUBDOMAIN: NameRule = {
  most: 253,
  pattern: /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/,
  expected: 'at most 253 lower-case letters, digits, "-" and ".", with a letter or digit around each "."',
};

/** The value of a Kubernetes label. */
export const LABEL_VALUE: NameRule = {
  most: 63,
  pattern: /^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$/,
  expected: 'at most 63 letters, digits, "-", "_" and ".", with a letter or digit at both ends',
};

export function fits(rule: NameRule, name: string): boolean {
  return name.length <= rule.most && rule.pattern.test(name);
}

export function readName(at: Cursor, rule: NameRule): string {
  if (at.missing || at.value === '') {
    at.refuse(at.missing ? 'is missing' : 'is empty', rule.expected);
    return '';
  }
  return readOptionalName(at, rule);
}

/** Missing or empty reads as ''. */
export function readOptionalName(at: Cursor, rule: NameRule): string {
  const name = readText(at);
  if (name === '' || fits(rule, name)) return name;
  const what =
    name.length > rule.most ? `has ${name.length} characters` : `${quote(name)} is not a valid name`;
  at.refuse(what, rule.expected);
  return '';
}

export interface Metadata {
  readonly namespace: string;
  readonly name: string;
}

/** A manifest may leave the namespace out, as it may for kubectl. */
export function readMetadata(metadata: Cursor, nameRule: NameRule): Metadata {
  return {
    namespace: readOptionalName(metadata.field('namespace'), LABEL) || 'default',
    name: readName(metadata.field('name'), nameRule),
  };
}

export function label(metadata: Cursor, name: string): Cursor {
  return metadata.map('labels').field(name);
}

/** A selector looks at the name alone, so an empty value counts. */
export function hasLabel(metadata: Cursor, name: string): boolean {
  return label(metadata, name).value !== undefined;
}

const TRIGGER_TIME = 'endpoints.kubernetes.io/last-change-trigger-time';
export const HEADLESS = 'service.kubernetes.io/headless';

export function readTriggerTime(metadata: Cursor): number | undefined {
  return readTime(metadata.map('annotations').field(TRIGGER_TIME));
}

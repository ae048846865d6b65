/** Kinds of settings that hold several values. */
import { BOOL, describeRaw, quoteWord, STRING, UNSIGNED } from './scalarKinds.ts';
import type { FeatureGates, Reading, SettingKind, StringList, VerbosityRule } from './setting.ts';
import { isMap } from '../text/cursor.ts';

export const STRING_LIST: SettingKind<StringList> = {
  name: 'list of strings',
  placeholder: 'TEXT,…',
  zero: null,
  fromFlag: (text, before) => {
    const words = splitWords(text);
    return 'value' in words ? { value: [...(before ?? []), ...words.value] } : words;
  },
  fromFile: (raw) => readList(raw, STRING),
  print: (value) => (value ?? []).join(','),
  toJson: (value) => value,
};

/**
 * As a line of CSV, like kube-proxy: in arguments of containers, which no shell has seen, quotes are part of the text. Of
 * several lines only the first counts.
 */
function splitWords(text: string): Reading<readonly string[]> {
  const [line = ''] = text.split('\n', 1);
  if (line === '') return { value: [] };
  const words: string[] = [];
  for (let at = 0; at <= line.length; ) {
    const quotedWord = /^"((?:[^"]|"")*)"(?=,|$)/.exec(line.slice(at));
    const [word = ''] = quotedWord ?? /^[^,]*/.exec(line.slice(at)) ?? [];
    if (!quotedWord && word.includes('"'))
      return {
        problem: word.startsWith('"')
          ? `must end with a quote where it begins with one: ${word}`
          : `must have quotes around all of a word or none: ${word}`,
      };
    words.push(quotedWord ? (quotedWord[1] ?? '').replaceAll('""', '"') : word);
    at += word.length + 1;
  }
  return { value: words };
}

export const FEATURE_GATES: SettingKind<FeatureGates> = {
  name: 'map of booleans',
  placeholder: 'NAME=BOOL,…',
  zero: {},
  fromFlag: (text, before) => readPairs(text, before ?? {}),
  fromFile: (raw) => {
    if (!isMap(raw))
      return { problem: `must be a map from gate to true or false, and is ${describeRaw(raw)}` };
    const gates: [string, boolean][] = [];
    for (const [name, value] of Object.entries(raw)) {
      const read = BOOL.fromFile(value);
      if (!('value' in read))
        return { problem: `${name} must be true or false, and is ${describeRaw(value)}` };
      gates.push([name, read.value]);
    }
    return { value: Object.fromEntries(gates) };
  },
  print: (value) =>
    sortedGates(value)
      .map(([name, on]) => `${name}=${on}`)
      .join(','),
  toJson: (value) => Object.fromEntries(sortedGates(value)),
};

function sortedGates(gates: FeatureGates): readonly (readonly [string, boolean])[] {
  return Object.entries(gates).sort(([a], [b]) => (a < b ? -1 : 1));
}

function readPairs(text: string, before: FeatureGates): Reading<FeatureGates> {
  const gates: [string, boolean][] = Object.entries(before);
  for (const pair of text.split(',').filter((part) => part !== '')) {
    const [name = '', ...rest] = pair.split('=');
    if (rest.length === 0) return { problem: `${pair} must be written as ${pair}=true or ${pair}=false` };
    const read = BOOL.fromFlag(rest.join('=').trim(), undefined);
    if (!('value' in read)) return { problem: `${name} must be true or false` };
    gates.push([name.trim(), read.value]);
  }
  return { value: Object.fromEntries(gates) };
}

export const VERBOSITY_RULES: SettingKind<readonly VerbosityRule[]> = {
  name: 'list of {filePattern, verbosity}',
  placeholder: 'PATTERN=N,…',
  zero: [],
  fromFlag: (text, before) => readRules(text, before ?? []),
  fromFile: (raw) => {
    if (!Array.isArray(raw)) return { problem: `must be a list, and is ${describeRaw(raw)}` };
    const rules: VerbosityRule[] = [];
    for (const item of raw as readonly unknown[]) {
      const rule = readRule(item);
      if (!('value' in rule)) return rule;
      rules.push(rule.value);
    }
    return { value: rules };
  },
  print: (value) => value.map(({ filePattern, verbosity }) => `${filePattern}=${verbosity}`).join(','),
  toJson: (value) => value,
  join: (flag, file) => [...flag, ...file],
};

function readRules(text: string, before: readonly VerbosityRule[]): Reading<readonly VerbosityRule[]> {
  const rules = [...before];
  for (const pair of text.split(',').filter((part) => part !== '')) {
    const [filePattern = '', level = '', ...rest] = pair.split('=');
    if (filePattern === '' || level === '' || rest.length > 0)
      return { problem: `${quoteWord(pair)} does not have the pattern=N format` };
    const verbosity = UNSIGNED.fromFlag(level, undefined);
    if ('problem' in verbosity) return { problem: `the level in ${quoteWord(pair)} ${verbosity.problem}` };
    if ('value' in verbosity) rules.push({ filePattern, verbosity: verbosity.value });
  }
  return { value: rules };
}

function readRule(raw: unknown): Reading<VerbosityRule> {
  if (!isMap(raw))
    return { problem: `must be a list of {filePattern, verbosity}, and holds ${describeRaw(raw)}` };
  const filePattern = STRING.fromFile(raw['filePattern'] ?? '');
  const verbosity = UNSIGNED.fromFile(raw['verbosity'] ?? 0);
  if (!('value' in filePattern)) return { problem: 'filePattern must be text' };
  if (!('value' in verbosity)) return { problem: 'verbosity must be a whole number, 0 or more' };
  return { value: { filePattern: filePattern.value, verbosity: verbosity.value } };
}

function readList(raw: unknown, kind: SettingKind<string>): Reading<readonly string[]> {
  if (!Array.isArray(raw)) return { problem: `must be a list, and is ${describeRaw(raw)}` };
  const values: string[] = [];
  for (const item of raw as readonly unknown[]) {
    const read = kind.fromFile(item);
    if (!('value' in read)) return { problem: `must be a list of texts, and holds ${describeRaw(item)}` };
    values.push(read.value);
  }
  return { value: values };
}

/**
 * Every setting has an effect, or help and reference say that it has none. Whether it has one is told from the source: some
 * part of Junction beside the table and the validation reads the field by its name.
 */
import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { flagHelp } from '../../src/config/help.ts';
import { FLAGS } from '../../src/config/table.ts';
import { referencePage } from '../../scripts/samples/configurationPage.ts';
import { CONFIG_FIELDS, SECTIONS } from '../../src/config/table.ts';
import { filesUnder } from '../support/checkout.ts';
import { HEADER, load } from './given.ts';

/** They know every setting, and do nothing with it. */
const KNOWS_ALL =
  /^src\/config\/(sections\/|validate|consistency|table|entry|fields|reference|help|v1alpha1|diff)/;

const READERS = filesUnder('src').filter(({ path }) => !KNOWS_ALL.test(path));

/** `conntrack.min`, `const { min } = config.conntrack`, `function f({ conntrack: { min } })`, `({ min }: Config)`. */
function readersOf(path: string): readonly string[] {
  const keys = path.split('.');
  const leaf = keys.pop() ?? '';
  const parents =
    keys.length === 0 ? ['config', String.raw`config\(\)`] : [keys.at(-1) ?? '', ...otherNames(path)];
  const parent = `(?:${parents.join('|')})`;
  const patterns = [
    String.raw`\b${parent}\??\.${leaf}\b`,
    String.raw`\{[^{}]*\b${leaf}\b[^{}]*\}\s*=\s*[^;]*\b${parent}(?![\w.])`,
    String.raw`\b${parent}: \{[^{}]*\b${leaf}\b`,
    ...(keys.length === 0
      ? [
          String.raw`\{[^{}]*\b${leaf}\b[^{}]*\}: (?:Pick<)?\w*(?:Config|Options)\b`,
          String.raw`\{[^{}]*\b${leaf}\b[^{}]*\} = fields\b`,
        ]
      : []),
  ].map((source) => new RegExp(source));
  return READERS.filter(({ text }) => patterns.some((pattern) => pattern.test(text))).map(
    (file) => file.path,
  );
}

/** What a section is called where it is read, if not by its own name. */
function otherNames(path: string): readonly string[] {
  if (path.startsWith('detectLocal.')) return ['names'];
  if (path.startsWith('logging.options.')) return [String.raw`options\[format\]`];
  return /\.(?:syncPeriod|minSyncPeriod|masqueradeAll)$/.test(path)
    ? [String.raw`fields\[\w+\(fields\.mode\)\]`]
    : [];
}

describe('every field', () => {
  test.each(CONFIG_FIELDS.filter(({ ignored }) => ignored === undefined))(
    '$path is read by some part',
    ({ path }) => {
      expect(readersOf(path)).not.toEqual([]);
    },
  );

  test.each(CONFIG_FIELDS.filter(({ ignored }) => ignored !== undefined))(
    '$path is read by none',
    ({ path }) => {
      expect(readersOf(path)).toEqual([]);
    },
  );
});

/** Flags that no field has: read by their own name. */
test('every flag without a field is read, or said to have no effect', () => {
  const flags = SECTIONS.flatMap(({ flags = [] }) => flags);
  const unread = flags
    .filter(({ ignored, name }) => ignored === undefined && !READ_BY_CONSTANT.has(name))
    .filter(({ name }) => !READERS.some(({ text }) => text.includes(`'${name}'`)));
  expect(unread.map(({ name }) => name)).toEqual([]);
});

/** PORT_FLAGS in src/config/load.ts. */
const READ_BY_CONSTANT = new Set(['healthz-port', 'metrics-port']);

describe('what has no effect', () => {
  const ignored = FLAGS.filter((flag) => flag.ignored !== undefined);

  test('stands in the help, with the reason', () => {
    const [, group = ''] = flagHelp(200).split('Accepted, without effect in Junction:\n');
    const words = group.replaceAll(/\s+/g, ' ');
    for (const { name } of ignored) expect(words).toContain(`--${name}`);
    for (const { ignored: reason = '' } of ignored) expect(words).toContain(`no effect, because ${reason}`);
    expect(ignored.map(({ name }) => name)).toEqual(expect.arrayContaining(['config-sync-period']));
  });

  test('stands in the reference, with the reason', () => {
    const [, section = ''] = referencePage().split('## Settings without effect');
    for (const { name, ignored: reason = '' } of ignored) {
      expect(section).toMatch(new RegExp(String.raw`\| .--${name}. \| `));
      expect(section).toContain(reason);
    }
    for (const { path } of CONFIG_FIELDS.filter((field) => field.ignored !== undefined)) {
      expect(section).toContain(`| \`${path}\` |`);
    }
  });

  test('is named where a flag gives it', () => {
    expect(load(['--config-sync-period=1m']).notes).toContainEqual({
      severity: 'warning',
      message: expect.stringContaining('Flag --config-sync-period has no effect, because ') as string,
    });
  });

  test('is named where a file gives it, unless that is the default', () => {
    const named = (fields: object): unknown =>
      load([], stringify({ ...HEADER, ...fields })).notes.find(({ message }) =>
        message.includes('have no effect'),
      )?.fields;
    expect(named({ configSyncPeriod: '1m' })).toEqual({
      settings: [expect.stringContaining('configSyncPeriod: ') as string],
    });
    const kubeadm = { configSyncPeriod: '0s', clientConnection: { contentType: '', acceptContentTypes: '' } };
    expect(named(kubeadm)).toBeUndefined();
    expect(named({ configSyncPeriod: '15m' })).toBeUndefined();
  });
});

import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { toFields } from '../../src/config/effective.ts';
import type { Field, Flag } from '../../src/config/setting.ts';
import { CONFIG_FIELDS, FLAGS, setAt, valueAt } from '../../src/config/table.ts';
import { HEADER, load, parse } from './given.ts';

/** Something other than the default, for each kind of setting. */
const SAMPLES: Readonly<Record<string, string>> = {
  boolean: 'true',
  integer: '7',
  'unsigned integer': '3',
  number: '2.5',
  string: 'sample',
  duration: '1m30s',
  IP: '192.0.2.1',
  'IP or IP:port': '192.0.2.1:8080',
  quantity: '2Ki',
  'list of strings': 'one,two',
  'map of booleans': 'AllBeta=false,AllowServiceExternalIPs=true',
  'list of {filePattern, verbosity}': 'proxy*=2,sync=3',
};

function sampleFor({ kind, default: normal }: Field | Flag): string {
  if (normal === true) return 'false';
  return SAMPLES[kind.name] ?? 'no sample';
}

/** The mode in which a field of a mode's section counts. */
function modeFor(path: string): string {
  const [section = ''] = path.split('.');
  return ['iptables', 'ipvs', 'nftables'].includes(section) && path.includes('.') ? section : '';
}

function fieldAt(path: string): Field {
  const found = CONFIG_FIELDS.find((field) => field.path === path);
  if (!found) throw new Error(`no field ${path}`);
  return found;
}

const FIELD_FLAGS = FLAGS.filter(({ paths }) => paths.length > 0);
const OTHER_FLAGS = FLAGS.filter(({ paths, name }) => paths.length === 0 && name !== 'version');

describe('every flag', () => {
  test.each(FLAGS.filter(({ name }) => name !== 'version').map((flag) => [flag.name, flag] as const))(
    '--%s is read, and printed back as it was typed',
    (name, flag) => {
      const sample = sampleFor(flag);
      for (const argv of [[`--${name}=${sample}`], [`--${name.replaceAll('-', '_')}=${sample}`]]) {
        const value = parse(...argv).values.get(name);
        expect(value).toBeDefined();
        expect(flag.kind.print(value ?? '')).toBe(sample);
      }
    },
  );

  test.each(
    FLAGS.filter(({ kind }) => kind.alone === undefined).map(({ name, ...flag }) => [name, flag] as const),
  )('--%s takes its value as the next word', (name, flag) => {
    const sample = sampleFor({ name, ...flag });
    expect(parse(`--${name}`, sample)).toEqual(parse(`--${name}=${sample}`));
  });

  test.each(FIELD_FLAGS.flatMap((flag) => flag.paths.map((path) => [flag.name, path, flag] as const)))(
    '--%s sets %s',
    (name, path, flag) => {
      const sample = sampleFor(flag);
      const field = fieldAt(path);
      const mode = modeFor(path);
      const { config } = load(
        name === 'proxy-mode' ? [`--${name}=${sample}`] : [`--proxy-mode=${mode}`, `--${name}=${sample}`],
      );
      expect(field.kind.print(valueAt(toFields(config), field))).toBe(sample);
    },
  );

  test('has a name of its own, and help', () => {
    expect(new Set(FLAGS.map(({ name }) => name)).size).toBe(FLAGS.length);
    for (const { help } of FLAGS) expect(help).toMatch(/^\S.*[^.\s]$/);
  });

  test('without a field leaves the configuration alone', () => {
    for (const { name, kind, default: normal } of OTHER_FLAGS.filter(
      (flag) => !['config', 'master', 'help'].includes(flag.name),
    )) {
      expect(load([`--${name}=${kind.print(normal)}`]).config).toEqual(load().config);
    }
  });
});

describe('every field', () => {
  test.each(CONFIG_FIELDS.map((field) => [field.path, field] as const))(
    '%s is read from a file',
    (path, field) => {
      const reading = field.kind.fromFlag(sampleFor(field), undefined);
      if (!('value' in reading)) throw new Error('the sample is bad');
      const featureGates = { LoggingAlphaOptions: true };
      const file: Record<string, unknown> = { ...HEADER, mode: modeFor(path), featureGates };
      setAt(file, path, field.kind.toJson(reading.value));
      const { config, notes } = load([], stringify(file));
      expect(valueAt(toFields(config), field)).toEqual(reading.value);
      expect(notes.filter(({ severity }) => severity === 'warning')).toEqual([]);
    },
  );

  test.each(CONFIG_FIELDS.map((field) => [field.path, field] as const))(
    '%s has its default without a file',
    (path, field) => {
      const flag = FLAGS.find(({ paths }) => paths.includes(path));
      const { config } = load([`--proxy-mode=${modeFor(path)}`]);
      const expected = PLATFORM_DEFAULTS[path] ?? field.kind.print((flag ?? field).default);
      const asFile = path === 'nodePortAddresses' ? load().config : config;
      expect(field.kind.print(valueAt(toFields(asFile), field))).toBe(expected);
    },
  );

  test.each(CONFIG_FIELDS.map((field) => [field.path, field] as const))(
    '%s has its default in an empty file, and where it is null',
    (path, field) => {
      const empty: Record<string, unknown> = { ...HEADER, mode: modeFor(path) };
      const withNull = structuredClone(empty);
      setAt(withNull, path, null);
      const expected = PLATFORM_DEFAULTS[path] ?? field.kind.print(field.default);
      for (const file of [empty, withNull]) {
        const { config } = load([], stringify(file));
        expect(field.kind.print(valueAt(toFields(config), field))).toBe(expected);
      }
    },
  );

  test.each(CONFIG_FIELDS.map((field) => [field.path, field] as const))(
    '%s refuses a value of another type',
    (path) => {
      const file: Record<string, unknown> = { ...HEADER };
      setAt(file, path, [[1]]);
      expect(() => load([], stringify(file))).toThrow(
        new RegExp(`failed to decode: .*:\\d+:\\d+: ${path} must be `),
      );
    },
  );
});

const PLATFORM_DEFAULTS: Readonly<Record<string, string>> = {
  mode: 'iptables',
  detectLocalMode: 'ClusterCIDR',
};

describe('the table', () => {
  test('shares a flag only where one is', () => {
    for (const { sharesFlag } of CONFIG_FIELDS.filter((field) => field.sharesFlag !== undefined)) {
      expect(FIELD_FLAGS.map(({ name }) => name)).toContain(sharesFlag);
    }
  });
});

/** Every command line that README, docs/ and --help teach is one that Junction takes. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { COMMANDS, flagsElsewhere, commandFlags } from '../../src/cli/commands.ts';
import { parseCommandLine } from '../../src/config/commandLine.ts';
import { parseOptions } from '../../lab/demo/options.ts';
import { PAGES, ROOT } from '../support/checkout.ts';
import { junction } from './junction.ts';

const NAMES = COMMANDS.map(({ name }) => name).join('|');
/** The program, or its image; flags alone mean run. */
const TAUGHT = new RegExp(
  `(?:(?<![\\w-]|kubectl )junction(?::[\\d.]+)? (${NAMES})\\b|\\./bin/junction(?= --))([^\`\\n]*)`,
  'g',
);

interface Line {
  readonly where: string;
  readonly args: readonly string[];
}

/** Up to a comment, a pipe or the end of what a parenthesis holds. */
function wordsOf(text: string): readonly string[] {
  const [own = ''] = text.split(/\s(?:[#|>&]|-->)|[;)](?:\s|$)/);
  return own
    .trim()
    .split(/\s+/)
    .filter((word) => word !== '')
    .map((word) => word.replaceAll(/['"]/g, '').replace(/[.,:]$/, ''));
}

function linesOf(where: string, text: string): readonly Line[] {
  return [...text.replaceAll('\\\n', ' ').matchAll(TAUGHT)].map(([, name = 'run', rest = '']) => ({
    where,
    args: [name, ...wordsOf(rest)],
  }));
}

const LINES = [
  ...PAGES.flatMap(({ path, text }) => linesOf(path, text)),
  ...COMMANDS.flatMap(({ name, examples }) =>
    examples.flatMap((example) => linesOf(`${name} --help`, example)),
  ),
  // Where a sentence goes on after the command, its words are no arguments.
].filter(({ args: [, first] }) => first?.startsWith('-'));

test('there are some', () => expect(LINES.length).toBeGreaterThan(30));

test.each(LINES)('$where: junction $args', ({ args: [name, ...rest] }) => {
  const command = COMMANDS.find((each) => each.name === name);
  const parsed =
    command &&
    parseCommandLine(rest, commandFlags(command), flagsElsewhere(command), command.arguments?.most);
  expect(parsed).toMatchObject({ ok: true });
});

describe('plans of the examples are made', () => {
  const plans = LINES.filter(({ args }) => args[0] === 'plan' && args.includes('examples'));
  const unique = [...new Map(plans.map(({ args }) => [args.join(' '), args])).values()];

  test.each(unique.map((args) => ({ args })))('$args', async ({ args }) => {
    const { code, out, err } = await junction(
      ...args.map((word) => (word === 'examples' ? join(ROOT, word) : word)),
    );
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).not.toBe('');
  });
});

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

describe('commands of the checkout', () => {
  const SCRIPT = /\b(npm (?:start|test|run [\w:]+)|node scripts\/\w+\.mjs)((?: --(?= ))?[^`\n]*)/g;
  const lines = PAGES.flatMap(({ path, text }) =>
    [...text.matchAll(SCRIPT)].map(([, command = '', rest = '']) => ({
      where: path,
      command,
      args: rest.startsWith(' -- ') ? wordsOf(rest.slice(' -- '.length)) : [],
    })),
  );
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Readonly<Record<string, string>> };

  test('there are some', () => expect(lines.length).toBeGreaterThan(30));

  test.each(lines)('$where: $command $args', ({ command, args }) => {
    const [program, first = '', second = ''] = command.split(' ');
    const name = first === 'run' ? second : first;
    expect(program === 'node' ? existsSync(join(ROOT, first)) : name in scripts).toBe(true);
    if (name === 'start') expect(parseOptions(withFiles(args), {})).not.toMatchObject({ kind: 'mistake' });
    // Every benchmark takes it, before its name.
    const own = name === 'bench' && args[0] === '--node' ? args.slice(2) : args;
    const flags = own.filter((word) => word.startsWith('--'));
    for (const flag of name === 'bench' ? flags : []) expect(benchHelp(own)).toContain(`\n  ${flag} `);
    for (const flag of name === 'soak' ? flags : [])
      expect(read('bench/soak/main.ts')).toContain(`  ${flag} `);
  });

  /** With files that are there: this test builds no image. */
  function withFiles(args: readonly string[]): readonly string[] {
    const words = args.map((word, index) =>
      args[index - 1] === '--image' ? join(ROOT, 'package.json') : word,
    );
    return [...words, '--manifests', join(ROOT, 'examples')];
  }

  /** The paragraph of one benchmark. */
  function benchHelp([first = 'iptables']: readonly string[]): string {
    const name = first.startsWith('--') ? 'iptables' : first;
    return (
      new RegExp(`^${name}\\b.*?\n\n`, 'ms').exec(read('bench/main.ts').replace(/^.*HELP = `/s, ''))?.[0] ??
      ''
    );
  }
});

describe('what is deployed', () => {
  const SCHEMA = JSON.parse(read('deploy/chart/junction/values.schema.json')) as Schema;
  interface Schema {
    readonly properties?: Readonly<Record<string, Schema>>;
    readonly additionalProperties?: boolean | Schema;
  }

  function isValue([key, ...rest]: readonly string[], schema: Schema = SCHEMA): boolean {
    if (key === undefined) return true;
    const inner = schema.properties?.[key];
    return inner
      ? isValue(rest, inner)
      : schema.properties === undefined || schema.additionalProperties !== false;
  }

  const files = PAGES.flatMap(({ path: where, text }) =>
    [...text.matchAll(/(?: -f|--patch-file|helm install \w+) (deploy\/\S+)/g)].map(([, path = '']) => ({
      where,
      path,
    })),
  );
  const values = PAGES.flatMap(({ path: where, text }) =>
    [...text.matchAll(/--set '?([\w.-]+)=/g)].map(([, value = '']) => ({ where, value })),
  );

  test('there are some', () => {
    expect(files.length).toBeGreaterThan(5);
    expect(values.length).toBeGreaterThan(10);
  });
  test.each(files)('$where: $path', ({ path }) => expect(existsSync(join(ROOT, path))).toBe(true));
  test.each(values)('$where: --set $value', ({ value }) => expect(isValue(value.split('.'))).toBe(true));
});

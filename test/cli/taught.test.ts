/** Every command line that README, docs/ and --help teach is one that Junction takes. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { COMMANDS, flagsElsewhere, flagsOf } from '../../src/cli/commands.ts';
import { parseCommandLine } from '../../src/config/index.ts';
import { ROOT } from '../house/sources.ts';
import { junction } from './junction.ts';

const NAMES = COMMANDS.map(({ name }) => name).join('|');
const TAUGHT = new RegExp(`(?<![\\w/-])(?:\\./bin/)?junction (${NAMES})\\b([^\`\\n]*)`, 'g');

interface Line {
  readonly where: string;
  readonly args: readonly string[];
}

/** Up to a comment, a pipe or the end of what a parenthesis holds. */
function wordsOf(text: string): readonly string[] {
  const [own = ''] = text.split(/\s[#|>&]|[;)](?:\s|$)/);
  return own
    .trim()
    .split(/\s+/)
    .filter((word) => word !== '')
    .map((word) => word.replaceAll(/['"]/g, '').replace(/[.,:]$/, ''));
}

function linesOf(where: string, text: string): readonly Line[] {
  return [...text.replaceAll('\\\n', ' ').matchAll(TAUGHT)].map(([, name = '', rest = '']) => ({
    where,
    args: [name, ...wordsOf(rest)],
  }));
}

const DOCS = readdirSync(join(ROOT, 'docs')).flatMap((name) => (name.endsWith('.md') ? `docs/${name}` : []));
const PAGES = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', ...DOCS];
const LINES = [
  ...PAGES.flatMap((page) => linesOf(page, readFileSync(join(ROOT, page), 'utf8'))),
  ...COMMANDS.flatMap(({ name, examples }) =>
    examples.flatMap((example) => linesOf(`${name} --help`, example)),
  ),
  // Where a sentence goes on after the command, its words are no arguments.
].filter(({ args: [, first] }) => first?.startsWith('-'));

test('there are some', () => expect(LINES.length).toBeGreaterThan(30));

test.each(LINES)('$where: junction $args', ({ args: [name, ...rest] }) => {
  const command = COMMANDS.find((each) => each.name === name);
  const parsed = command && parseCommandLine(rest, flagsOf(command), flagsElsewhere(command));
  expect(parsed).toMatchObject({ ok: true });
});

describe('plans of the examples are made', () => {
  const plans = LINES.filter(({ args }) => args[0] === 'plan' && args.includes('examples'));
  const unique = [...new Map(plans.map(({ args }) => [args.join(' '), args])).values()];

  test.each(unique.map((args) => ({ args })))('$args', async ({ args }) => {
    const { code, out } = await junction(
      ...args.map((word) => (word === 'examples' ? join(ROOT, word) : word)),
    );
    expect(code).toBe(0);
    expect(out).not.toBe('');
  });
});

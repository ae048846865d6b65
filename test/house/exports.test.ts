/** One name, one thing; and nothing is exported that no program uses. */
import { describe, expect, test } from 'vitest';
import { filesUnder, type SourceFile } from './sources.ts';

const SOURCE = filesUnder('src');
const PROGRAMS = [...SOURCE, ...['lab', 'bench', 'scripts'].flatMap(filesUnder)];
/** Not this file, whose lists name exports. */
const TESTS = filesUnder('test').filter(({ path }) => path !== 'test/house/exports.test.ts');

/** Exports that the rules below would refuse, each with the reason. It may only get shorter. */
const ALLOWED: Readonly<Record<string, string>> = {
  walkIptables:
    'what packets meet in rules: the reader of the kernel walks tables that it reads as it goes, tests those in memory',
  walkNftables:
    'what packets meet in the table as data: the reader walks what the kernel has, and tests compare both',
  walkTable:
    'what packets meet in the table as data: the reader walks what the kernel has, and tests compare both',
};

const DECLARATION =
  /^export (?:declare )?(?:async )?(?:abstract )?(?:function\*?|class|interface|type|const|let|enum) (\w+)/gm;

interface Declaration {
  readonly name: string;
  readonly path: string;
}

/** Overloads are one declaration. */
const DECLARED: readonly Declaration[] = SOURCE.flatMap(({ path, text }) =>
  [...new Set([...text.matchAll(DECLARATION)].map((match) => match[1] ?? ''))].map((name) => ({
    name,
    path,
  })),
);

/** By word: the files that have it, each with how often. */
function indexOf(files: readonly SourceFile[]): ReadonlyMap<string, ReadonlyMap<string, number>> {
  const index = new Map<string, Map<string, number>>();
  for (const { path, text } of files)
    for (const [word] of text.matchAll(/\w+/g)) {
      const paths = index.get(word) ?? new Map<string, number>();
      index.set(word, paths.set(path, (paths.get(path) ?? 0) + 1));
    }
  return index;
}

function isAllowed(name: string): boolean {
  return Object.hasOwn(ALLOWED, name);
}

describe('exports of src', () => {
  test('what is allowed exists', () => {
    const names = new Set(DECLARED.map(({ name }) => name));
    expect(Object.keys(ALLOWED).filter((name) => !names.has(name))).toEqual([]);
  });

  test('there are many, so they are found', () => expect(DECLARED.length).toBeGreaterThan(500));

  test('no name is declared twice', () => {
    const paths = new Map<string, string[]>();
    for (const { name, path } of DECLARED) paths.set(name, [...(paths.get(name) ?? []), path]);
    const twice = [...paths].filter(([name, declared]) => declared.length > 1 && !isAllowed(name));
    expect(twice.map(([name, declared]) => `${name}: ${declared.join(', ')}`)).toEqual([]);
  });

  test('each has a user in another file: a program, or a test of a part that its own file uses', () => {
    const programs = indexOf(PROGRAMS);
    const tests = indexOf(TESTS);
    const isUsed = ({ name, path }: Declaration): boolean => {
      const paths = programs.get(name) ?? new Map<string, number>();
      const isOwnPart = (paths.get(path) ?? 0) > 1 && tests.has(name);
      return isOwnPart || [...paths.keys()].some((other) => other !== path);
    };
    const unused = DECLARED.filter((declared) => !isUsed(declared) && !isAllowed(declared.name));
    expect(unused.map(({ name, path }) => `${path}: ${name}`)).toEqual([]);
  });
});

/** One name, one thing; and nothing is exported that no program uses. */
import { describe, expect, test } from 'vitest';
import { filesUnder, type SourceFile } from './sources.ts';

const PROGRAMS = ['src', 'page', 'lab', 'bench', 'scripts'].flatMap(filesUnder);
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
function declaredIn(folder: string): readonly Declaration[] {
  return filesUnder(folder).flatMap(({ path, text }) =>
    [...new Set([...text.matchAll(DECLARATION)].map((match) => match[1] ?? ''))].map((name) => ({
      name,
      path,
    })),
  );
}

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

test('what is allowed exists', () => {
  const names = new Set(declaredIn('src').map(({ name }) => name));
  expect(Object.keys(ALLOWED).filter((name) => !names.has(name))).toEqual([]);
});

describe.each([
  ['src', 500],
  ['page', 20],
])('exports of %s', (folder, least) => {
  const declared = declaredIn(folder);

  test('there are many, so they are found', () => expect(declared.length).toBeGreaterThan(least));

  test('no name is declared twice', () => {
    const paths = new Map<string, string[]>();
    for (const { name, path } of declared) paths.set(name, [...(paths.get(name) ?? []), path]);
    const twice = [...paths].filter(([name, places]) => places.length > 1 && !isAllowed(name));
    expect(twice.map(([name, places]) => `${name}: ${places.join(', ')}`)).toEqual([]);
  });

  test('each has a user in another file: a program, or a test of a part that its own file uses', () => {
    const programs = indexOf(PROGRAMS);
    const tests = indexOf(TESTS);
    const isUsed = ({ name, path }: Declaration): boolean => {
      const paths = programs.get(name) ?? new Map<string, number>();
      const isOwnPart = (paths.get(path) ?? 0) > 1 && tests.has(name);
      return isOwnPart || [...paths.keys()].some((other) => other !== path);
    };
    const unused = declared.filter((each) => !isUsed(each) && !isAllowed(each.name));
    expect(unused.map(({ name, path }) => `${path}: ${name}`)).toEqual([]);
  });
});

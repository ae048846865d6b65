/** ARCHITECTURE.md is a map: every name and every path on it must be there. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const TEXT = readFileSync(join(ROOT, 'ARCHITECTURE.md'), 'utf8').replace(/```[\s\S]*?```/g, '');
const FILES = ['src', 'lab', 'test', 'bench', 'scripts', 'examples', 'docs'].flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((path) => join(folder, path)),
);
const SOURCES = FILES.filter((path) => /^(?:src|lab)\//.test(path) && path.endsWith('.ts')).map((path) =>
  readFileSync(join(ROOT, path), 'utf8'),
);
const QUOTED = [...new Set([...TEXT.matchAll(/`([^`\n]+)`/g)].map(([, quoted = '']) => quoted))];

/** `decide`, `Planner.update`, `decide(plan, packet)` */
const NAME = /^([A-Za-z][A-Za-z0-9]*)(?:\.([a-z]\w*))?(?:\(.*\))?$/;
/** Words of others: a mode, a layout, a variable, a function of the packet's way. */
const NOT_OURS =
  /^(?:CI|iptables|ipvs|nftables|current|classic|cluster|local|pod|node|outside|forward|run|api|npm)$/;

const isDeclared = (name: string): boolean => {
  const declaration = new RegExp(`\\b(?:class|interface|type|function\\*?|const|enum) ${name}\\b`);
  const method = new RegExp(`^ {2}(?:async )?\\*?#?${name}(?:<.*>)?\\(`, 'm');
  return SOURCES.some((source) => declaration.test(source) || method.test(source));
};

const hasMember = (owner: string, member: string): boolean => {
  const declaration = new RegExp(`\\b(?:class|interface) ${owner}\\b`);
  const line = new RegExp(`^ {2}(?:readonly |async |get |static )*\\*?${member}(?:<.*>)?[(:]`, 'm');
  return SOURCES.some((source) => declaration.test(source) && line.test(source));
};

const names = QUOTED.flatMap((quoted) => {
  const [, owner = '', member] = NAME.exec(quoted) ?? [];
  return owner === '' || member === 'ts' || NOT_OURS.test(owner) ? [] : [{ quoted, owner, member }];
});

test.each(names)('$quoted', ({ owner, member }) => {
  expect(member === undefined ? isDeclared(owner) : hasMember(owner, member)).toBe(true);
});

const paths = QUOTED.filter((quoted) => /^[\w*.-]+\/[\w/*.-]*$|\.(?:ts|md|yaml)$/.test(quoted));

test.each(paths)('%s', (path) => {
  const isThere = ['', 'src', 'test'].some((folder) => existsSync(join(ROOT, folder, path)));
  const isFolder = path.endsWith('/') && FILES.some((file) => file.includes(`/${path}`));
  const ending = path.replace('*', '');
  const isFile = FILES.some(
    (file) =>
      basename(file) === path || file.endsWith(`/${path}`) || (path !== ending && file.endsWith(ending)),
  );
  expect(isThere || isFolder || isFile).toBe(true);
});

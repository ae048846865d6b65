import { execFileSync } from 'node:child_process';
import { linkSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';

interface Entry {
  readonly path: string;
  readonly type: 'file' | 'folder' | 'symlink';
  readonly mode?: number;
  readonly data?: Buffer;
  readonly target?: string;
}

interface Tar {
  readonly writeTar: (entries: readonly Entry[], options: { readonly mtime: number }) => Iterable<Buffer>;
  readonly readTar: (archive: Buffer) => Iterable<Entry>;
}

const { writeTar, readTar } = (await import(
  new URL('../../scripts/ship/tar.mjs', import.meta.url).href
)) as Tar;

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'junction-tar-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const LONG = `a/${'long-'.repeat(15)}/${'name-'.repeat(15)}end`;
const ENTRIES: readonly Entry[] = [
  { path: 'b.txt', type: 'file', data: Buffer.from('two') },
  { path: LONG, type: 'file', mode: 0o755, data: Buffer.alloc(1025, 'x') },
  { path: 'a-link', type: 'symlink', target: LONG.slice(0, 90) },
];

function written(entries: readonly Entry[]): Buffer {
  return Buffer.concat([...writeTar(entries, { mtime: 1_700_000_000 })]);
}

test('GNU tar reads what is written: sorted, owned by root, with one date, and with the folders in between', () => {
  writeFileSync(join(folder, 'x.tar'), written(ENTRIES));
  const listing = execFileSync('tar', ['--utc', '--numeric-owner', '-tvf', join(folder, 'x.tar')], {
    encoding: 'utf8',
  });
  const lines = listing.trimEnd().split('\n');
  expect(lines.map((line) => line.replace(/ +/g, ' ').replace(' 2023-11-14 22:13', ''))).toEqual([
    'drwxr-xr-x 0/0 0 a/',
    `drwxr-xr-x 0/0 0 ${dirname(LONG)}/`,
    `-rwxr-xr-x 0/0 1025 ${LONG}`,
    `lrwxrwxrwx 0/0 0 a-link -> ${LONG.slice(0, 90)}`,
    '-rw-r--r-- 0/0 3 b.txt',
  ]);
});

test('the order of entries does not matter; what does not fit the format, or twice, is refused', () => {
  expect(written([...ENTRIES].reverse())).toEqual(written(ENTRIES));
  const file = (path: string): Entry => ({ path, type: 'file', data: Buffer.alloc(0) });
  expect(() => written([file('x'.repeat(101))])).toThrow('too long for ustar');
  expect(() => written([file('x'), file('x')])).toThrow('two entries for x');
});

test.each(['ustar', 'gnu', 'pax'])('what GNU tar writes in %s format is read', (format) => {
  const root = join(folder, 'root');
  mkdirSync(join(root, dirname(LONG)), { recursive: true });
  writeFileSync(join(root, LONG), 'one', { mode: 0o755 });
  writeFileSync(join(root, 'b'), 'two');
  symlinkSync('b', join(root, 'c'));
  linkSync(join(root, 'b'), join(root, 'd'));
  const archive = join(folder, 'x.tar');
  execFileSync('tar', [`--format=${format}`, '--sort=name', '-C', root, '-cf', archive, '.']);
  const files = [...readTar(readFileSync(archive))].filter(({ type }) => type !== 'folder');
  expect(files.map(({ path, type, target, data }) => [path, type, target ?? data?.toString()])).toEqual([
    [LONG, 'file', 'one'],
    ['b', 'file', 'two'],
    ['c', 'symlink', 'b'],
    ['d', 'file', 'two'],
  ]);
});

test('an archive that ends too early is told', () => {
  const archive = written(ENTRIES);
  expect(() => [...readTar(archive.subarray(0, archive.length - 1536))]).toThrow(
    'the archive ends in the middle of a file',
  );
});

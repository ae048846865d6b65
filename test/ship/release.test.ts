/** What `scripts/release.mjs` does around its long steps, which stand-ins take the place of. */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ROOT } from '../support/checkout.ts';

const FILES: Readonly<Record<string, string>> = {
  'scripts/setup.mjs': '',
  'scripts/image.mjs': `import { mkdirSync, writeFileSync } from 'node:fs';
    mkdirSync('release/layout', { recursive: true });
    writeFileSync('release/image.oci.tar', process.argv.slice(2).join(' '));`,
  'scripts/bundle.mjs': "(await import('node:fs')).writeFileSync('release/node.tar.gz', 'the bundle');",
  'package.json': '{ "version": "7.8.9", "scripts": { "test": "true" } }',
  'package-lock.json': '{ "version": "7.8.9" }',
  'src/version.ts': "export const VERSION = '7.8.9';\n",
  'deploy/chart/junction/Chart.yaml': 'name: junction\nversion: 7.8.9\n',
  'deploy/manifests/a.yaml': 'a: 1\n',
  'deploy/migration/a.yaml': 'a: 1\n',
  'deploy/monitoring/a.yaml': 'a: 1\n',
  '.ci/run': 'exec npm test\n',
  'CHANGELOG.md':
    '# Changelog\n\n## [7.8.9] - 2026-01-02\n\n### Added\n\n- Speed.\n\n## [7.8.8] - 2026-01-01\n\n- Old.\n',
  '.gitignore': 'release/\n',
};

let checkout: string;
let scratch: string;

function write(path: string, text: string): void {
  mkdirSync(dirname(join(checkout, path)), { recursive: true });
  writeFileSync(join(checkout, path), text);
}

function git(...args: readonly string[]): string {
  return execFileSync('git', args, { cwd: checkout, encoding: 'utf8' }).trim();
}

function commit(): void {
  git('add', '--all');
  git('commit', '--quiet', '--message', 'state');
}

beforeEach(() => {
  checkout = mkdtempSync(join(tmpdir(), 'junction-release-'));
  scratch = mkdtempSync(join(tmpdir(), 'junction-release-tmp-'));
  for (const path of ['scripts/release.mjs', 'scripts/ship', 'scripts/support'])
    cpSync(join(ROOT, path), join(checkout, path), { recursive: true });
  for (const [path, text] of Object.entries(FILES)) write(path, text);
  git('init', '--quiet');
  git('config', 'user.name', 'A');
  git('config', 'user.email', 'a@example.com');
  commit();
});

afterEach(() => {
  for (const folder of [checkout, scratch]) rmSync(folder, { recursive: true, force: true });
});

const environment = (): NodeJS.ProcessEnv => ({ ...process.env, TMPDIR: scratch, NO_COLOR: '1' });

function release(...args: readonly string[]): { readonly code: number | null; readonly output: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/release.mjs', ...args], {
    cwd: checkout,
    env: environment(),
    encoding: 'utf8',
  });
  return { code: status, output: stdout + stderr };
}

function leftovers(): readonly string[] {
  const folder = join(checkout, 'release');
  const names = [...readdirSync(scratch), ...(existsSync(folder) ? readdirSync(folder) : [])];
  // Node's own, on some versions.
  return names.filter((name) => name !== 'node-compile-cache');
}

test.each<readonly [name: string, spoil: () => void, message: string, flag: string]>([
  ['of an unknown flag', () => {}, "'--dry-ran'", '--dry-ran'],
  ['untested', () => {}, '--skip-tests works with --dry-run only', '--skip-tests'],
  [
    'from a tree with changes',
    () => write('left-over.txt', 'x'),
    'no commit has:\n  ?? left-over.txt\n',
    '--dry-run',
  ],
  ['of a version that exists', () => git('tag', 'v7.8.9'), 'Version 7.8.9 exists: v7.8.9 is ', '--dry-run'],
  [
    'that CHANGELOG.md does not describe',
    () => (write('CHANGELOG.md', '# Changelog\n\n## [Unreleased]\n\n- Speed.\n'), commit()),
    'CHANGELOG.md has no section for 7.8.9',
    '--dry-run',
  ],
  [
    'whose files differ in the version',
    () => (write('src/version.ts', "export const VERSION = '7.8.8';\n"), commit()),
    'package.json has version 7.8.9, and src/version.ts has 7.8.8',
    '--dry-run',
  ],
  [
    'whose tests fail',
    () => (write('package.json', '{ "version": "7.8.9", "scripts": { "test": "false" } }'), commit()),
    'The tests fail: nothing is released.',
    '--dry-run',
  ],
  [
    'of which a step fails',
    () => (write('scripts/bundle.mjs', "console.log('no compiler'); process.exit(3);\n"), commit()),
    'scripts/bundle.mjs --arch all failed with exit code 3\n\nno compiler',
    '--dry-run',
  ],
])('a release %s is refused, and leaves nothing behind', (_, spoil, message, flag) => {
  spoil();
  const { code, output } = release(flag);
  expect(output).toContain(message);
  expect(output).not.toContain('    at ');
  expect([code, leftovers()]).toEqual([1, []]);
});

test('ended halfway it leaves nothing behind', async () => {
  write('scripts/bundle.mjs', 'setInterval(() => undefined, 1000);\n');
  commit();
  const child = spawn(process.execPath, ['scripts/release.mjs', '--dry-run'], {
    cwd: checkout,
    env: environment(),
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const ended = once(child, 'exit');
  for await (const chunk of child.stdout) if (String(chunk).includes('Building the bundles')) break;
  expect(leftovers()).not.toEqual([]);
  child.kill('SIGTERM');
  expect(await ended).toEqual([143, null]);
  expect(leftovers()).toEqual([]);
});

test('files, checksums, provenance, notes and a tag; none after a dry run', () => {
  expect(release('--dry-run')).toEqual({
    code: 0,
    output: expect.stringContaining('no tag was made, and nothing was pushed'),
  });
  expect(git('tag')).toBe('');
  rmSync(join(checkout, 'release/7.8.9'), { recursive: true });
  expect(release()).toEqual({ code: 0, output: expect.stringContaining('git push origin v7.8.9') });
  const head = git('rev-parse', 'HEAD');
  expect(git('rev-list', '-n', '1', 'v7.8.9')).toBe(head);
  const folder = join(checkout, 'release/7.8.9');
  const text = (name: string): string => readFileSync(join(folder, name), 'utf8');
  expect(readdirSync(folder)).toEqual([
    'NOTES.md',
    'SHA256SUMS',
    'image.oci.tar',
    'junction-chart-7.8.9.tgz',
    'junction-manifests-7.8.9.tar.gz',
    'node.tar.gz',
    'provenance.json',
  ]);
  expect(text('image.oci.tar')).toBe('--arch all --locked');
  expect(text('NOTES.md')).toBe('# Junction 7.8.9\n\n### Added\n\n- Speed.\n');
  execFileSync('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: folder, stdio: 'pipe' });
  expect(text('SHA256SUMS').trim().split('\n')).toHaveLength(6);
  expect(JSON.parse(text('provenance.json'))).toMatchObject({
    subject: expect.arrayContaining([expect.objectContaining({ name: 'node.tar.gz' })]),
    predicate: {
      buildDefinition: {
        externalParameters: { version: '7.8.9' },
        internalParameters: { node: process.version },
        resolvedDependencies: [
          { name: 'source', digest: { gitCommit: head } },
          { name: 'package-lock.json', digest: { sha256: expect.any(String) } },
        ],
      },
    },
  });
});

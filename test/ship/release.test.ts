import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
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
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const VERSION = '7.8.9';

/** Stand-ins for the long steps of a release: this file is about what `scripts/release.mjs` does around them. */
const STEPS = {
  'scripts/setup.mjs': '',
  'scripts/image.mjs':
    "import { mkdirSync, writeFileSync } from 'node:fs';\nmkdirSync('release/layout', { recursive: true });\nwriteFileSync('release/image.oci.tar', process.argv.slice(2).join(' '));\n",
  'scripts/bundle.mjs':
    "import { writeFileSync } from 'node:fs';\nwriteFileSync('release/node.tar.gz', 'the bundle');\n",
};

let checkout: string;
let scratch: string;

function write(path: string, text: string): void {
  const file = join(checkout, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

function git(...args: readonly string[]): string {
  const who = ['-c', 'user.name=A', '-c', 'user.email=a@example.com'];
  return execFileSync('git', [...who, ...args], { cwd: checkout, encoding: 'utf8' }).trim();
}

function commit(): string {
  git('add', '--all');
  git('commit', '--quiet', '--message', 'state');
  return git('rev-parse', 'HEAD');
}

beforeEach(() => {
  checkout = mkdtempSync(join(tmpdir(), 'junction-release-'));
  scratch = mkdtempSync(join(tmpdir(), 'junction-release-tmp-'));
  for (const path of ['scripts/release.mjs', 'scripts/ship', 'scripts/support'])
    cpSync(join(ROOT, path), join(checkout, path), { recursive: true });
  for (const [path, text] of Object.entries(STEPS)) write(path, text);
  write('package.json', JSON.stringify({ version: VERSION, scripts: { test: 'true' } }));
  write('package-lock.json', JSON.stringify({ version: VERSION }));
  write('src/version.ts', `export const VERSION = '${VERSION}';\n`);
  write('deploy/chart/junction/Chart.yaml', `name: junction\nversion: ${VERSION}\n`);
  write('.ci/run', 'exec npm test\n');
  for (const name of ['manifests', 'migration', 'monitoring']) write(`deploy/${name}/a.yaml`, 'a: 1\n');
  write(
    'CHANGELOG.md',
    `# Changelog\n\n## [Unreleased]\n\n## [${VERSION}] - 2026-01-02\n\n### Added\n\n- Speed.\n\n## [7.8.8] - 2026-01-01\n\n- Old.\n`,
  );
  write('.gitignore', 'release/\n');
  git('init', '--quiet');
  commit();
});

afterEach(() => {
  for (const folder of [checkout, scratch]) rmSync(folder, { recursive: true, force: true });
});

interface Ended {
  readonly code: number | null;
  readonly output: string;
}

function start(args: readonly string[], wrap: readonly string[] = []) {
  const [command = '', ...rest] = [...wrap, process.execPath, 'scripts/release.mjs', ...args];
  const child = spawn(command, rest, {
    cwd: checkout,
    env: { ...process.env, TMPDIR: scratch, NO_COLOR: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, output }));
  });
  return { child, ended, output: () => output };
}

const run = (...args: readonly string[]) => start(args).ended;

function leftovers(): string[] {
  const release = join(checkout, 'release');
  return [...readdirSync(scratch), ...(existsSync(release) ? readdirSync(release) : [])].filter(
    // Node's own, on some versions.
    (name) => name !== 'node-compile-cache',
  );
}

describe('a release is refused, and leaves nothing behind', () => {
  const expectRefused = async (message: string | RegExp, ...args: readonly string[]) => {
    const { code, output } = await run(...args);
    expect(output).toMatch(message);
    expect(output).not.toContain('    at ');
    expect(code).toBe(1);
    expect(leftovers()).toEqual([]);
  };

  test('from a tree with changes', async () => {
    write('left-over.txt', 'x');
    await expectRefused(/changes that no commit has:\n {2}\?\? left-over\.txt\n.*git stash/, '--dry-run');
  });

  test('of a version that exists', async () => {
    git('tag', `v${VERSION}`);
    await expectRefused(/Version 7\.8\.9 exists: v7\.8\.9 is [0-9a-f]{12}\. Raise the version/, '--dry-run');
  });

  test('that CHANGELOG.md does not describe', async () => {
    write('CHANGELOG.md', '# Changelog\n\n## [Unreleased]\n\n- Speed.\n');
    commit();
    await expectRefused(/CHANGELOG\.md has no section for 7\.8\.9/, '--dry-run');
    write(
      'CHANGELOG.md',
      `# Changelog\n\n## [${VERSION}] - 2026-01-02\n\n## [7.8.8] - 2026-01-01\n\n- Old.\n`,
    );
    commit();
    await expectRefused(/CHANGELOG\.md says nothing of 7\.8\.9/, '--dry-run');
  });

  test('whose files differ in the version', async () => {
    write('src/version.ts', "export const VERSION = '7.8.8';\n");
    commit();
    await expectRefused('package.json has version 7.8.9, and src/version.ts has 7.8.8', '--dry-run');
  });

  test('outside of a checkout', async () => {
    rmSync(join(checkout, '.git'), { recursive: true });
    await expectRefused('this is no git checkout', '--dry-run');
  });

  test('with a flag that does not exist, or untested', async () => {
    await expectRefused(/'--dry-ran'[^]*Usage:/, '--dry-ran');
    await expectRefused('--skip-tests works with --dry-run only', '--skip-tests');
  });

  test('where the disk has no room', async () => {
    const mount = ['unshare', '--mount', '--user', '--map-root-user', 'sh', '-c'];
    const script = `mount -t tmpfs -o size=8m tmpfs ${scratch} && exec "$@"`;
    const { code, output } = await start(['--dry-run'], [...mount, script, 'sh']).ended;
    expect(output).toMatch(/has 0\.0 GiB free, and a release needs 4\.0 GiB there/);
    expect(code).toBe(1);
    expect(leftovers()).toEqual([]);
  });

  test('when a step fails, or the tests do', async () => {
    write('scripts/bundle.mjs', "console.log('no compiler'); process.exit(3);\n");
    commit();
    await expectRefused(
      /scripts\/bundle\.mjs --arch all failed with exit code 3\n\nno compiler/,
      '--dry-run',
    );
    write('scripts/bundle.mjs', STEPS['scripts/bundle.mjs']);
    write('package.json', JSON.stringify({ version: VERSION, scripts: { test: 'false' } }));
    commit();
    await expectRefused('The tests fail: nothing is released.', '--dry-run');
  });

  test('when it is ended halfway', async () => {
    write('scripts/bundle.mjs', 'setInterval(() => undefined, 1000);\n');
    commit();
    const { child, ended, output } = start(['--dry-run']);
    await expect.poll(output, { timeout: 60_000 }).toContain('Building the bundles');
    expect(leftovers()).not.toEqual([]);
    child.kill('SIGTERM');
    expect((await ended).code).toBe(143);
    expect(leftovers()).toEqual([]);
  });
});

describe('what a release has', () => {
  const file = (name: string) => readFileSync(join(checkout, 'release', VERSION, name));

  test('files, checksums, provenance and notes; and no tag after a dry run', async () => {
    const head = git('rev-parse', 'HEAD');
    const { code, output } = await run('--dry-run');
    expect(output).toContain('no tag was made, and nothing was pushed');
    expect(code).toBe(0);
    expect(readdirSync(join(checkout, 'release', VERSION))).toEqual([
      'NOTES.md',
      'SHA256SUMS',
      'image.oci.tar',
      `junction-chart-${VERSION}.tgz`,
      `junction-manifests-${VERSION}.tar.gz`,
      'node.tar.gz',
      'provenance.json',
    ]);
    expect(file('image.oci.tar').toString()).toBe('--arch all --locked');
    expect(file('NOTES.md').toString()).toBe(`# Junction ${VERSION}\n\n### Added\n\n- Speed.\n`);
    const folder = join(checkout, 'release', VERSION);
    execFileSync('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: folder, stdio: 'pipe' });
    expect(file('SHA256SUMS').toString().trim().split('\n')).toHaveLength(6);

    const provenance: unknown = JSON.parse(file('provenance.json').toString());
    const digest = createHash('sha256')
      .update(readFileSync(join(checkout, 'package-lock.json')))
      .digest('hex');
    expect(provenance).toMatchObject({
      subject: expect.arrayContaining([expect.objectContaining({ name: 'node.tar.gz' })]),
      predicate: {
        buildDefinition: {
          externalParameters: { version: VERSION },
          internalParameters: {
            node: process.version,
            tools: { git: expect.stringMatching(/^git version/) },
          },
          resolvedDependencies: [
            { name: 'source', digest: { gitCommit: head } },
            { name: 'package-lock.json', digest: { sha256: digest } },
          ],
        },
      },
    });
    expect(git('tag')).toBe('');

    const chart = file(`junction-chart-${VERSION}.tgz`);
    expect((await run('--dry-run')).output).toMatch(/release\/7\.8\.9 exists.*rm -r/);
    rmSync(folder, { recursive: true });
    expect((await run('--dry-run', '--skip-tests')).output).toContain('The tests were not run');
    expect(file(`junction-chart-${VERSION}.tgz`).equals(chart)).toBe(true);
  });

  test('a tag, and the commands that publish it, without --dry-run', async () => {
    git('config', 'user.name', 'A');
    git('config', 'user.email', 'a@example.com');
    const { code, output } = await run();
    expect(output).toContain(`git push origin v${VERSION}`);
    expect(code).toBe(0);
    expect(git('rev-list', '-n', '1', `v${VERSION}`)).toBe(git('rev-parse', 'HEAD'));
  });
});

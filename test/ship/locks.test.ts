/** What ships comes from a lock that is whole, and what is installed is what the locks name. */
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Packages, ROOT, script } from './scripts.ts';

function read(path: string): unknown {
  return JSON.parse(readFileSync(join(ROOT, path), 'utf8'));
}

interface Manifest {
  readonly version: string;
  readonly dependencies: Readonly<Record<string, string>>;
}
interface Lock {
  readonly version: string;
  readonly packages: Packages;
}

describe('the lock of what ships', () => {
  const manifest = read('deploy/runtime/package.json') as Manifest;
  const lock = read('deploy/runtime/package-lock.json') as Lock;
  const root = read('package-lock.json') as Lock;

  test('has the packages, versions and integrity values that everything is tested with', () => {
    const { version, dependencies } = read('package.json') as Manifest;
    expect(manifest).toMatchObject({ version, dependencies });
    expect(lock.version).toBe(version);
    for (const [path, { version: locked, integrity }] of Object.entries(lock.packages)) {
      if (path !== '')
        expect({ path, ...root.packages[path] }).toMatchObject({ path, version: locked, integrity });
    }
  });

  test("has every platform's koffi, each with its integrity value, and no registry's address", () => {
    const koffi = lock.packages['node_modules/koffi'];
    const builds = Object.entries(koffi?.optionalDependencies ?? {});
    expect(builds.length).toBeGreaterThan(10);
    for (const [name, version] of builds)
      expect(lock.packages[`node_modules/${name}`]).toMatchObject({ version, optional: true });
    const without = Object.entries(lock.packages).filter(
      ([path, { integrity = '' }]) => path !== '' && !/^sha512-[\w+/]{86}==$/.test(integrity),
    );
    expect(without).toEqual([]);
    expect(JSON.stringify(lock)).not.toContain('"resolved"');
  });

  test.each([
    ['x64', 62],
    ['arm64', 183],
  ])('is installed by npm ci for %s, from wherever', async (arch, machine) => {
    const { runtimePackages } = await script('ship/runtime');
    const folder = await runtimePackages(arch);
    const native = `node_modules/@koromix/koffi-linux-${arch}/linux_${arch}/koffi.node`;
    // e_machine of the ELF header
    expect(readFileSync(join(folder, native)).readUInt16LE(18)).toBe(machine);
  });
});

describe('the lock of Node', () => {
  test('has every supported line for both architectures; 24 ships', async () => {
    const { nodeLock } = await script('ship/node');
    const { ships, lines } = nodeLock();
    expect([ships, ...Object.keys(lines)]).toEqual(['24', '20', '22', '24', '26']);
    for (const [line, { version, integrity }] of Object.entries(lines)) {
      expect(version.split('.')[0]).toBe(line);
      expect(Object.keys(integrity)).toEqual(['x64', 'arm64']);
      for (const value of Object.values(integrity)) expect(value).toMatch(/^sha512-[\w+/]{86}==$/);
    }
  });
});

describe('installed packages against the lock', () => {
  const MACHINE = { os: 'linux', cpu: 'x64', libc: 'glibc' };
  const LOCK: Packages = {
    '': {},
    'node_modules/a': { version: '1.0.0', integrity: 'sha512-a', optionalDependencies: { 'a-arm': '1.0.0' } },
    'node_modules/b': {
      version: '2.0.0',
      integrity: 'sha512-b',
      optional: true,
      os: ['linux'],
      cpu: ['x64'],
    },
    'node_modules/c': { version: '3.0.0', integrity: 'sha512-c', optional: true, os: ['darwin'] },
    'node_modules/m': { version: '3.0.0', integrity: 'sha512-m', optional: true, libc: ['musl'] },
    'node_modules/a/node_modules/b': { version: '2.5.0', integrity: 'sha512-n' },
  };
  const { 'node_modules/c': _c, 'node_modules/m': _m, '': _root, ...INSTALLED } = LOCK;
  let folder = '';

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'junction-lock-'));
    for (const [path, { version }] of Object.entries(INSTALLED)) {
      mkdirSync(join(folder, path), { recursive: true });
      writeFileSync(join(folder, path, 'package.json'), JSON.stringify({ version }));
    }
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  async function problems(installed: Packages, lock = LOCK): Promise<readonly string[]> {
    const { compare } = await script('support/lockCheck');
    return compare(lock, installed, folder, MACHINE).problems.map(
      ({ name, expected, found }) => `${name}: ${expected}, found ${found}`,
    );
  }

  test('the same, apart from builds for other systems', async () => {
    expect(await problems(INSTALLED)).toEqual([]);
  });

  test('another version, another archive, nothing at all, a build of this system left out', async () => {
    const { 'node_modules/b': _b, ...without } = INSTALLED;
    const changed = {
      ...without,
      'node_modules/a': { version: '1.0.1', integrity: 'sha512-x' },
      'node_modules/a/node_modules/b': { version: '2.5.0', integrity: 'sha512-x' },
    };
    expect(await problems(changed)).toEqual([
      'a: 1.0.0 sha512-a, found 1.0.1 sha512-x',
      'b: 2.0.0 sha512-b, found nothing',
      'b: 2.5.0 sha512-n, found 2.5.0 sha512-x',
    ]);
  });

  test('a folder that was replaced after npm', async () => {
    writeFileSync(join(folder, 'node_modules/a/package.json'), '{"version": "9.9.9"}');
    rmSync(join(folder, 'node_modules/b'), { recursive: true });
    expect(await problems(INSTALLED)).toEqual([
      'a: 1.0.0, found 9.9.9 in node_modules/a',
      'b: 2.0.0, found nothing in node_modules/b',
    ]);
  });

  test('an entry of the lock without an integrity value', async () => {
    const lock = { ...LOCK, 'node_modules/a': { version: '1.0.0' } };
    expect(await problems(INSTALLED, lock)).toEqual([
      'a: an integrity value in package-lock.json, found none',
    ]);
  });

  test('a package that is not in the lock; a build for a system that the lock lacks may be', async () => {
    const more = {
      ...INSTALLED,
      'node_modules/a-arm': { version: '1.0.0', integrity: 'sha512-y' },
      'node_modules/z': { version: '1.0.0', integrity: 'sha512-z' },
    };
    expect(await problems(more)).toEqual(['z: no such package, found 1.0.0 sha512-z']);
    const { compare } = await script('support/lockCheck');
    expect(compare(LOCK, more, folder, MACHINE).unknown).toEqual(['a-arm 1.0.0', 'z 1.0.0']);
  });
});

/** The real set-up with the real npm, in a checkout with few packages. */
describe('set-up', () => {
  let checkout = '';
  const write = (path: string, value: object): void =>
    writeFileSync(join(checkout, path), JSON.stringify(value));

  beforeEach(() => {
    checkout = mkdtempSync(join(tmpdir(), 'junction-setup-'));
    cpSync(join(ROOT, 'scripts'), join(checkout, 'scripts'), { recursive: true });
    cpSync(join(ROOT, '.npmrc'), join(checkout, '.npmrc'));
    writeFileSync(join(checkout, 'scripts/build.mjs'), "console.log('built');");
  });
  afterEach(() => rmSync(checkout, { recursive: true, force: true }));

  const YAML = (read('package-lock.json') as Lock).packages['node_modules/yaml'] ?? {};
  const FALSE = `sha512-${'A'.repeat(86)}==`;

  function describePackages(wanted: string, locked: Packages[string]): void {
    const kind = locked.optional === true ? 'optionalDependencies' : 'dependencies';
    const root = { name: 'junction', version: '1.0.0', [kind]: { yaml: wanted } };
    write('package.json', { ...root, private: true });
    const packages = { '': { ...root, [kind]: { yaml: locked.version } }, 'node_modules/yaml': locked };
    write('package-lock.json', { name: 'junction', version: '1.0.0', lockfileVersion: 3, packages });
  }

  function setUp(): Promise<{ readonly code: number; readonly text: string }> {
    const code = "(await import('./scripts/setup.mjs')).setUpOrExit({ programs: 'none' })";
    const args = ['--input-type=module', '--eval', code];
    return new Promise((resolve) => {
      execFile(process.execPath, args, { cwd: checkout }, (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : Number(error.code), text: stdout + stderr });
      });
    });
  }

  test('goes on with what the lock names', async () => {
    describePackages(YAML.version ?? '', YAML);
    expect(await setUp()).toMatchObject({ code: 0 });
  });

  test('ends where an archive is not the one that the lock names', async () => {
    describePackages(YAML.version ?? '', { ...YAML, integrity: FALSE });
    const { code, text } = await setUp();
    expect(code).toBe(1);
    expect(text).toContain(`  yaml ${YAML.version}\n    expected ${FALSE}\n    found    ${YAML.integrity}\n`);
    expect(text).toContain('rm -rf node_modules && npm cache clean --force && node scripts/setup.mjs');
    expect(text).not.toContain('    at ');
  });

  test('ends where an optional archive is not: npm goes on without it, or with the one that is there', async () => {
    const optional = { ...YAML, optional: true };
    describePackages(YAML.version ?? '', { ...optional, integrity: FALSE });
    const message = `  yaml\n    expected ${YAML.version} ${FALSE}\n    found    `;
    const first = await setUp();
    expect([first.code, first.text]).toEqual([1, expect.stringContaining(`${message}nothing\n`)]);
    rmSync(join(checkout, 'node_modules'), { recursive: true });
    describePackages(YAML.version ?? '', optional);
    expect(await setUp()).toMatchObject({ code: 0 });
    describePackages(YAML.version ?? '', { ...optional, integrity: FALSE });
    const second = await setUp();
    const kept = `${message}${YAML.version} ${YAML.integrity}\n`;
    expect([second.code, second.text]).toEqual([1, expect.stringContaining(kept)]);
  });

  test('ends where package.json has moved on and npm resolved something else', async () => {
    describePackages('2.8.0', YAML);
    const { code, text } = await setUp();
    expect(code).toBe(1);
    expect(text).toContain(
      `What npm installed is not what package-lock.json names.\n\n  yaml\n    expected ${YAML.version} ${YAML.integrity}\n    found    2.8.0 sha512-`,
    );
    expect(text).toContain('git checkout package.json package-lock.json');
    // It is not forgotten either.
    expect((await setUp()).code).toBe(1);
  });
});

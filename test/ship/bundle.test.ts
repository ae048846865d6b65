/** What `npm run bundle:node` builds, without installing it: bytes, files, launchers, bad input. */
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { COMMANDS } from '../../src/cli/commands.ts';
import { VERSION } from '../../src/version.ts';
import { ROOT } from '../support/checkout.ts';
import { buildBundle } from './systemd/bundle.ts';

const NAME = `junction-${VERSION}-linux-x64`;
const folder = mkdtempSync(join(tmpdir(), 'junction-bundle-'));
/** A space: it must not matter where the archive is unpacked. */
const unpacked = join(folder, 'un packed');
const inside = (path: string): string => join(unpacked, NAME, path);
const textOf = (path: string): string => readFileSync(inside(path), 'utf8');
let files: { readonly archive: string; readonly debian: string };

beforeAll(async () => {
  files = await buildBundle(join(folder, 'first'));
  mkdirSync(unpacked);
  execFileSync('tar', ['-xzf', files.archive, '-C', unpacked]);
  // No Node is to be found there.
  mkdirSync(join(folder, 'tools'));
  for (const name of ['sh', 'readlink']) symlinkSync(`/usr/bin/${name}`, join(folder, 'tools', name));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function run(
  program: string,
  ...args: readonly string[]
): { readonly code: number | null; readonly output: string } {
  const { status, stdout, stderr } = spawnSync(program, args, {
    cwd: '/',
    env: { PATH: join(folder, 'tools') },
    encoding: 'utf8',
  });
  return { code: status, output: stdout + stderr };
}

test('two builds have the same bytes', async () => {
  const sha256 = (path: string): string => createHash('sha256').update(readFileSync(path)).digest('hex');
  const again = await buildBundle(join(folder, 'second'));
  expect(Object.values(again).map(sha256)).toEqual(Object.values(files).map(sha256));
  const names = [`${NAME}.tar.gz`, `junction_${VERSION}_amd64.deb`];
  expect(readdirSync(join(folder, 'second')).sort()).toEqual(names);
  rmSync(join(folder, 'second'), { recursive: true });
});

test('the archive runs from any folder, through links, without a Node of the machine', () => {
  const [first, second] = [join(folder, 'junction'), join(folder, 'link')];
  symlinkSync(inside('bin/junction'), first);
  symlinkSync('junction', second);
  for (const program of [inside('bin/junction'), first, second])
    expect(run(program, '--version')).toEqual({ code: 0, output: `Junction v${VERSION}\n` });
  expect(run(inside('bin/kubectl-junction'), '--help').output).toContain('Usage: kubectl junction');
});

test('it has the words of its shells, the licences, a unit and a configuration for /opt, and nothing of the development', () => {
  expect(textOf('share/zsh/vendor-completions/_junction')).toMatch(/^#compdef junction\n/);
  expect(textOf('share/bash-completion/completions/junction')).toContain(
    COMMANDS.map(({ name }) => name).join(' '),
  );
  expect(textOf('share/fish/vendor_completions.d/junction.fish')).toContain('complete -c junction');
  const licences = ['LICENSE', 'LICENSE.node', 'THIRD-PARTY-LICENSES'];
  expect(readdirSync(inside('share/doc/junction')).sort()).toEqual(licences);
  expect(textOf('lib/systemd/system/junction.service')).toContain('ExecStart=/opt/junction/bin/junction run');
  const config = `--config=${inside('etc/junction/config.conf')}`;
  const written = join(folder, 'written.conf');
  expect(run(inside('bin/junction'), 'run', config, `--write-config-to=${written}`).output).not.toMatch(
    /unknown|wrong/i,
  );
  expect(readFileSync(written, 'utf8')).toContain('kubeconfig: /etc/junction/kubeconfig');
  const paths = readdirSync(join(unpacked, NAME), { recursive: true, encoding: 'utf8' });
  expect(paths.filter((path) => /node_modules|bench|demo|\.ts$|\.map$/.test(path))).toEqual([]);
});

test('the Debian package depends on the libraries that Node and koffi ask for; its configuration is the operator’s', () => {
  const text = ['bin/node', 'koffi.node'].map((name) =>
    readFileSync(inside(`lib/junction/${name}`), 'latin1'),
  );
  const newest = (name: string): number =>
    Math.max(
      ...[...text.join().matchAll(new RegExp(`\\b${name}\\.(\\d+)\\b`, 'g'))].map(([, minor]) =>
        Number(minor),
      ),
    );
  const dpkg = (...args: readonly string[]): string =>
    execFileSync('dpkg-deb', args, { encoding: 'utf8' }).trim();
  const depends = dpkg('--field', files.debian, 'Depends');
  expect(depends).toContain(`libc6 (>= 2.${newest('GLIBC_2')})`);
  // What GCC 7 has, by its list of versions of the library.
  expect(depends).toContain('libstdc++6 (>= 7)');
  expect(newest(String.raw`GLIBCXX_3\.4`)).toBeLessThanOrEqual(24);
  expect(newest(String.raw`CXXABI_1\.3`)).toBeLessThanOrEqual(11);
  expect(dpkg('--field', files.debian, 'Version', 'Architecture')).toBe(
    `Version: ${VERSION}\nArchitecture: amd64`,
  );
  expect(dpkg('--info', files.debian, 'conffiles')).toBe('/etc/default/junction\n/etc/junction/config.conf');
  const odd = dpkg('--contents', files.debian)
    .split('\n')
    .filter((line) => !/^[-d](?:rwxr-xr-x|rw-r--r--) root\/root /.test(line));
  expect(odd).toEqual([]);
});

test.each([
  [['--arch', 'mips'], '--arch "mips" must be one of amd64, arm64, all'],
  [['x64'], "Unexpected argument 'x64'"],
])('%j is refused', (args, message) => {
  const script = join(ROOT, 'scripts/bundle.mjs');
  const { status, stderr } = spawnSync(process.execPath, [script, ...args], { encoding: 'utf8' });
  expect([status, stderr]).toEqual([1, expect.stringContaining(message)]);
  expect(stderr).not.toContain('    at ');
});

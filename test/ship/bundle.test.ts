/** What `npm run bundle:node` builds, without installing it: bytes, files, launchers, bad input. */
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { COMMANDS } from '../../src/cli/commands.ts';
import { VERSION } from '../../src/version.ts';
import { ROOT } from './scripts.ts';
import { buildBundle } from './systemd/bundle.ts';

const NAME = `junction-${VERSION}-linux-x64`;
const folder = mkdtempSync(join(tmpdir(), 'junction-bundle-'));
/** A space: it must not matter where the archive is unpacked. */
const unpacked = join(folder, 'un packed');
const inside = (path: string): string => join(unpacked, NAME, path);
let files: { readonly archive: string; readonly debian: string };

beforeAll(async () => {
  files = await buildBundle(join(folder, 'first'));
  mkdirSync(unpacked);
  execFileSync('tar', ['-xzf', files.archive, '-C', unpacked]);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function sha256(path: string): string {
  return createHash('sha256').update(readFileSync(path)).digest('hex');
}

/** Where no Node is to be found, from another folder. */
function run(
  program: string,
  ...args: readonly string[]
): { readonly code: number | null; readonly output: string } {
  const tools = join(folder, 'tools');
  if (!existsSync(tools)) {
    mkdirSync(tools);
    for (const name of ['sh', 'readlink']) symlinkSync(`/usr/bin/${name}`, join(tools, name));
  }
  const { status, stdout, stderr } = spawnSync(program, args, {
    cwd: '/',
    env: { PATH: tools },
    encoding: 'utf8',
  });
  return { code: status, output: stdout + stderr };
}

test('two builds have the same bytes', async () => {
  const again = await buildBundle(join(folder, 'second'));
  expect([sha256(again.archive), sha256(again.debian)]).toEqual([
    sha256(files.archive),
    sha256(files.debian),
  ]);
  expect(readdirSync(join(folder, 'second')).sort()).toEqual([
    `${NAME}.tar.gz`,
    `junction_${VERSION}_amd64.deb`,
  ]);
  rmSync(join(folder, 'second'), { recursive: true });
});

describe('the archive', () => {
  test('runs from any folder, through links, without a Node of the machine', () => {
    const [first, second] = [join(folder, 'junction'), join(folder, 'link')];
    symlinkSync(inside('bin/junction'), first);
    symlinkSync('junction', second);
    for (const program of [inside('bin/junction'), first, second])
      expect(run(program, '--version')).toEqual({ code: 0, output: `Junction v${VERSION}\n` });
    expect(run(inside('bin/kubectl-junction'), '--help').output).toContain('Usage: kubectl junction');
    const plan = run(
      first,
      'plan',
      '--manifests',
      join(ROOT, 'examples'),
      '--hostname-override=node1',
      '--family=ipv4',
    );
    expect(plan.output).toContain('-A KUBE-SERVICES');
    expect(plan.code).toBe(0);
  });

  test('has the words of its shells, the licences, and nothing of the development', () => {
    expect(readFileSync(inside('share/zsh/vendor-completions/_junction'), 'utf8')).toMatch(
      /^#compdef junction\n/,
    );
    const bash = readFileSync(inside('share/bash-completion/completions/junction'), 'utf8');
    expect(bash).toContain(COMMANDS.map(({ name }) => name).join(' '));
    expect(readFileSync(inside('share/fish/vendor_completions.d/junction.fish'), 'utf8')).toContain(
      'complete -c junction',
    );
    expect(readdirSync(inside('share/doc/junction')).sort()).toEqual([
      'LICENSE',
      'LICENSE.node',
      'THIRD-PARTY-LICENSES',
    ]);
    const paths = readdirSync(join(unpacked, NAME), { recursive: true, encoding: 'utf8' });
    expect(paths.filter((path) => /node_modules|bench|demo|\.ts$|\.map$/.test(path))).toEqual([]);
  });

  test('has a unit for /opt, and a configuration that Junction takes', () => {
    const unit = readFileSync(inside('lib/systemd/system/junction.service'), 'utf8');
    expect(unit).toContain('ExecStart=/opt/junction/bin/junction run');
    expect(unit).not.toContain('/usr/bin/junction');
    const written = join(folder, 'written.conf');
    const config = `--config=${inside('etc/junction/config.conf')}`;
    expect(run(inside('bin/junction'), 'run', config, `--write-config-to=${written}`).output).not.toMatch(
      /unknown|wrong/i,
    );
    expect(readFileSync(written, 'utf8')).toContain('kubeconfig: /etc/junction/kubeconfig');
  });
});

describe('the Debian package', () => {
  const field = (name: string): string =>
    execFileSync('dpkg-deb', ['--field', files.debian, name], { encoding: 'utf8' }).trim();

  test('depends on the libraries that Node and koffi ask for', () => {
    const used = ['lib/junction/bin/node', 'lib/junction/koffi.node'].flatMap((path) => {
      const text = readFileSync(inside(path), 'latin1');
      return [...text.matchAll(/\b(GLIBC|GLIBCXX|CXXABI)_(\d+\.\d+(?:\.\d+)?)\b/g)].map(
        ([, name, version]) => ({
          name,
          minor: Number(version?.split('.').at(name === 'GLIBC' ? 1 : 2) ?? 0),
        }),
      );
    });
    const newest = (wanted: string): number =>
      Math.max(...used.filter(({ name }) => name === wanted).map(({ minor }) => minor));
    expect(field('Depends')).toContain(`libc6 (>= 2.${String(newest('GLIBC'))})`);
    // What GCC 7 has, by its list of versions of the library.
    expect(field('Depends')).toContain('libstdc++6 (>= 7)');
    expect(newest('GLIBCXX')).toBeLessThanOrEqual(24);
    expect(newest('CXXABI')).toBeLessThanOrEqual(11);
  });

  test('names the version and the architecture; its configuration is the operator’s', () => {
    expect([field('Version'), field('Architecture')]).toEqual([VERSION, 'amd64']);
    const conffiles = execFileSync('dpkg-deb', ['--info', files.debian, 'conffiles'], { encoding: 'utf8' });
    expect(conffiles).toBe('/etc/default/junction\n/etc/junction/config.conf\n');
    const listed = execFileSync('dpkg-deb', ['--contents', files.debian], { encoding: 'utf8' })
      .trim()
      .split('\n');
    expect(listed.filter((line) => !/^[-d](?:rwxr-xr-x|rw-r--r--) root\/root /.test(line))).toEqual([]);
  });
});

describe('npm run bundle:node', () => {
  const script = (...args: readonly string[]): { readonly code: number | null; readonly output: string } => {
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      [join(ROOT, 'scripts/bundle.mjs'), ...args],
      {
        encoding: 'utf8',
      },
    );
    return { code: status, output: stdout + stderr };
  };

  test.each([
    [['--arch', 'mips'], '--arch "mips" must be one of amd64, arm64, all'],
    [['--frob'], "Unknown option '--frob'"],
    [['x64'], "Unexpected argument 'x64'"],
  ])('refuses %s', (args, message) => {
    const { code, output } = script(...args);
    expect(code).toBe(1);
    expect(output).toContain(message);
    expect(output).not.toContain('    at ');
  });

  test('says what it takes', () => {
    expect(script('--help')).toMatchObject({ code: 0 });
    expect(script('--help').output).toContain('npm run bundle:node');
  });

  test('a tree with changes is refused, and nothing is written', () => {
    const checkout = join(folder, 'checkout');
    cpSync(join(ROOT, 'scripts'), join(checkout, 'scripts'), { recursive: true });
    cpSync(join(ROOT, 'package.json'), join(checkout, 'package.json'));
    execFileSync('git', ['init', '--quiet'], { cwd: checkout });
    const commit = [
      '-c',
      'user.name=A',
      '-c',
      'user.email=a@example.com',
      'commit',
      '--quiet',
      '--allow-empty',
      '-m',
      'A',
    ];
    execFileSync('git', commit, { cwd: checkout });
    const { status, stderr } = spawnSync(process.execPath, ['scripts/bundle.mjs'], {
      cwd: checkout,
      encoding: 'utf8',
    });
    expect(status).toBe(1);
    expect(stderr).toContain('The tree has changes that no commit has');
    expect(stderr).toContain('--allow-dirty');
    expect(existsSync(join(checkout, 'release'))).toBe(false);
  });
});

import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { requireLab } from '../lab/requireLab.ts';
import { BUILD_LIMIT_MS, builtImage, ROOT, SCRIPT } from './builtImage.ts';
import { copyCheckout, copyFetched, copyPackages } from './otherCheckout.ts';
import { RELEASE, requireDebian } from './requireDebian.ts';

let folder = '';
beforeAll(async () => void (await builtImage()), BUILD_LIMIT_MS);
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'junction-image-build-'));
  chmodSync(folder, 0o755);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

interface Ended {
  readonly code: number | null;
  readonly output: string;
}

function run(argv: readonly string[], options: { cwd?: string; env?: NodeJS.ProcessEnv } = {}): Ended {
  const [command = '', ...args] = argv;
  const { status, stdout, stderr } = spawnSync(command, args, {
    encoding: 'utf8',
    cwd: options.cwd ?? ROOT,
    env: { ...process.env, ...options.env },
  });
  return { code: status, output: stdout + stderr };
}

const node = process.execPath;

test(
  'two builds of one commit have one digest: elsewhere, by another Node, with another time zone and umask',
  async (context) => {
    await requireDebian(context);
    const first = await builtImage();
    const checkout = join(folder, 'elsewhere');
    copyCheckout(checkout);
    copyPackages(checkout);
    copyFetched(checkout);
    const cache = join(checkout, 'node_modules/.cache/junction-ship');
    const name = readdirSync(cache).find((each) => each.startsWith('node-24'));
    const otherNode = join(cache, name ?? '', 'bin/node');
    const script = 'umask 077 && exec "$@"';
    const output = join(folder, 'images');
    const command = [otherNode, 'scripts/image.mjs', '--allow-dirty', '--no-cache', '--output', output];
    const ended = run(['sh', '-c', script, 'sh', ...command], {
      cwd: checkout,
      env: {
        TZ: 'Pacific/Auckland',
        LC_ALL: 'C',
        JUNCTION_COMMIT: first.commit,
        SOURCE_DATE_EPOCH: first.epoch,
      },
    });
    expect(ended).toMatchObject({ code: 0 });
    const files = (parent: string): unknown =>
      ['.oci.tar', '.digest', '.packages', '.spdx.json'].map((suffix) => {
        const path = join(parent, `${basename(first.base)}${suffix}`);
        return [suffix, createHash('sha256').update(readFileSync(path)).digest('hex')];
      });
    expect(files(output)).toEqual(files(dirname(first.base)));
  },
  BUILD_LIMIT_MS,
);

describe('nonsense ends with a message', () => {
  test.each([
    [['--arch', 'x64'], '--arch "x64" must be one of amd64, arm64, all; x64 is called amd64 here'],
    [['--arch', 'sparc'], '--arch "sparc" must be one of amd64, arm64, all'],
    [['--mirror', 'deb.debian.org'], '--mirror "deb.debian.org" is no URL'],
    [['--output', ''], '--output needs the name of a folder'],
    [['--frobnicate'], "Unknown option '--frobnicate'"],
    [['amd64'], "Unexpected argument 'amd64'"],
  ])('%j', (args, message) => {
    const ended = run([node, SCRIPT, ...args]);
    expect(ended.code).toBe(1);
    expect(ended.output).toContain(message);
    expect(ended.output).not.toMatch(/^ {4}at /m);
  });

  test('a date that is none', () => {
    const ended = run([node, SCRIPT, '--allow-dirty'], { env: { SOURCE_DATE_EPOCH: 'yesterday' } });
    expect(ended.code).toBe(1);
    expect(ended.output).toContain('SOURCE_DATE_EPOCH is "yesterday": it must be seconds since 1970');
  });

  test('--help says what it takes and writes', () => {
    const { code, output } = run([node, SCRIPT, '--help']);
    expect(code).toBe(0);
    for (const word of ['--arch', '--output', '--update-packages', '.oci.tar', 'Examples:'])
      expect(output).toContain(word);
  });
});

describe('in a checkout', () => {
  beforeEach(() => copyCheckout(folder));

  function git(...args: readonly string[]): void {
    const who = ['-c', 'user.name=A', '-c', 'user.email=a@example.com'];
    execFileSync('git', [...who, ...args], { cwd: folder, stdio: 'pipe' });
  }

  function commit(): void {
    git('init', '--quiet');
    writeFileSync(join(folder, '.gitignore'), 'node_modules/\nrelease/\n');
    git('add', '--all');
    git('commit', '--quiet', '--message', 'state');
  }

  test('changes that no commit has: named, with the ways out', () => {
    commit();
    writeFileSync(join(folder, 'notes.txt'), 'x');
    const { code, output } = run([node, 'scripts/image.mjs'], { cwd: folder });
    expect(code).toBe(1);
    expect(output).toContain('The tree has changes that no commit has:\n  ?? notes.txt\n');
    expect(output).toContain('npm run image -- --allow-dirty');
    expect(existsSync(join(folder, 'release'))).toBe(false);
  });

  test('without the repository: told what to give', () => {
    const { code, output } = run([node, 'scripts/image.mjs'], {
      cwd: folder,
      env: { GIT_CEILING_DIRECTORIES: dirname(folder) },
    });
    expect(code).toBe(1);
    expect(output).toContain('JUNCTION_COMMIT=… SOURCE_DATE_EPOCH=… npm run image');
  });

  test('a missing mmdebstrap is named, with the command that brings it', (context) => {
    requireLab(context);
    commit();
    const hide = 'mount --bind /dev/null /usr/bin/mmdebstrap && exec "$@"';
    const nobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--inh-caps=-all', '--'];
    // The checkout is somebody else's, which git would not read.
    const safe = { GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: 'safe.directory', GIT_CONFIG_VALUE_0: '*' };
    const command = [...nobody, node, 'scripts/image.mjs'];
    const { code, output } = run(['unshare', '--mount', 'sh', '-c', hide, 'sh', ...command], {
      cwd: folder,
      env: { ...safe, HOME: folder },
    });
    expect(code).toBe(1);
    expect(output).toMatch(/Programs of these packages are missing:\n {2}mmdebstrap /);
    expect(output).toContain('sudo apt-get install -y mmdebstrap');
  });

  describe('a package that is not the locked one', () => {
    function build(change: (lock: string) => string, ...args: readonly string[]) {
      copyPackages(folder);
      const lock = join(folder, 'deploy/image/debian-amd64.lock');
      writeFileSync(lock, change(readFileSync(lock, 'utf8')));
      return run([node, 'scripts/image.mjs', '--arch', 'amd64', '--output', 'out', ...args], {
        cwd: folder,
        env: { JUNCTION_COMMIT: 'abc', SOURCE_DATE_EPOCH: '1700000000' },
      });
    }
    const GONE =
      /no longer has the packages of deploy\/image\/debian-amd64\.lock:\n {2}netbase: 6\.3 → 6\.\d+\n/;
    const older = (lock: string): string => lock.replace(/^netbase \S+/m, 'netbase 6.3');

    test('because Debian has replaced it: its next version is taken, with a warning', async (context) => {
      await requireDebian(context);
      const { code, output } = build(older);
      expect(output).toMatch(GONE);
      expect(output).toContain('This image has those, and is not the same as one with the locked packages.');
      expect(code).toBe(0);
      const packages = readdirSync(join(folder, 'out')).find((name) => name.endsWith('.packages')) ?? '';
      expect(readFileSync(join(folder, 'out', packages), 'utf8')).toMatch(/^netbase 6\.(?!3 )\d+ all /m);
    });

    test('with --locked: both versions, and the command that takes the new one', async (context) => {
      await requireDebian(context);
      const { code, output } = build(older, '--locked');
      expect(output).toMatch(GONE);
      expect(output).toContain('npm run image -- --update-packages');
      expect(code).toBe(1);
      expect(existsSync(join(folder, 'out'))).toBe(false);
    });

    test('although it has its version: refused', async (context) => {
      await requireDebian(context);
      const { code, output } = build((lock) =>
        lock.replace(/^(netbase \S+ all) \w+/m, `$1 ${'0'.repeat(64)}`),
      );
      expect(output).toMatch(
        /netbase 6\.\d+ of \S+ is not the package that is locked in deploy\/image\/\.\n {2}expected 0{64}\n/,
      );
      expect(code).toBe(1);
      expect(existsSync(join(folder, 'out'))).toBe(false);
    });
  });

  test('an archive that somebody has changed is refused', async (context) => {
    await requireDebian(context);
    copyPackages(folder);
    const signed = await (await fetch(RELEASE)).text();
    const server = createServer(({ url }, answer) => {
      answer.statusCode = RELEASE.endsWith(url ?? '') ? 200 : 404;
      answer.end(signed.replace('Codename: bookworm', 'Codename: bookworn'));
    }).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const mirror = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const child = spawn(node, ['scripts/image.mjs', '--mirror', mirror, '--arch', 'amd64'], {
      cwd: folder,
      env: { ...process.env, JUNCTION_COMMIT: 'abc', SOURCE_DATE_EPOCH: '1700000000' },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let output = '';
    child.stderr.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
    expect(await once(child, 'close')).toEqual([1, null]);
    expect(output).toContain(`${mirror} is not signed by Debian's keys, and nothing is taken from it.`);
  });

  test('an archive that cannot be reached is named', () => {
    copyPackages(folder);
    const { code, output } = run(
      [node, 'scripts/image.mjs', '--mirror', 'http://127.0.0.1:1', '--arch', 'amd64'],
      {
        cwd: folder,
        env: { JUNCTION_COMMIT: 'abc', SOURCE_DATE_EPOCH: '1700000000' },
      },
    );
    expect(code).toBe(1);
    expect(output).toContain("Debian's archive at http://127.0.0.1:1 cannot be read.");
    expect(existsSync(join(folder, 'release'))).toBe(false);
  });
});

describe('nothing is left half-written', () => {
  test('on a full disk', (context) => {
    requireLab(context);
    const script = `mount -t tmpfs -o size=8m tmpfs "$0" && mkdir "$0/tmp" && export TMPDIR="$0/tmp"
      "$@" 2>&1; echo "exit code $?"; find "$0" -mindepth 1`;
    const command = [node, SCRIPT, '--allow-dirty', '--output', join(folder, 'images')];
    const { output } = run(['unshare', '--mount', 'sh', '-c', script, folder, ...command]);
    expect(output).toMatch(/The disk is full: .*Nothing was left behind; make room and run it again\.\n/);
    expect(output.endsWith(`exit code 1\n${folder}/tmp\n`)).toBe(true);
  });

  test('after Ctrl-C', async () => {
    const output = join(folder, 'images');
    const temporary = join(folder, 'tmp');
    mkdirSync(temporary);
    const child = spawn(node, [SCRIPT, '--allow-dirty', '--output', output], {
      cwd: ROOT,
      env: { ...process.env, TMPDIR: temporary },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const ended = once(child, 'exit');
    for await (const chunk of child.stdout) if (String(chunk).includes('Building the program')) break;
    expect(readdirSync(output)).toHaveLength(1);
    child.kill('SIGINT');
    expect(await ended).toEqual([130, null]);
    expect(existsSync(output) ? readdirSync(output) : []).toEqual([]);
    expect(readdirSync(temporary)).toEqual([]);
  });
});

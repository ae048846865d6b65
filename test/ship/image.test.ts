/** What `npm run image` builds, without running it: bytes, files, what it says of itself, bad input. */
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { unpackImage } from '../../lab/container/ociImage.ts';
import { requireLab } from '../lab/requireLab.ts';
import { ROOT } from '../support/checkout.ts';
import {
  BUILD_LIMIT_MS,
  type BuiltImage,
  builtImage,
  type Manifest,
  manifestOf,
  pathsOf,
  readBlob,
  SCRIPT,
} from './builtImage.ts';
import { copyCheckout, copyFetched, copyPackages } from './otherCheckout.ts';
import { RELEASE, requireDebian } from './requireDebian.ts';

const imageFolder = mkdtempSync(join(tmpdir(), 'junction-image-'));
let image: BuiltImage;
let manifest: Manifest;
let rootfs = '';
let folder = '';

beforeAll(() => {
  image = builtImage();
  manifest = manifestOf(image.base);
  ({ rootfs } = unpackImage(`${image.base}.oci`, imageFolder));
}, BUILD_LIMIT_MS);
afterAll(() => rmSync(imageFolder, { recursive: true, force: true }));
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'junction-image-build-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const at = (path: string): string => join(rootfs, path);
const packages = (): readonly string[] => readdirSync(at('var/lib/dpkg/status.d')).sort();

describe('what it says of itself', () => {
  test('the version, the commit and its date; the name that the chart asks for', () => {
    const created = new Date(Number(image.epoch) * 1000).toISOString().replace('.000Z', 'Z');
    expect(manifest.annotations).toMatchObject({
      'org.opencontainers.image.version': image.version,
      'org.opencontainers.image.revision': image.commit,
      'org.opencontainers.image.created': created,
    });
    expect(readBlob(image.base, manifest.config.digest)).toMatchObject({
      created,
      architecture: process.arch === 'x64' ? 'amd64' : 'arm64',
      config: { User: '0:0', Entrypoint: ['/usr/local/bin/junction'], Labels: manifest.annotations },
    });
    const read = (name: string): unknown => JSON.parse(readFileSync(join(`${image.base}.oci`, name), 'utf8'));
    const reference = `localhost/junction:${image.version}`;
    const annotations = {
      'io.containerd.image.name': reference,
      'org.opencontainers.image.ref.name': reference,
    };
    expect(read('index.json')).toMatchObject({ manifests: [{ annotations }] });
    expect(read('manifest.json')).toMatchObject([{ RepoTags: [reference] }]);
  });

  test('every package, in the documents beside it', () => {
    const lines = readFileSync(`${image.base}.packages`, 'utf8').trimEnd().split('\n');
    expect(lines.map((line) => line.split(' ')[0])).toEqual(packages());
    const sbom = JSON.parse(readFileSync(`${image.base}.spdx.json`, 'utf8')) as {
      readonly packages: readonly { readonly name: string; readonly SPDXID: string }[];
    };
    const own = ['koffi', 'undici', 'yaml', 'preact', `@koromix/koffi-linux-${process.arch}`];
    expect(sbom.packages.map(({ name }) => name)).toEqual(expect.arrayContaining([...packages(), ...own]));
    expect(new Set(sbom.packages.map(({ SPDXID }) => SPDXID)).size).toBe(sbom.packages.length);
  });
});

describe('what is in it', () => {
  test('less than 60 MB, compressed; no shell, package manager, other interpreter, or development', () => {
    expect(manifest.layers.reduce((total, { size }) => total + size, 0)).toBeLessThan(60e6);
    const unwanted =
      /(^|\/)(sh|bash|dash|busybox|env|cat|perl\S*|python\S*|apt\S*|dpkg(-\S+)?|npm|npx)$|bench|demo|node_modules|\.map$|^usr\/share\/(man|locale|info)\//;
    expect(pathsOf(rootfs).filter((path) => unwanted.test(path) && path !== 'var/lib/dpkg')).toEqual([]);
  });

  test('no file that others may write, and none that makes anybody more than they are', () => {
    const odd = pathsOf(rootfs).filter((path) => {
      const { mode, uid, gid } = lstatSync(at(path));
      const isLink = (mode & 0o170000) === 0o120000;
      return uid !== process.getuid?.() || gid !== process.getgid?.() || (!isLink && (mode & 0o6022) !== 0);
    });
    expect(odd).toEqual(['tmp']);
  });

  test('links that lead somewhere, and a copyright notice for every package', () => {
    const links = pathsOf(rootfs).filter((path) => lstatSync(at(path)).isSymbolicLink());
    const dangling = links.filter((path) => {
      const target = readlinkSync(at(path));
      return !existsSync(target.startsWith('/') ? at(target) : resolve(dirname(at(path)), target));
    });
    expect(dangling).toEqual([]);
    expect(packages().filter((name) => !existsSync(at(`usr/share/doc/${name}/copyright`)))).toEqual([]);
    for (const path of ['LICENSE', 'NODE-LICENSE', 'THIRD-PARTY-LICENSES'])
      expect(statSync(at(`opt/junction/${path}`)).size).toBeGreaterThan(1000);
  });

  test('programs by their names, which run without a shell, and every library that one asks for', (context) => {
    if (process.getuid?.() !== 0) context.skip('chroot is for root alone');
    const run = (...argv: readonly string[]): string =>
      spawnSync('chroot', [rootfs, ...argv], { encoding: 'utf8', env: { PATH: '/usr/sbin' } }).stdout;
    for (const name of ['junction', 'kube-proxy'])
      expect(run(`/usr/local/bin/${name}`, '--version')).toMatch(/^Junction v\d/);
    expect(run('/usr/local/bin/kubectl-junction', '--help')).toContain('kubectl junction status');
    expect(run('/usr/sbin/iptables', '--version')).toContain('(nf_tables)');
    expect(run('/usr/sbin/ip6tables-legacy-save', '--version')).toContain('(legacy)');
    const loader = pathsOf(rootfs).find((path) => /\/ld-linux[^/]*$/.test(path)) ?? '';
    const programs = pathsOf(rootfs).filter((path) => isElf(at(path)));
    expect(programs.length).toBeGreaterThan(50);
    const missing = programs.filter((path) => run(`/${loader}`, '--list', `/${path}`).includes('not found'));
    expect(missing).toEqual([]);
  });
});

function isElf(path: string): boolean {
  return lstatSync(path).isFile() && readFileSync(path).subarray(1, 4).toString('latin1') === 'ELF';
}

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
    const checkout = join(folder, 'elsewhere');
    copyCheckout(checkout);
    copyPackages(checkout);
    copyFetched(checkout);
    const cache = join(checkout, 'node_modules/.cache/junction-ship');
    const name = readdirSync(cache).find((each) => each.startsWith('node-24')) ?? '';
    const output = join(folder, 'images');
    const build = ['scripts/image.mjs', '--allow-dirty', '--no-cache', '--output', output];
    const command = ['sh', '-c', 'umask 077 && exec "$@"', 'sh', join(cache, name, 'bin/node'), ...build];
    const env = {
      TZ: 'Pacific/Auckland',
      LC_ALL: 'C',
      JUNCTION_COMMIT: image.commit,
      SOURCE_DATE_EPOCH: image.epoch,
    };
    expect(run(command, { cwd: checkout, env })).toMatchObject({ code: 0 });
    const files = (parent: string): unknown =>
      ['.oci.tar', '.digest', '.packages', '.spdx.json'].map((suffix) => {
        const path = join(parent, `${basename(image.base)}${suffix}`);
        return [suffix, createHash('sha256').update(readFileSync(path)).digest('hex')];
      });
    expect(files(output)).toEqual(files(dirname(image.base)));
  },
  BUILD_LIMIT_MS,
);

test.each([
  [['--arch', 'x64'], '--arch "x64" must be one of amd64, arm64, all; x64 is called amd64 here'],
  [['--mirror', 'deb.debian.org'], '--mirror "deb.debian.org" is no URL'],
  [['--frobnicate'], "Unknown option '--frobnicate'"],
])('%j ends with a message', (args, message) => {
  const ended = run([node, SCRIPT, ...args]);
  expect(ended).toMatchObject({ code: 1, output: expect.stringContaining(message) });
  expect(ended.output).not.toMatch(/^ {4}at /m);
});

describe('a package that is not the locked one', () => {
  function build(change: (lock: string) => string, ...args: readonly string[]): Ended {
    copyCheckout(folder);
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
    expect(build(older)).toEqual({ code: 0, output: expect.stringMatching(GONE) });
    const name = readdirSync(join(folder, 'out')).find((each) => each.endsWith('.packages')) ?? '';
    expect(readFileSync(join(folder, 'out', name), 'utf8')).toMatch(/^netbase 6\.(?!3 )\d+ all /m);
  });

  test('with --locked: both versions, and the command that takes the new one', async (context) => {
    await requireDebian(context);
    const { code, output } = build(older, '--locked');
    expect(output).toMatch(GONE);
    expect(output).toContain('npm run image -- --update-packages');
    expect([code, existsSync(join(folder, 'out'))]).toEqual([1, false]);
  });

  test('although it has its version: refused', async (context) => {
    await requireDebian(context);
    const zeros = '0'.repeat(64);
    const { code, output } = build((lock) => lock.replace(/^(netbase \S+ all) \w+/m, `$1 ${zeros}`));
    expect(output).toMatch(/netbase 6\.\d+ of \S+ is not the package that is locked in deploy\/image\/\./);
    expect([code, existsSync(join(folder, 'out'))]).toEqual([1, false]);
  });
});

test('an archive that somebody has changed is refused', async (context) => {
  await requireDebian(context);
  copyCheckout(folder);
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
    const [output, temporary] = [join(folder, 'images'), join(folder, 'tmp')];
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
    expect([existsSync(output) ? readdirSync(output) : [], readdirSync(temporary)]).toEqual([[], []]);
  });
});

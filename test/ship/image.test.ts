import { execFileSync } from 'node:child_process';
import { lstatSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { unpackImage } from '../../lab/container/ociImage.ts';
import {
  BUILD_LIMIT_MS,
  type BuiltImage,
  builtImage,
  type Manifest,
  manifestOf,
  readBlob,
  ROOT,
} from './builtImage.ts';
import { neededLibraries } from './elf.ts';
import { pathsOf } from './rootfs.ts';

let folder = '';
let image: BuiltImage;
let manifest: Manifest;
let rootfs = '';

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'junction-image-'));
  image = await builtImage();
  manifest = manifestOf(image.base);
  ({ rootfs } = unpackImage(`${image.base}.oci`, folder));
}, BUILD_LIMIT_MS);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const at = (path: string): string => join(rootfs, path);

describe('what it says of itself', () => {
  test('the version, the commit and its date', () => {
    const created = new Date(Number(image.epoch) * 1000).toISOString().replace('.000Z', 'Z');
    const config = readBlob(image.base, manifest.config.digest);
    expect(manifest.annotations).toMatchObject({
      'org.opencontainers.image.version': image.version,
      'org.opencontainers.image.revision': image.commit,
      'org.opencontainers.image.created': created,
    });
    expect(config).toMatchObject({
      created,
      architecture: process.arch === 'x64' ? 'amd64' : 'arm64',
      os: 'linux',
      config: {
        User: '0:0',
        Entrypoint: ['/usr/local/bin/junction'],
        Cmd: ['--help'],
        Labels: manifest.annotations,
      },
    });
  });

  test('the name that the chart asks for, to every program that loads images', () => {
    const read = (name: string): unknown => JSON.parse(readFileSync(join(`${image.base}.oci`, name), 'utf8'));
    const reference = `localhost/junction:${image.version}`;
    const digest = readFileSync(`${image.base}.digest`, 'utf8').trim();
    expect(read('index.json')).toMatchObject({
      manifests: [
        {
          digest,
          annotations: {
            'io.containerd.image.name': reference,
            'org.opencontainers.image.ref.name': reference,
          },
        },
      ],
    });
    expect(read('manifest.json')).toMatchObject([{ RepoTags: [reference] }]);
  });

  test('every package, in the document beside it', () => {
    const packages = readFileSync(`${image.base}.packages`, 'utf8').trimEnd().split('\n');
    const names = packages.map((line) => line.split(' ')[0] ?? '');
    expect(names).toEqual(readdirSync(at('var/lib/dpkg/status.d')).sort());
    const sbom = JSON.parse(readFileSync(`${image.base}.spdx.json`, 'utf8')) as Sbom;
    const listed = sbom.packages.map(({ name }) => name);
    expect(listed).toEqual(expect.arrayContaining([...names, 'koffi', 'undici', 'yaml', 'preact']));
    expect(listed.filter((name) => name.startsWith('@koromix/'))).toEqual([
      `@koromix/koffi-linux-${process.arch}`,
    ]);
    expect(new Set(sbom.packages.map(({ SPDXID }) => SPDXID)).size).toBe(listed.length);
    for (const { SPDXID } of sbom.packages) expect(SPDXID).toMatch(/^SPDXRef-[A-Za-z0-9.-]+$/);
    expect(sbom.relationships.map(({ relatedSpdxElement }) => relatedSpdxElement).sort()).toEqual(
      sbom.packages.map(({ SPDXID }) => SPDXID).sort(),
    );
  });
});

interface Sbom {
  readonly packages: readonly { readonly name: string; readonly SPDXID: string }[];
  readonly relationships: readonly { readonly relatedSpdxElement: string }[];
}

describe('what is in it', () => {
  test('less than 60 MB, compressed', () => {
    const sum = manifest.layers.reduce((total, { size }) => total + size, 0);
    expect(sum).toBeLessThan(60e6);
    expect(manifest.layers).toHaveLength(3);
  });

  test('no shell, no package manager, no interpreter but Node, nothing of the tests or benchmarks', () => {
    const names = pathsOf(rootfs);
    const unwanted =
      /(^|\/)(sh|bash|dash|busybox|env|cat|perl\S*|python\S*|apt\S*|dpkg(-\S+)?|npm|npx)$|bench|demo|node_modules|\.map$/;
    expect(names.filter((path) => unwanted.test(path) && path !== 'var/lib/dpkg')).toEqual([]);
    expect(names.filter((path) => /^usr\/share\/(man|locale|info)\//.test(path))).toEqual([]);
  });

  test('no file that others may write, and none that makes anybody more than they are', () => {
    const odd = pathsOf(rootfs).filter((path) => {
      const { mode, uid, gid } = lstatSync(at(path));
      const isLink = (mode & 0o170000) === 0o120000;
      return uid !== process.getuid?.() || gid !== process.getgid?.() || (!isLink && (mode & 0o6022) !== 0);
    });
    expect(odd).toEqual(['tmp']);
  });

  test('links that lead somewhere, and every library that a program asks for', () => {
    const links = pathsOf(rootfs).filter((path) => lstatSync(at(path)).isSymbolicLink());
    const dangling = links.filter((path) => {
      const target = readlinkSync(at(path));
      const inside = target.startsWith('/') ? at(target) : resolve(dirname(at(path)), target);
      return statSync(inside, { throwIfNoEntry: false }) === undefined;
    });
    expect(dangling).toEqual([]);
    const { programs, missing } = neededLibraries(rootfs);
    expect(missing).toEqual([]);
    expect(programs).toEqual(
      expect.arrayContaining([
        'opt/junction/bin/node',
        'opt/junction/koffi.node',
        'usr/sbin/xtables-nft-multi',
      ]),
    );
  });

  test('a copyright notice for every package', () => {
    const packages = readdirSync(at('var/lib/dpkg/status.d'));
    const without = packages.filter(
      (name) => statSync(at(`usr/share/doc/${name}/copyright`), { throwIfNoEntry: false }) === undefined,
    );
    expect(without).toEqual([]);
    for (const path of ['LICENSE', 'NODE-LICENSE', 'THIRD-PARTY-LICENSES'])
      expect(readFileSync(at(`opt/junction/${path}`), 'utf8').length).toBeGreaterThan(1000);
  });

  test('programs by their three names, which run without a shell', (context) => {
    if (process.getuid?.() !== 0) context.skip('chroot is for root alone');
    const run = (...argv: readonly string[]): string =>
      execFileSync('chroot', [rootfs, ...argv], { encoding: 'utf8', env: { PATH: '/usr/sbin' } });
    expect(run('/usr/local/bin/junction', '--version')).toMatch(/^Junction v\d/);
    expect(run('/usr/local/bin/kube-proxy', '--version')).toMatch(/^Junction v\d/);
    expect(run('/usr/local/bin/kubectl-junction', '--help')).toContain('kubectl junction status');
    expect(run('/usr/sbin/iptables', '--version')).toContain('(nf_tables)');
    expect(run('/usr/sbin/ip6tables-legacy-save', '--version')).toContain('(legacy)');
  });
});

test('the packages are the same for every architecture', () => {
  const lock = (arch: string): readonly string[] =>
    readFileSync(join(ROOT, `deploy/image/debian-${arch}.lock`), 'utf8')
      .split('\n')
      .map((line) => line.split(' ')[0] ?? '');
  expect(lock('arm64')).toEqual(lock('amd64'));
  expect(lock('amd64')).toEqual(expect.arrayContaining(['libc6', 'iptables', 'libstdc++6']));
});

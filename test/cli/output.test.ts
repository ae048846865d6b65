/** The program itself, at the end of pipes and files that do not take everything at once, or nothing at all. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { JUNCTION } from '../support/programs.ts';
import { useFiles } from './files.ts';
import { junction } from './junction.ts';

const file = useFiles();

const MANY = file(
  'many.yaml',
  Array.from(
    { length: 400 },
    (_, index) => `kind: Service
metadata: { name: s${index}, namespace: shop }
spec: { clusterIP: 10.96.${index >> 8}.${index & 255}, ports: [{ port: 80 }] }
`,
  ).join('---\n'),
);
const BROKEN = file(
  'broken.yaml',
  'kind: Service\nmetadata: {name: web}\nspec: {clusterIP: 10.0.0.1, ports: [{port: 0}]}\n',
);
const SHOP = file(
  'one.yaml',
  'kind: Service\nmetadata: {name: web}\nspec: {clusterIP: 10.0.0.1, ports: [{port: 80}]}\n',
);
const TORN = file('torn.yaml', 'kind: Service\n  metadata: [\n');

const PLAN = ['plan', '--manifests', MANY, '--output', 'json'];

async function ended(child: ChildProcess): Promise<readonly [code: unknown, err: string]> {
  let err = '';
  child.stderr?.on('data', (chunk: Buffer) => (err += chunk.toString()));
  return [await new Promise((resolve) => child.once('close', resolve)), err];
}

describe('what a command prints', () => {
  test('arrives whole at a reader who is slow', async () => {
    const child = spawn(process.execPath, [JUNCTION, ...PLAN]);
    const end = ended(child);
    let out = '';
    // A piece at a time, and none before the program had to wait.
    await new Promise((resolve) => child.stdout.once('readable', resolve));
    for await (const chunk of child.stdout) {
      out += String(chunk);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    expect(await end).toEqual([0, '']);
    expect(JSON.parse(out)).toMatchObject({ families: [{ servicePorts: { length: 400 } }, {}] });
  });

  test('to a reader who leaves: not 0, and nothing to say about it', async () => {
    const child = spawn(process.execPath, [JUNCTION, ...PLAN]);
    child.stdout.once('data', () => child.stdout.destroy());
    expect(await ended(child)).toEqual([1, '']);
  });

  test.each([[PLAN], [['plan', '--help']]])('to a full disk: %j', async (args) => {
    const full = openSync('/dev/full', 'w');
    onTestFinished(() => closeSync(full));
    const child = spawn(process.execPath, [JUNCTION, ...args], { stdio: ['ignore', full, 'pipe'] });
    const [code, err] = await ended(child);
    expect(code).toBe(1);
    expect(err).toMatch(/^junction: cannot write to standard output: .*ENOSPC/m);
  });
});

describe('a plan of what cannot be read', () => {
  const cases: readonly (readonly [string, readonly string[]])[] = [
    ['a path that is not there', ['/nowhere']],
    ['one of two', [SHOP, '/nowhere']],
    ['a file that is not YAML', [TORN]],
  ];
  test.each(cases)('%s: nothing', async (_, paths) => {
    for (const output of ['text', 'table', 'json']) {
      const manifests = paths.flatMap((path) => ['--manifests', path]);
      const { code, out, err } = await junction('plan', ...manifests, '--output', output);
      expect({ code, out }).toEqual({ code: 1, out: '' });
      expect(err).toMatch(/: error: [^]*above, so nothing is planned\n$/);
    }
  });

  test('an object that cannot be used: no rules, but a table of the others', async () => {
    const args = ['plan', '--manifests', SHOP, '--manifests', BROKEN];
    expect(await junction(...args)).toMatchObject({ code: 1, out: '' });
    const { code, out } = await junction(...args, '--output', 'table');
    expect(code).toBe(1);
    expect(out).toContain('10.0.0.1:80');
  });
});

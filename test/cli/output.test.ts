/** The program itself, at the end of pipes and files that do not take everything at once, or nothing at all. */
import { spawn } from 'node:child_process';
import { openSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { useFiles } from './files.ts';

const JUNCTION = fileURLToPath(new URL('../../bin/junction', import.meta.url));
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

interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

async function junction(args: readonly string[], reader: 'patient' | 'slow' | 'leaves'): Promise<Ended> {
  const child = spawn(process.execPath, [JUNCTION, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  let out = '';
  let err = '';
  child.stderr.on('data', (text: Buffer) => (err += text.toString()));
  if (reader === 'leaves') child.stdout.once('data', () => child.stdout.destroy());
  else {
    if (reader === 'slow') await sleep(1500);
    for await (const text of child.stdout) {
      out += String(text);
      if (reader === 'slow') await sleep(20);
    }
  }
  return { code: await ended, out, err };
}

describe('what a command prints', () => {
  const json = ['plan', '--manifests', MANY, '--output', 'json'];

  test.each(['patient', 'slow'] as const)('arrives whole at a reader who is %s', async (reader) => {
    const { code, out } = await junction(json, reader);
    expect(code).toBe(0);
    const { families } = JSON.parse(out) as { families: { servicePorts: unknown[] }[] };
    expect(families[0]?.servicePorts).toHaveLength(400);
  });

  test('to a reader who leaves: not 0, and nothing to say about it', async () => {
    const { code, err } = await junction(json, 'leaves');
    expect({ code, err }).toEqual({ code: 1, err: '' });
  });

  test.each([json, ['plan', '--manifests', SHOP], ['--help'], ['plan', '--help'], ['--version']])(
    'to a full disk: %j',
    async (...args) => {
      const full = openSync('/dev/full', 'w');
      const child = spawn(process.execPath, [JUNCTION, ...args], { stdio: ['ignore', full, 'pipe'] });
      let err = '';
      child.stderr?.on('data', (text: Buffer) => (err += text.toString()));
      const code = await new Promise((resolve) => child.once('close', resolve));
      expect(code).toBe(1);
      expect(err).toMatch(/^junction: cannot write to standard output: .*ENOSPC/m);
    },
  );
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
      const { code, out, err } = await junction(['plan', ...manifests, '--output', output], 'patient');
      expect({ code, out }).toEqual({ code: 1, out: '' });
      expect(err).toMatch(/: error: [^]*above, so nothing is planned\n$/);
    }
  });

  test('an object that cannot be used: no rules, but a table of the others', async () => {
    const args = ['plan', '--manifests', SHOP, '--manifests', BROKEN];
    expect(await junction(args, 'patient')).toMatchObject({ code: 1, out: '' });
    const { code, out } = await junction([...args, '--output', 'table'], 'patient');
    expect(code).toBe(1);
    expect(out).toContain('10.0.0.1:80');
  });
});

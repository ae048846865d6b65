/** The program that the build makes: where its log lines go, and what they say of where they come from. */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { useFiles } from './files.ts';

const ROOT = new URL('../..', import.meta.url).pathname;
const file = useFiles();

interface Run {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

function run(...flags: readonly string[]): Run {
  const target = file('written.yaml', '');
  const args = [join(ROOT, 'bin/junction'), 'run', `--write-config-to=${target}`, ...flags];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  return { code: status, out: stdout, err: stderr };
}

function sourceLine(path: string, text: string): number {
  return (
    readFileSync(join(ROOT, path), 'utf8')
      .split('\n')
      .findIndex((line) => line.includes(text)) + 1
  );
}

const WROTE = sourceLine('src/cli/runCommand.ts', "log.info('Wrote configuration'");

test('JSON lines name the line of the source, not that of the bundle', () => {
  const { err } = run('--logging-format=json');
  const lines = err
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(lines.at(-1)).toMatchObject({
    caller: `cli/runCommand.ts:${WROTE}`,
    msg: 'Wrote configuration',
    v: 0,
  });
});

test('text lines too', () => {
  expect(run().err).toContain(` runCommand.ts:${WROTE}] "Wrote configuration"`);
});

test('every call of the logger in the bundles leads to one in the source', () => {
  const names = readdirSync(join(ROOT, 'dist/junction')).filter((name) => name.endsWith('.js'));
  const calls = names.flatMap((name) => loggerCalls(join(ROOT, 'dist/junction', name)));
  expect(calls.length).toBeGreaterThan(50);
  const wrong = calls.filter(({ method, path, line }) => {
    // A package that is bundled has a `log` of its own.
    if (path.includes('/yaml/dist/')) return false;
    const text = path === '' ? '' : (readFileSync(join(ROOT, path), 'utf8').split('\n')[line - 1] ?? '');
    return !text.includes(method);
  });
  expect(wrong).toEqual([]);
});

function loggerCalls(bundle: string) {
  const calls = readFileSync(bundle, 'utf8')
    .split('\n')
    .flatMap((text, index) => {
      const [method] = /\blog\.(?:info|warn|error|verbose)\(/.exec(text) ?? [];
      return method === undefined ? [] : [{ method, index }];
    });
  if (calls.length === 0) return [];
  const table = JSON.parse(readFileSync(`${bundle}.lines.json`, 'utf8')) as {
    readonly sources: readonly string[];
    readonly lines: string;
  };
  const places = Buffer.from(table.lines, 'base64');
  return calls.map(({ method, index }) => {
    const place = places.readUInt32LE(index * 4);
    return { method, path: table.sources[place >>> 16] ?? '', line: place & 0xffff };
  });
}

test('the verbosity of one source file', () => {
  expect(run('--vmodule=runCommand=1').err).toContain('"FLAG: --vmodule=');
  expect(run('--vmodule=start=1').err).not.toContain('"FLAG: ');
});

const ALPHA = '--feature-gates=LoggingAlphaOptions=true';

test.each([
  ['text', '--log-text-info-buffer-size=1Mi'],
  ['json', '--log-flush-frequency=1h'],
])('split streams in the format %s: a warning of the text format is for standard error', (format, flag) => {
  const flags = [
    `--logging-format=${format}`,
    `--log-${format}-split-stream`,
    ALPHA,
    flag,
    '--healthz-port=1',
  ];
  const { code, out, err } = run(...flags);
  expect(code).toBe(0);
  expect(out).toContain('Wrote configuration');
  expect(err).not.toContain('Wrote configuration');
  expect([out.includes('deprecated'), err.includes('deprecated')]).toEqual([
    format === 'json',
    format === 'text',
  ]);
});

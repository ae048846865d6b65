/** `junction status`, and questions that are shown again: once, in a pipe, and on a terminal. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Status } from '../../src/explain/status.ts';
import { FULL_STATUS } from '../support/fullStatus.ts';
import { schemaProblems } from '../support/jsonSchema.ts';
import { junction } from './junction.ts';
import { StubApi } from './stubApi.ts';

const ROOT = new URL('../..', import.meta.url).pathname;
const SCHEMA = JSON.parse(readFileSync(join(ROOT, 'docs/reference/api.schema.json'), 'utf8')) as Record<
  string,
  unknown
>;
const stub = new StubApi();
const folder = mkdtempSync(join(tmpdir(), 'junction-status-'));
const children: ChildProcessByStdio<null, Readable, Readable>[] = [];

beforeAll(() => stub.start());
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});
afterAll(async () => {
  await stub.remove();
  rmSync(folder, { recursive: true });
});

const SOCKET = ['--api-socket', stub.socket];
const { families, ...rest } = FULL_STATUS;
const FINE: Status = { ...rest, families, findings: [], leftOut: [] };

describe('once', () => {
  test('everything that there is to say', async () => {
    stub.answer('/v1/status', FULL_STATUS);
    const { code, out, err } = await junction('status', ...SOCKET);
    expect(err).toBe('');
    expect(code).toBe(FULL_STATUS.findings.some(({ severity }) => severity === 'error') ? 1 : 0);
    const [first = ''] = out.split('\n');
    expect(first).toContain(`on ${FULL_STATUS.node}, ${FULL_STATUS.mode} mode`);
    for (const { family, refused, foreignChanges } of families) {
      expect(out).toContain(family);
      for (const { servicePort, error } of refused) expect(out).toContain(`${servicePort}: ${error}`);
      for (const program of Object.keys(foreignChanges.byProgram)) expect(out).toContain(program);
    }
    for (const { family, reason } of FULL_STATUS.leftOut)
      expect(out).toMatch(new RegExp(`${family} +not served for .*${reason}`));
    for (const { text } of FULL_STATUS.findings) expect(out).toContain(text);
  });

  test('JSON is what the proxy said', async () => {
    stub.answer('/v1/status', FULL_STATUS);
    const { out } = await junction('status', '--output=json', ...SOCKET);
    expect(JSON.parse(out)).toEqual(FULL_STATUS);
    expect(schemaProblems(SCHEMA, 'Status', FULL_STATUS)).toEqual([]);
  });

  test.each([
    ['error', 1],
    ['warning', 0],
  ] as const)('a finding that is an %s: %d', async (severity, expected) => {
    stub.answer('/v1/status', {
      ...FINE,
      findings: [{ code: 'x', severity, text: 'it is so', cure: 'do that' }],
    });
    const { code, out } = await junction('status', ...SOCKET);
    expect(code).toBe(expected);
    expect(out).toMatch(/it is so\n +what to do: do that\n$/);
  });

  test('nothing that a terminal would obey', async () => {
    stub.answer('/v1/status', { ...FINE, node: 'evil\u001b[2J\nnode', version: '\u202e' });
    const { out } = await junction('status', ...SOCKET);
    expect(out.split('\n')[0]).toContain(String.raw`on evil\u001b[2J\nnode`);
    expect(out).not.toMatch(/\p{Cf}/u);
  });
});

class Shown {
  readonly child: ChildProcessByStdio<null, Readable, Readable>;
  out = '';
  err = '';

  constructor(program: string, ...args: readonly string[]) {
    this.child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    children.push(this.child);
    this.child.stdout.on('data', (chunk: Buffer) => void (this.out += chunk.toString()));
    this.child.stderr.on('data', (chunk: Buffer) => void (this.err += chunk.toString()));
  }

  async until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      if (this.child.exitCode !== null) throw new Error(`it ended: ${this.out}${this.err}`);
      await sleep(20);
    }
  }
}

const PROGRAM = join(ROOT, 'bin/junction');
const rowOf = (service: string): object => ({
  service,
  type: 'ClusterIP',
  clusterIPs: ['10.96.0.1'],
  externalIPs: [],
  loadBalancerIPs: [],
  ports: ['80/TCP'],
  endpoints: { ready: 1, local: 0, all: 1 },
  externalTrafficPolicy: 'Cluster',
  internalTrafficPolicy: 'Cluster',
  state: 'ok',
});

describe('again and again', () => {
  const table = (...names: readonly string[]): void => stub.answer('/v1/services', names.map(rowOf));

  test('in a pipe: when it has changed', async () => {
    table('shop/api');
    const shown = new Shown(process.execPath, PROGRAM, 'services', '--watch', ...SOCKET);
    await shown.until(() => shown.out.includes('shop/api'));
    const { length } = stub.asked;
    await shown.until(() => stub.asked.length > length + 1);
    expect(shown.out.match(/shop\/api/g)).toHaveLength(1);
    table('shop/api', 'shop/web');
    await shown.until(() => shown.out.includes('shop/web'));
    expect(shown.out.match(/shop\/api/g)).toHaveLength(2);
    await stub.stop();
    await shown.until(() => shown.err.includes('; waiting for it\n'));
    await stub.start();
    await shown.until(() => shown.err.includes('the proxy answers again\n'));
    const ended = new Promise((resolve) => shown.child.once('exit', resolve));
    shown.child.kill('SIGINT');
    expect(await ended).toBe(130);
  });

  test('on a terminal: in colour, in place, as many lines as there is room for', async () => {
    table(
      ...Array.from(
        { length: 50 },
        (_, index) => `shop/service-${String(index).padStart(2, '0')}-${'x'.repeat(60)}`,
      ),
    );
    const command = `stty rows 12 cols 80; exec ${process.execPath} ${PROGRAM} services --watch ${SOCKET.join(' ')}`;
    const shown = new Shown(
      'env',
      'TERM=xterm',
      'script',
      '--quiet',
      '--return',
      '--command',
      command,
      join(folder, 'typescript'),
    );
    await shown.until(() => shown.out.split('\u001b[H\u001b[J').length > 2);
    const [, screen = ''] = shown.out.split('\u001b[H\u001b[J');
    const lines = screen.replaceAll('\r', '').trimEnd().split('\n');
    expect(lines).toHaveLength(11);
    expect(lines.at(-1)).toBe('… 41 more lines');
    expect(lines[1]).toContain('…');
    expect(lines[1]).toContain('\u001b[32mok\u001b[0m');
    const visible = lines.map((line) => line.replaceAll('\u001b[32m', '').replaceAll('\u001b[0m', ''));
    for (const line of visible) expect(line.length).toBeLessThanOrEqual(80);
  });
});

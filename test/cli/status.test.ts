/** `junction status`, and questions that are shown again: once, in a pipe, and on a terminal. What it prints: golden/status.txt. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Status } from '../../src/explain/status.ts';
import { FULL_STATUS } from '../support/fullStatus.ts';
import { schemaProblems } from '../support/jsonSchema.ts';
import { JUNCTION } from '../support/programs.ts';
import { junction } from './junction.ts';
import { Program } from './program.ts';
import { StubApi } from './stubApi.ts';

const ROOT = new URL('../..', import.meta.url).pathname;
const SCHEMA = JSON.parse(readFileSync(join(ROOT, 'docs/reference/api.schema.json'), 'utf8')) as Record<
  string,
  unknown
>;
const stub = new StubApi();
beforeAll(() => stub.start());
afterAll(() => stub.remove());

const SOCKET = ['--api-socket', stub.socket];
const FINE: Status = { ...FULL_STATUS, findings: [], leftOut: [] };

describe('once', () => {
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
    const shown = Program.junction('services', '--watch', ...SOCKET);
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
    shown.child.kill('SIGINT');
    expect(await shown.ended).toBe(130);
  });

  test('on a terminal: in colour, in place, as many lines as there is room for', async () => {
    const names = Array.from({ length: 50 }, (_, index) => `shop/service-${10 + index}-${'x'.repeat(60)}`);
    table(...names);
    const command = `stty rows 12 cols 80; exec ${process.execPath} ${JUNCTION} services --watch ${SOCKET.join(' ')}`;
    const shown = new Program(['env', 'TERM=xterm', 'script', '-qec', command, '/dev/null']);
    await shown.until(() => shown.out.split('\u001b[H\u001b[J').length > 2);
    const [, screen = ''] = shown.out.split('\u001b[H\u001b[J');
    const lines = screen.replaceAll('\r', '').trimEnd().split('\n');
    expect(lines).toHaveLength(11);
    expect(lines.at(-1)).toBe('… 41 more lines');
    expect(lines[1]).toContain('…');
    expect(lines[1]).toContain('\u001b[32mok\u001b[0m');
    const visible = lines.map((line) => line.replaceAll('\u001b[32m', '').replaceAll('\u001b[0m', ''));
    expect(visible.filter(({ length }) => length > 80)).toEqual([]);
  });
});

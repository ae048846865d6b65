/** The commands against the running program, in iptables and nftables mode: their text, exit codes, and JSON by the schema. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { askLines } from '../../src/cli/localApi.ts';
import type { ChangeRecord, ServiceExplanation, ServiceRow } from '../../src/explain/types.ts';
import { ROOT } from '../support/checkout.ts';
import { useLab } from '../lab/requireLab.ts';
import { schemaProblems } from '../support/jsonSchema.ts';
import { manifests } from './cluster.ts';
import { Daemon, eventually } from './daemon.ts';
import { ask, askFor } from './support/ask.ts';
import { runProgram } from './support/program.ts';
import { useInLab } from './support/use.ts';

const SCHEMA = JSON.parse(readFileSync(join(ROOT, 'docs/reference/api.schema.json'), 'utf8')) as Record<
  string,
  unknown
>;
const API = '10.96.1.1';
const WEB = '10.96.1.2';
const CLUSTER = manifests([
  { name: 'api', ip: API, pods: 'ac' },
  { name: 'web', ip: WEB, nodePort: 30081, pods: '' },
]);

describe.each(['iptables', 'nftables'])('%s', (mode) => {
  const lab = useLab();
  const running = useInLab(async () => {
    const daemon = await Daemon.create(lab().host('node1'), `--proxy-mode=${mode}`);
    await daemon.write(CLUSTER);
    await daemon.start();
    return daemon;
  });
  const junction = async (...words: readonly string[]) => {
    const socket = `--api-socket=${running().socket}`;
    const {
      exitCode: code,
      stdout: out,
      stderr: err,
    } = await runProgram(lab().host('node1'), ...words, socket);
    return { code, out, err };
  };
  const json = async (...words: readonly string[]): Promise<unknown> => {
    const { out, err } = await junction(...words, '--output=json');
    expect(err).toBe('');
    return JSON.parse(out) as unknown;
  };

  test('services and endpoints', async () => {
    const { code, out } = await junction('services');
    expect(code).toBe(0);
    expect(out).toMatch(/^shop\/api +ClusterIP +10\.96\.1\.1 .* 2\/2 \(1 here\) +ok$/m);
    expect(out).toMatch(/^shop\/web +NodePort +10\.96\.1\.2 .* 0\/0 +no endpoints: /m);
    const rows = (await json('services')) as readonly ServiceRow[];
    expect(rows.map(({ service }) => service)).toEqual(['shop/api', 'shop/web']);
    for (const row of rows) expect(schemaProblems(SCHEMA, 'ServiceRow', row)).toEqual([]);
    const endpoints = (await json('endpoints', 'shop/api')) as readonly unknown[];
    expect(endpoints).toHaveLength(2);
    for (const row of endpoints) expect(schemaProblems(SCHEMA, 'EndpointRow', row)).toEqual([]);
  });

  test.each([
    ['10.244.1.11', `${API}:80`, 0, 'FORWARDED'],
    ['outside', `${WEB}:80`, 3, 'REJECTED'],
    ['node', '10.96.1.99:80', 6, 'NOT A SERVICE'],
  ])('explain --from %s --to %s', async (from, to, code, verdict) => {
    const run = await junction('explain', '--from', from, '--to', to);
    expect(run).toMatchObject({ code, err: '' });
    expect(run.out.split('\n')[0]).toMatch(new RegExp(` ${verdict}$`));
    expect(run.out).toMatch(/in the kernel \(.*: as planned\)/);
    for (const each of (await json('explain', '--from', from, '--to', to)) as readonly unknown[])
      expect(schemaProblems(SCHEMA, 'PacketExplanation', each)).toEqual([]);
  });

  test('status', async () => {
    const { code, out } = await junction('status');
    expect(code).toBe(0);
    expect(out).toMatch(new RegExp(`^Junction v[\\d.]+ on node1, ${mode} mode.*: ok$`, 'm'));
    expect(schemaProblems(SCHEMA, 'Status', await json('status'))).toEqual([]);
  });

  test('a change: what it did', async () => {
    await running().write(CLUSTER.replace('10.244.2.11', '10.244.2.12'));
    await eventually('the change', async () => {
      const { changes } = (await json('explain', 'shop/api')) as ServiceExplanation;
      return changes.length > 0;
    });
    const now = (await json('explain', 'shop/api')) as ServiceExplanation;
    expect(schemaProblems(SCHEMA, 'ServiceExplanation', now)).toEqual([]);
    expect(now.changes[0]?.effects.join()).toContain('10.244.2.12');
  });

  test('what the API sends besides', async () => {
    const history = await askFor<readonly ChangeRecord[]>(running().socket, '/v1/history');
    expect(history.length).toBeGreaterThan(0);
    for (const record of history) expect(schemaProblems(SCHEMA, 'ChangeRecord', record)).toEqual([]);
    const lines = [];
    for await (const line of askLines(running().socket, '/v1/snapshot')) lines.push(line);
    expect(lines.length).toBeGreaterThan(4);
    for (const line of lines) expect(schemaProblems(SCHEMA, 'SnapshotLine', line)).toEqual([]);
    const refused = await ask(running().socket, '/v1/services?nonsense=1');
    expect(refused.status).toBe(400);
    expect(schemaProblems(SCHEMA, 'Error', JSON.parse(refused.text))).toEqual([]);
  });

  test.each([
    ['diff', 'DiffReport'],
    ['doctor', 'DoctorReport'],
  ])('%s', async (name, type) => {
    const { out } = await junction(name, '--output=json');
    expect(schemaProblems(SCHEMA, type, JSON.parse(out))).toEqual([]);
  });

  test('names', async () => {
    expect((await junction('__complete', 'services', 'shop/')).out).toBe('shop/api\nshop/web\n');
  });

  test('errors', async () => {
    const run = await junction('explain', 'shop/apo');
    expect(run).toMatchObject({ code: 1, out: '' });
    expect(run.err).toMatch(/there is no Service "shop\/apo" \(did you mean shop\/api\?\)/);
  });
});

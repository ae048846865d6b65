/** The commands against the running program, in iptables and nftables mode: what they end with, and JSON by the schema. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ROOT } from '../support/checkout.ts';
import { useLab } from '../lab/requireLab.ts';
import { schemaProblems } from '../support/jsonSchema.ts';
import { manifests } from './cluster.ts';
import { Daemon } from './daemon.ts';
import { ask } from './support/ask.ts';
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

function expectInSchema(type: string, body: unknown): void {
  const values = Array.isArray(body) ? body : [body];
  expect(values).not.toEqual([]);
  for (const value of values) expect(schemaProblems(SCHEMA, type, value)).toEqual([]);
}

describe.each(['iptables', 'nftables'])('%s', (mode) => {
  const lab = useLab();
  const running = useInLab(async () => {
    const daemon = await Daemon.create(lab().host('node1'), `--proxy-mode=${mode}`);
    await daemon.write(CLUSTER);
    await daemon.start();
    await daemon.apply(CLUSTER.replace('10.244.2.11', '10.244.2.12'));
    return daemon;
  });
  const junction = (...words: readonly string[]) =>
    runProgram(lab().host('node1'), ...words, `--api-socket=${running().socket}`);

  test.each([
    ['ServiceRow', 'services'],
    ['EndpointRow', 'endpoints shop/api'],
    ['ServiceExplanation', 'explain shop/api'],
    ['Status', 'status'],
    ['DiffReport', 'diff'],
    ['DoctorReport', 'doctor'],
  ])('%s: %s', async (type, words) => {
    const { stdout } = await junction(...words.split(' '), '--output=json');
    expectInSchema(type, JSON.parse(stdout));
  });

  test.each([
    ['10.244.1.11', `${API}:80`, 0, 'FORWARDED'],
    ['outside', `${WEB}:80`, 3, 'REJECTED'],
    ['node', '10.96.1.99:80', 6, 'NOT A SERVICE'],
  ])('explain --from %s --to %s', async (from, to, exitCode, verdict) => {
    const words = ['explain', '--from', from, '--to', to];
    const { stdout, ...run } = await junction(...words);
    expect(run).toMatchObject({ exitCode, stderr: '' });
    expect(stdout.split('\n')[0]).toMatch(new RegExp(` ${verdict}$`));
    expect(stdout).toMatch(/in the kernel \(.*: as planned\)/);
    expectInSchema('PacketExplanation', JSON.parse((await junction(...words, '--output=json')).stdout));
  });

  test('what the API sends besides', async () => {
    const { text: history } = await ask(running().socket, '/v1/history');
    expectInSchema('ChangeRecord', JSON.parse(history));
    const { text: lines } = await ask(running().socket, '/v1/snapshot');
    expectInSchema('SnapshotLine', JSON.parse(`[${lines.trim().replaceAll('\n', ',')}]`));
    const refused = await ask(running().socket, '/v1/services?nonsense=1');
    expect(refused.status).toBe(400);
    expectInSchema('Error', JSON.parse(refused.text));
  });
});

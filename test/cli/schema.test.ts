/** What commands print for programs has the shape that docs/reference/api.schema.json says. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { schemaProblems } from '../support/jsonSchema.ts';
import { junction } from './junction.ts';

const ROOT = new URL('../..', import.meta.url).pathname;
const SCHEMA = JSON.parse(readFileSync(`${ROOT}/docs/reference/api.schema.json`, 'utf8')) as Record<
  string,
  unknown
>;
const FLAGS = [
  `--manifests=${ROOT}/examples`,
  '--hostname-override=node1',
  '--cluster-cidr=10.244.0.0/16,fd00:244::/32',
];

async function answerTo(...words: readonly string[]): Promise<unknown> {
  const { out, err } = await junction(...words, '--output=json', ...FLAGS);
  expect(err).toBe('');
  return JSON.parse(out) as unknown;
}

describe.each(['iptables', 'ipvs', 'nftables'])('%s', (mode) => {
  test.each([
    ['10.244.1.11', 'svc/shop/api'],
    ['outside', 'svc/shop/web'],
    ['node', 'svc/shop/idle'],
    ['outside', '10.96.0.99:80'],
    ['pod/shop/pod-a', 'svc/shop/cart'],
    ['node', 'svc/shop/catalog'],
    ['node', '192.168.100.2:30080'],
  ])('explain --from %s --to %s', async (from, to) => {
    const answer = await answerTo('explain', '--from', from, '--to', to, `--proxy-mode=${mode}`);
    expect(Array.isArray(answer) && answer.length).toBeGreaterThan(0);
    for (const each of answer as readonly unknown[])
      expect(schemaProblems(SCHEMA, 'PacketExplanation', each)).toEqual([]);
  });

  test.each(['api', 'cart', 'catalog', 'dns', 'idle', 'shopfront', 'web'])('shop/%s', async (name) => {
    const service = await answerTo('explain', `shop/${name}`, `--proxy-mode=${mode}`);
    expect(schemaProblems(SCHEMA, 'ServiceExplanation', service)).toEqual([]);
    const endpoints = await answerTo('endpoints', `shop/${name}`, `--proxy-mode=${mode}`);
    expect(Array.isArray(endpoints) && endpoints.length).toBeGreaterThan(0);
    for (const each of endpoints as readonly unknown[])
      expect(schemaProblems(SCHEMA, 'EndpointRow', each)).toEqual([]);
  });
});

test.each([
  ['--to-proxy-mode=nftables'],
  ['--to-hostname-override=node2'],
  [`--to-manifests=${ROOT}/examples/web.yaml`],
])('diff %s', async (flag) => {
  const report = await answerTo('diff', flag);
  expect(schemaProblems(SCHEMA, 'DiffReport', report)).toEqual([]);
  expect(report).toMatchObject({ isSame: false });
});

test('services', async () => {
  const rows = (await answerTo('services')) as readonly unknown[];
  expect(rows).toHaveLength(7);
  for (const row of rows) expect(schemaProblems(SCHEMA, 'ServiceRow', row)).toEqual([]);
});

describe('the validator finds', () => {
  const row = {
    service: 'shop/web',
    type: 'ClusterIP',
    clusterIPs: ['10.96.0.1'],
    externalIPs: [],
    loadBalancerIPs: [],
    ports: ['80/TCP'],
    endpoints: { ready: 1, local: 0, all: 1 },
    externalTrafficPolicy: 'Cluster',
    internalTrafficPolicy: 'Cluster',
    state: 'ok',
  };
  test('nothing wrong', () => expect(schemaProblems(SCHEMA, 'ServiceRow', row)).toEqual([]));

  test.each([
    [{ ...row, state: 'good' }, '$.state: "good" is not one of'],
    [{ ...row, ports: [80] }, '$.ports[0]: number is not string'],
    [{ ...row, ports: '80/TCP' }, '$.ports: string is not array'],
    [{ ...row, service: undefined }, '$.service is missing'],
    [{ ...row, colour: 'red' }, '$.colour is not documented'],
    [{ ...row, endpoints: { ready: 1, local: 0 } }, '$.endpoints.all is missing'],
    [[], '$: array is not object'],
    [null, '$: null is not object'],
  ])('%j', (value, problem) => expect(schemaProblems(SCHEMA, 'ServiceRow', value)[0]).toContain(problem));

  test('which of several shapes was meant', () => {
    expect(schemaProblems(SCHEMA, 'WatchEvent', { kind: 'lost', at: 1, events: 2 })).toEqual([]);
    expect(schemaProblems(SCHEMA, 'WatchEvent', { kind: 'lost', at: 1 })).toEqual(['$.events is missing']);
    expect(schemaProblems(SCHEMA, 'WatchEvent', { kind: 'found', at: 1, events: 2 })).not.toEqual([]);
  });
});

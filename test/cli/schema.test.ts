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

async function expectEach(type: string, least: number, ...words: readonly string[]): Promise<void> {
  const answer = await answerTo(...words);
  const items = Array.isArray(answer) ? (answer as readonly unknown[]) : [answer];
  expect(items.length).toBeGreaterThanOrEqual(least);
  expect(items.flatMap((item) => schemaProblems(SCHEMA, type, item))).toEqual([]);
}

const PACKETS: readonly (readonly [string, string])[] = [
  ['10.244.1.11', 'svc/shop/api'],
  ['outside', 'svc/shop/web'],
  ['node', 'svc/shop/idle'],
  ['outside', '10.96.0.99:80'],
  ['pod/shop/pod-a', 'svc/shop/cart'],
  ['node', 'svc/shop/catalog'],
  ['node', '192.168.100.2:30080'],
];
const SERVICES = ['api', 'cart', 'catalog', 'dns', 'idle', 'shopfront', 'web'];

test.each(['iptables', 'ipvs', 'nftables'])('explain, endpoints and services in %s mode', async (mode) => {
  const flag = `--proxy-mode=${mode}`;
  for (const [from, to] of PACKETS)
    await expectEach('PacketExplanation', 1, 'explain', '--from', from, '--to', to, flag);
  for (const name of SERVICES) {
    await expectEach('ServiceExplanation', 1, 'explain', `shop/${name}`, flag);
    await expectEach('EndpointRow', 1, 'endpoints', `shop/${name}`, flag);
  }
  await expectEach('ServiceRow', SERVICES.length, 'services', flag);
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
    [{ ...row, service: undefined }, '$.service is missing'],
    [{ ...row, colour: 'red' }, '$.colour is not documented'],
    [null, '$: null is not object'],
  ])('%j', (value, problem) => expect(schemaProblems(SCHEMA, 'ServiceRow', value)[0]).toContain(problem));

  test('which of several shapes was meant', () => {
    expect(schemaProblems(SCHEMA, 'WatchEvent', { kind: 'lost', at: 1, events: 2 })).toEqual([]);
    expect(schemaProblems(SCHEMA, 'WatchEvent', { kind: 'lost', at: 1 })).toEqual(['$.events is missing']);
    expect(schemaProblems(SCHEMA, 'WatchEvent', { kind: 'found', at: 1, events: 2 })).not.toEqual([]);
  });
});

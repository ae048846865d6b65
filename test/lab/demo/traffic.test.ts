/** The demo must not call something right that is not: a lab that lies is found out. */
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Expectation } from '../../../lab/demo/expectation.ts';
import { junctionSettings } from '../../../lab/demo/settings.ts';
import { printRows } from '../../../lab/demo/report.ts';
import { type Row, sendAll } from '../../../lab/demo/traffic.ts';
import type { Lab } from '../../../lab/lab.ts';
import type { Outcome, Reply } from '../../../lab/protocol.ts';

let expectation: Expectation;
beforeAll(async () => {
  const manifests = join(import.meta.dirname, '../../../examples');
  expectation = await Expectation.watch(
    junctionSettings({ mode: 'iptables', once: true, layout: 'current', variant: 'auto', manifests }),
  );
});
afterAll(() => expectation.stop());

const POD_A: Reply = {
  host: 'pod-a',
  address: '10.244.1.11',
  port: 8080,
  peer: '10.244.1.12',
  protocol: 'tcp',
};

test.each([
  ['refused', ({ probe }: Row) => probe.service === 'shop/idle'],
  ['timeout', ({ probe }: Row) => probe.from === 'far client'],
] as const)('everywhere %s: as planned in one place alone', async (outcome, isPlanned) => {
  for (const row of await sendTo(() => ({ outcome })))
    expect([row.probe, row.surprises.length === 0]).toEqual([row.probe, isPlanned(row)]);
});

test.each<readonly [string, Partial<Reply>, readonly string[]]>([
  ['an endpoint that sees the pod itself', {}, []],
  ['an endpoint that sees the node', { peer: '10.244.1.1' }, ['expected pod-a to see 10.244.1.12']],
  ['another port', { port: 8081 }, [expect.stringContaining('expected an answer from 10.244.1.11:8080 or ')]],
  [
    'a pod that is no endpoint',
    { host: 'pod-b', address: '10.244.1.12' },
    [expect.stringContaining('expected')],
  ],
])('pod-b to the api: %s', async (_, reply, surprises) => {
  const rows = await sendTo(() => ({ outcome: 'answer', reply: { ...POD_A, ...reply } }));
  expect(rows[0]?.probe).toMatchObject({ from: 'pod-b', service: 'shop/api' });
  expect(rows[0]?.surprises).toEqual(surprises);
});

test('a client from outside whose address reaches a masquerading service is found out', async () => {
  const rows = await sendTo(() => ({ outcome: 'answer', reply: { ...POD_A, peer: '192.0.2.10' } }));
  const row = rows.find(({ probe }) => probe.from === 'client' && probe.service === 'shop/api');
  expect(row?.surprises).toEqual(["expected pod-a to see node1's address"]);
});

test('session affinity: two pods are one too many', async () => {
  let turn = 0;
  const rows = await sendTo(() => {
    const other = turn++ % 2 === 0 && { host: 'pod-c', address: '10.244.2.11' };
    return { outcome: 'answer', reply: { ...POD_A, port: 9090, ...other } };
  });
  const row = rows.find(({ probe }) => probe.service === 'shop/cart');
  expect(row?.surprises).toEqual(['expected one pod to answer all requests, for session affinity']);
});

test.each([
  [
    80,
    'FROM        TO                     ADDRESS, AND WHO ANSWERED',
    '   pod-a ×12 saw 10.244.1.12 (its own)',
  ],
  [200, 'SOURCE THEY SAW', 'pod-a ×12    10.244.1.12 (its own)'],
])('a table for a terminal of %i columns', async (columns, header, line) => {
  const rows = await sendTo(() => ({ outcome: 'answer', reply: POD_A }));
  const asPlanned = rows.map((row) => ({ ...row, surprises: [] }));
  const text = printRows(asPlanned, (_, word) => word, columns);
  for (const each of text.split('\n')) expect(each.length).toBeLessThanOrEqual(columns);
  expect(text).toContain(line);
  expect(text).toMatch(header);
});

function sendTo(answer: () => Outcome): Promise<readonly Row[]> {
  const host = { request: () => Promise.resolve(answer()) };
  return sendAll({ host: () => host } as unknown as Lab, expectation.plans());
}

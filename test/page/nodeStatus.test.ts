/** The status for the view: the words of `status`, grouped; ages; fullness. */
import { describe, expect, test } from 'vitest';
import {
  agedStatus,
  fullnessOf,
  isOfCluster,
  nodePath,
  problemParts,
  stageShares,
  statusGroups,
} from '../../page/src/views/nodeStatus.ts';
import type { FamilyStatus, Status } from '../../src/explain/status.ts';
import { statusHeading, statusParts } from '../../src/explain/statusText.ts';

const AT = 1_794_830_056_000;
const IPV4: FamilyStatus = {
  family: 'IPv4',
  isServed: true,
  services: 1204,
  servicePorts: 1300,
  endpoints: 1,
  lastSync: {
    at: AT - 3000,
    kind: 'incremental',
    cause: 'Service shop/web changed',
    ms: 4,
    planMs: 1,
    writeMs: 3,
    commits: 1,
    objects: 2,
  },
  syncs: { full: 1, incremental: 7, nothing: 0, failed: 0 },
  isNotified: true,
  refused: [{ servicePort: 'bank/db:sql/TCP', error: 'No space left' }],
  foreignChanges: { count: 0, byProgram: {} },
  proof: { isOn: false, packets: 0, disagreements: [], disagreementCount: 0 },
  history: { records: 7, mostRecords: 2000, bytes: 0, mostBytes: 100, since: AT - 60_000 },
};
const STATUS: Status = {
  version: '1.2.3',
  processId: 7,
  node: 'node1',
  mode: 'nftables',
  layout: 'current',
  startedAt: AT - 3_600_000,
  now: AT,
  source: { kind: 'manifests', paths: ['examples'], problems: ['examples/web.yaml:19: not a Service'] },
  families: [IPV4],
  leftOut: [{ family: 'IPv6', reason: 'the kernel has none', since: AT - 1000 }],
  conntrack: { count: 900, max: 1000 },
  findings: [],
};

test('the heading is the first line of status', () => {
  expect(statusHeading(STATUS)).toEqual({
    title: 'Junction v1.2.3 on node1',
    how: 'nftables mode, process 7 for 60 min',
    state: 'ok',
    isWrong: false,
  });
  const planned = statusHeading({ ...STATUS, mode: 'iptables', answeredBy: { kind: 'plan' } });
  expect(planned.how).toBe('iptables mode, layout current, a plan that is written nowhere');
});

describe('groups', () => {
  test('a card for each part, with all lines of status', () => {
    const { beside, families } = statusGroups(STATUS);
    expect(beside.map(({ name }) => name)).toEqual(['manifests', 'IPv6', 'conntrack']);
    expect(families.map(({ name }) => name)).toEqual(['IPv4']);
    const lines = [...beside, ...families].flatMap(({ parts }) => parts.flatMap((part) => part.lines));
    expect(new Set(lines)).toEqual(new Set(statusParts(STATUS).flatMap((part) => part.lines)));
  });

  test('a family, line by line, with the times that lines speak of', () => {
    const parts = statusGroups(STATUS).families[0]?.parts ?? [];
    expect(parts.map(({ name, lines, at }) => [name, lines[0], at])).toEqual([
      ['IPv4', '1,204 services with 1,300 ports, 1 endpoint', undefined],
      [
        'last sync',
        '3 s ago in 4 ms (plan 1 ms, write 3 ms): incremental, 1 commit, 2 objects; Service shop/web changed',
        AT - 3000,
      ],
      ['kernel read', 'not yet; the kernel notifies of changes', undefined],
      ['refused', 'bank/db:sql/TCP: No space left', undefined],
      ['proof', 'off (--proof)', undefined],
      ['history', '7 of at most 2,000 changes, since 60 s ago', AT - 60_000],
    ]);
  });

  test('a plan has no kernel, and says nothing of one', () => {
    const { families } = statusGroups({ ...STATUS, answeredBy: { kind: 'plan' } });
    expect(families[0]?.parts.map(({ lines }) => lines)).toEqual([
      ['1,204 services with 1,300 ports, 1 endpoint'],
    ]);
  });
});

test('ages go on, but for a recording', () => {
  expect(agedStatus(STATUS, 2000).now).toBe(AT + 2000);
  expect(agedStatus(STATUS, -5).now).toBe(AT);
  const bundle = { kind: 'bundle', file: 'x', takenAt: AT } as const;
  expect(agedStatus({ ...STATUS, answeredBy: bundle }, 2000).now).toBe(AT);
});

test('how full conntrack is', () => {
  expect(fullnessOf({ count: 10, max: 1000 })).toEqual({ share: 0.01, state: 'fine' });
  expect(fullnessOf({ count: 800, max: 1000 }).state).toBe('high');
  expect(fullnessOf({ count: 900, max: 1000 }).state).toBe('full');
  expect([fullnessOf({ count: 9, max: 0 }).share, fullnessOf({ count: 9, max: 3 }).share]).toEqual([0, 1]);
});

test('stages of the last sync', () => {
  expect(stageShares(IPV4)).toEqual({ plan: 0.25, write: 0.75 });
  const { lastSync: _, ...never } = IPV4;
  expect(stageShares(never)).toBeUndefined();
});

test('problems with their place', () => {
  expect(problemParts('examples/web.yaml:19: not a Service')).toEqual({
    where: 'examples/web.yaml:19',
    text: 'not a Service',
  });
  expect(problemParts('no file')).toEqual({ text: 'no file' });
});

test('all nodes are asked for where a cluster is planned from outside', () => {
  const api: Status['source'] = { kind: 'api', server: 'https://a', reconnects: 0, resources: [] };
  expect(isOfCluster(STATUS)).toBe(false);
  expect(isOfCluster({ ...STATUS, source: api })).toBe(false);
  expect(isOfCluster({ ...STATUS, source: api, answeredBy: { kind: 'plan' } })).toBe(true);
  expect(nodePath('a b')).toBe('/node?node=a+b');
});

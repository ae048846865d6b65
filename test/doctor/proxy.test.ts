import { describe, expect, test } from 'vitest';
import { checkServer, checkSource } from '../../src/doctor/apiServer.ts';
import { checkProxy, type ProxyLook } from '../../src/doctor/proxy.ts';
import type { FamilyStatus, Status } from '../../src/explain/status.ts';
import { codesOf, fakeMachine, groupOf } from './fakeMachine.ts';

const NOW = 1_800_000_000_000;
const SYNC = {
  at: NOW - 2000,
  kind: 'incremental',
  cause: 'a change',
  ms: 3,
  commits: 1,
  objects: 2,
} as const;
const FAMILY: FamilyStatus = {
  family: 'IPv4',
  isServed: true,
  services: 3,
  servicePorts: 4,
  endpoints: 9,
  lastSync: SYNC,
  syncs: { full: 1, incremental: 4, nothing: 0, failed: 0 },
  isNotified: true,
  refused: [],
  foreignChanges: { count: 0, byProgram: {} },
};
const STATUS: Status = {
  version: '0.1.0',
  processId: 4711,
  node: 'node1',
  mode: 'nftables',
  layout: 'current',
  startedAt: NOW - 100_000,
  now: NOW,
  source: { kind: 'manifests', paths: ['/m'], problems: [] },
  families: [FAMILY],
  leftOut: [],
  findings: [],
};
const SOCKET = '/run/junction/junction.sock';
const look = (proxy: Partial<ProxyLook>, files: Readonly<Record<string, string>> = {}) =>
  groupOf((group) => checkProxy(group, fakeMachine({ files }), { socket: SOCKET, ...proxy }, 30_000));
const family = (change: Partial<FamilyStatus>) =>
  look({ status: { ...STATUS, families: [{ ...FAMILY, ...change }] } });

describe('the proxy', () => {
  test('one that is well', async () => {
    const group = await look({ status: STATUS });
    expect(codesOf(group)).toEqual([]);
    expect(group.fine).toEqual([
      'Junction 0.1.0 (pid 4711) runs in nftables mode since 100 s',
      'IPv4: 3 services, 9 endpoints; last sync 2 s ago took 3 ms',
    ]);
  });

  test('none runs', async () => {
    expect(codesOf(await look({ whyNoStatus: 'no such socket' }))).toEqual(['error proxy-not-running']);
  });

  test('one that is stopped by a signal', async () => {
    const group = await look(
      { holder: 'pid 77, uid 0; it does not answer', whyNoStatus: 'no answer within 2 s' },
      { '77/status': 'Name:\tjunction\nState:\tT (stopped)\n' },
    );
    expect(codesOf(group)).toEqual(['error proxy-stopped']);
    expect(group.findings[0]?.evidence).toContain('state T (stopped)');
    expect(group.findings[0]?.cure).toBe('kill -CONT 77');
  });

  test('one whose socket is another', async () => {
    const group = await look({ holder: 'pid 77' }, { '77/status': 'State:\tS (sleeping)\n' });
    expect(codesOf(group)).toEqual(['warning proxy-silent']);
    expect(group.findings[0]?.cure).toContain('--api-socket');
  });

  test.each<readonly [string, Partial<FamilyStatus>, string, string]>([
    [
      'a failed sync',
      { lastSync: { ...SYNC, kind: 'failed', error: 'EPERM' } },
      'error sync-failed',
      'EPERM',
    ],
    ['no rules yet', { isServed: false }, 'error not-served-yet', 'no sync has succeeded'],
    [
      'a refusal',
      { refused: [{ servicePort: 'shop/web:http/TCP', error: 'EOPNOTSUPP' }] },
      'error refused',
      'EOPNOTSUPP',
    ],
    [
      'a fight',
      {
        foreignChanges: {
          count: 3,
          byProgram: { nft: 3 },
          last: { at: NOW - 1000, objects: ['table ip junction'], program: 'nft (pid 9)', repairedMs: 4 },
        },
      },
      'warning foreign-changes',
      'nft (pid 9), 1 s ago: table ip junction; 3 times in all (nft 3)',
    ],
    [
      'verification that stopped',
      { isNotified: false, lastVerification: { at: NOW - 600_000, ms: 3, isUnchanged: true } },
      'warning verification-overdue',
      'sync period 30 s',
    ],
  ])('%s', async (_, change, code, evidence) => {
    const group = await family(change);
    expect(codesOf(group)).toEqual([code]);
    expect(group.findings[0]?.evidence).toContain(evidence);
    expect(group.findings[0]?.cure).not.toBe('');
  });
});

describe('the API server', () => {
  const source = (failing?: { readonly reason: string; readonly hasListed?: boolean }): Status['source'] => ({
    kind: 'api',
    server: 'https://192.0.2.1:6443',
    lastEventAt: NOW - 3000,
    reconnects: 1,
    resources: [
      {
        resource: 'EndpointSlices',
        hasListed: failing?.hasListed ?? true,
        ...(failing && { failingSince: new Date(NOW - 90_000).toISOString(), reason: failing.reason }),
      },
    ],
  });

  test('listed and watched', async () => {
    const group = await groupOf((each) => checkSource(each, source(), NOW));
    expect(codesOf(group)).toEqual([]);
    expect(group.fine).toContain('last event 3 s ago');
  });

  test.each([
    ['connect ECONNREFUSED 192.0.2.1:6443', 'curl -k https://192.0.2.1:6443/livez'],
    ['connect ECONNREFUSED 192.0.2.1:403', 'curl -k https://192.0.2.1:6443/livez'],
    ['connect ECONNREFUSED 192.0.2.1:40389', 'curl -k https://192.0.2.1:6443/livez'],
    ['connect ECONNREFUSED 192.0.2.1:14013', 'curl -k https://192.0.2.1:6443/livez'],
    ['403 forbidden', 'ClusterRole'],
    ['401 Unauthorized', 'token'],
    ['self-signed certificate', 'certificate'],
  ])('down: %s', async (reason, cure) => {
    const group = await groupOf((each) => checkSource(each, source({ reason }), NOW));
    expect(codesOf(group)).toEqual(['error api-unreachable']);
    expect(group.findings[0]?.evidence).toContain(`${reason}, for 90 s`);
    expect(group.findings[0]?.consequence).toContain('the rules stay as they are');
    expect(group.findings[0]?.cure).toContain(cure);
  });

  test('what fails for one reason is one finding', async () => {
    const failing = (resource: string, since: number, reason: string) => ({
      resource,
      hasListed: true,
      failingSince: new Date(NOW - since).toISOString(),
      reason,
    });
    const resources = [
      failing('Services', 60_000, 'https://192.0.2.1:6443/api/v1/services: connect ECONNREFUSED'),
      failing(
        'EndpointSlices',
        90_000,
        'https://192.0.2.1:6443/apis/discovery.k8s.io/v1/endpointslices: connect ECONNREFUSED',
      ),
      failing('Nodes', 60_000, '403 forbidden'),
    ];
    const group = await groupOf((each) =>
      checkSource(each, { kind: 'api', server: 'https://192.0.2.1:6443', reconnects: 0, resources }, NOW),
    );
    expect(
      group.findings.map(({ text, evidence }) => `${text.split(':')[0]}; ${evidence?.split(' (')[0]}`),
    ).toEqual([
      'Services, EndpointSlices cannot be watched; https://192.0.2.1:6443: connect ECONNREFUSED, for 90 s',
      'Nodes cannot be watched; https://192.0.2.1:6443: 403 forbidden, for 60 s',
    ]);
  });

  test('nothing was ever listed', async () => {
    const group = await groupOf((each) =>
      checkSource(each, source({ reason: '403', hasListed: false }), NOW),
    );
    expect(group.findings[0]?.consequence).toBe('nothing is served until the first list succeeds');
  });

  test.each([
    [0, []],
    [900, []],
    [-4000, []],
    [6500, ['warning clock-skew']],
    [-90_000, ['error clock-skew']],
  ])('a clock that differs by %i ms', async (difference, codes) => {
    const group = await groupOf((each) =>
      checkServer(each, { server: 'https://s', at: NOW, date: NOW - difference }),
    );
    expect(codesOf(group)).toEqual(codes);
  });

  test('asked directly, and no answer', async () => {
    const failure = { message: 'connect ETIMEDOUT', hint: 'look at the network' };
    const group = await groupOf((each) => checkServer(each, { server: 'https://s', at: NOW, failure }));
    expect(codesOf(group)).toEqual(['error api-unreachable']);
    expect(group.findings[0]?.cure).toBe('look at the network');
  });
});

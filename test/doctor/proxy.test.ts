import { describe, expect, test } from 'vitest';
import { checkServer, checkSource } from '../../src/doctor/apiServer.ts';
import { checkProxy, type ProxyLook } from '../../src/doctor/proxy.ts';
import type { FamilyStatus, SourceStatus, Status } from '../../src/explain/status.ts';
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
const STOPPED = { '77/status': 'Name:\tjunction\nState:\tT (stopped)\n' };
const SLEEPING = { '77/status': 'State:\tS (sleeping)\n' };

describe('the proxy', () => {
  const look = (proxy: Partial<ProxyLook>, files: Readonly<Record<string, string>> = {}) => {
    const whole = { socket: '/run/junction/junction.sock', ...proxy };
    return groupOf((group) => checkProxy(group, fakeMachine({ files }), whole, 30_000));
  };

  test('one that is well', async () => {
    const group = await look({ status: STATUS });
    expect(codesOf(group)).toEqual([]);
    expect(group.fine).toEqual([
      'Junction 0.1.0 (pid 4711) runs in nftables mode since 100 s',
      'IPv4: 3 services, 9 endpoints; last sync 2 s ago took 3 ms',
    ]);
  });

  test.each([
    ['error proxy-not-running', {}, {}, 'systemctl start junction'],
    ['error proxy-stopped', { holder: 'pid 77, uid 0' }, STOPPED, 'kill -CONT 77'],
    ['warning proxy-silent', { holder: 'pid 77' }, SLEEPING, '--api-socket'],
  ])('without an answer: %s', async (code, proxy, files, cure) => {
    const group = await look({ whyNoStatus: 'no answer within 2 s', ...proxy }, files);
    expect(codesOf(group)).toEqual([code]);
    expect(group.findings[0]?.cure).toContain(cure);
  });

  const last = { at: NOW - 1000, objects: ['table ip junction'], program: 'nft (pid 9)', repairedMs: 4 };
  test.each<readonly [string, string, Partial<FamilyStatus>]>([
    ['error sync-failed', 'EPERM', { lastSync: { ...SYNC, kind: 'failed', error: 'EPERM' } }],
    ['error not-served-yet', 'no sync has succeeded', { isServed: false }],
    ['error refused', 'EOPNOTSUPP', { refused: [{ servicePort: 'shop/web/TCP', error: 'EOPNOTSUPP' }] }],
    [
      'warning foreign-changes',
      'nft (pid 9), 1 s ago: table ip junction; 3 times in all (nft 3)',
      { foreignChanges: { count: 3, byProgram: { nft: 3 }, last } },
    ],
    [
      'warning verification-overdue',
      'sync period 30 s',
      { isNotified: false, lastVerification: { at: NOW - 600_000, ms: 3, isUnchanged: true } },
    ],
  ])('%s', async (code, evidence, change) => {
    const group = await look({ status: { ...STATUS, families: [{ ...FAMILY, ...change }] } });
    expect(codesOf(group)).toEqual([code]);
    expect(group.findings[0]?.evidence).toContain(evidence);
    expect(group.findings[0]?.cure).not.toBe('');
  });
});

describe('the API server', () => {
  const SERVER = 'https://192.0.2.1:6443';
  const failing = (resource: string, seconds: number, reason: string, hasListed = true) => ({
    resource,
    hasListed,
    failingSince: new Date(NOW - seconds * 1000).toISOString(),
    reason,
  });
  const look = (...resources: Extract<SourceStatus, { kind: 'api' }>['resources']) => {
    const source = {
      kind: 'api',
      server: SERVER,
      lastEventAt: NOW - 3000,
      reconnects: 1,
      resources,
    } as const;
    return groupOf((each) => checkSource(each, source, NOW));
  };

  test('listed and watched', async () => {
    const group = await look({ resource: 'EndpointSlices', hasListed: true });
    expect(codesOf(group)).toEqual([]);
    expect(group.fine).toContain('last event 3 s ago');
  });

  test.each([
    // What looks like a status is a part of a port.
    ['connect ECONNREFUSED 192.0.2.1:403', `curl -k ${SERVER}/livez`],
    ['connect ECONNREFUSED 192.0.2.1:14013', `curl -k ${SERVER}/livez`],
    ['403 forbidden', 'ClusterRole'],
    ['401 Unauthorized', 'token'],
    ['self-signed certificate', 'certificate'],
  ])('down: %s', async (reason, cure) => {
    const group = await look(failing('EndpointSlices', 90, reason));
    expect(codesOf(group)).toEqual(['error api-unreachable']);
    expect(group.findings[0]?.evidence).toContain(`${reason}, for 90 s`);
    expect(group.findings[0]?.consequence).toContain('the rules stay as they are');
    expect(group.findings[0]?.cure).toContain(cure);
  });

  test('what fails for one reason is one finding; where nothing was ever listed, it says so', async () => {
    const { findings } = await look(
      failing('Services', 60, `${SERVER}/api/v1/services: connect ECONNREFUSED`),
      failing(
        'EndpointSlices',
        90,
        `${SERVER}/apis/discovery.k8s.io/v1/endpointslices: connect ECONNREFUSED`,
      ),
      failing('Nodes', 60, '403 forbidden', false),
    );
    expect(
      findings.map(({ text, evidence }) => `${text.split(':')[0]}; ${evidence?.split(' (')[0]}`),
    ).toEqual([
      `Services, EndpointSlices cannot be watched; ${SERVER}: connect ECONNREFUSED, for 90 s`,
      `Nodes cannot be listed; ${SERVER}: 403 forbidden, for 60 s`,
    ]);
    expect(findings[1]?.consequence).toBe('nothing is served until the first list succeeds');
  });

  test.each([
    [-4000, []],
    [6500, ['warning clock-skew']],
    [-90_000, ['error clock-skew']],
  ])('a clock that differs by %i ms', async (difference, codes) => {
    const asked = { server: SERVER, at: NOW, date: NOW - difference };
    expect(codesOf(await groupOf((each) => checkServer(each, asked)))).toEqual(codes);
  });

  test('asked directly, and no answer', async () => {
    const failure = { message: 'connect ETIMEDOUT', hint: 'look at the network' };
    const group = await groupOf((each) => checkServer(each, { server: SERVER, at: NOW, failure }));
    expect(codesOf(group)).toEqual(['error api-unreachable']);
    expect(group.findings[0]?.cure).toBe('look at the network');
  });
});

import { expect, test } from 'vitest';
import type { FamilyStatus, SourceStatus } from '../../src/explain/status.ts';
import { stageOf, statusFindings } from '../../src/explain/statusFindings.ts';

const FAMILY: FamilyStatus = {
  family: 'IPv4',
  isServed: true,
  services: 1,
  servicePorts: 1,
  endpoints: 1,
  syncs: { full: 1, incremental: 0, nothing: 0, failed: 0 },
  isNotified: true,
  refused: [],
  foreignChanges: { count: 0, byProgram: {} },
};
const MANIFESTS: SourceStatus = { kind: 'manifests', paths: ['a'], problems: [] };
const WELL = {
  source: MANIFESTS,
  families: [FAMILY],
  leftOut: [],
  conntrack: { count: 1, max: 100 },
  late: [],
};

function api(resource: { hasListed: boolean; failingSince?: string; reason?: string }): SourceStatus {
  return {
    kind: 'api',
    server: 'https://a',
    reconnects: 0,
    resources: [{ resource: 'services', ...resource }],
  };
}

test('a proxy that is well has none', () => {
  expect(statusFindings(WELL)).toEqual([]);
  expect(statusFindings({ ...WELL, source: api({ hasListed: true }) })).toEqual([]);
});

test.each([
  ['sync-late', 'error', { late: ['IPv4'] }],
  ['resource-not-listed', 'warning', { source: api({ hasListed: false }) }],
  [
    'resource-not-listed',
    'error',
    { source: api({ hasListed: false, failingSince: '14:03', reason: '403' }) },
  ],
  ['manifest-problem', 'warning', { source: { ...MANIFESTS, problems: ['a.yaml:1: no port'] } }],
  ['family-left-out', 'info', { leftOut: [{ family: 'IPv6' as const, reason: 'no ip6tables', since: 0 }] }],
  ['port-taken', 'warning', { families: [{ ...FAMILY, takenPorts: ['a port cannot be held'] }] }],
  ['draining', 'info', { families: [{ ...FAMILY, isDraining: true }] }],
  [
    'resource-not-watched',
    'error',
    { source: api({ hasListed: true, failingSince: '14:03', reason: '403' }) },
  ],
  ['not-served-yet', 'warning', { families: [{ ...FAMILY, isServed: false }] }],
  [
    'sync-failed',
    'error',
    {
      families: [
        {
          ...FAMILY,
          lastSync: {
            at: 0,
            kind: 'failed' as const,
            cause: '',
            ms: 1,
            commits: 0,
            objects: 0,
            error: 'EBUSY',
          },
        },
      ],
    },
  ],
  ['service-refused', 'error', { families: [{ ...FAMILY, refused: [{ servicePort: 'a', error: 'E' }] }] }],
  ['conntrack-nearly-full', 'warning', { conntrack: { count: 95, max: 100 } }],
  ['conntrack-full', 'error', { conntrack: { count: 100, max: 100 } }],
])('%s is found, an %s', (code, severity, more) => {
  const findings = statusFindings({ ...WELL, ...more });
  expect(findings.map((finding) => [finding.code, finding.severity])).toEqual([[code, severity]]);
});

test('it is starting until every family that can be served has its first rules', () => {
  const stage = (families: FamilyStatus[], leftOut: (typeof LEFT_OUT)[] = []) =>
    stageOf({ families, leftOut, findings: statusFindings({ ...WELL, families, leftOut }) });
  const unserved: FamilyStatus = { ...FAMILY, family: 'IPv6', isServed: false };
  expect(stage([FAMILY, unserved])).toBe('starting');
  expect(stage([FAMILY, unserved], [LEFT_OUT])).toBe('ok');
  expect(stage([{ ...FAMILY, refused: [{ servicePort: 'a', error: 'E' }] }])).toBe('errors');
});

const LEFT_OUT = { family: 'IPv6', reason: 'no ip6tables', since: 0 } as const;

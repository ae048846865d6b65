import { expect, test } from 'vitest';
import type { FamilyStatus, SourceStatus } from '../../src/explain/status.ts';
import { stageOf, statusFindings } from '../../src/explain/statusFindings.ts';

type Status = Parameters<typeof statusFindings>[0];

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
const WELL: Status = {
  source: MANIFESTS,
  families: [FAMILY],
  leftOut: [],
  conntrack: { count: 1, max: 100 },
  late: [],
};
const FAILED = { at: 0, kind: 'failed', cause: '', ms: 1, commits: 0, objects: 0, error: 'EBUSY' } as const;
const LEFT_OUT = { family: 'IPv6', reason: 'no ip6tables', since: 0 } as const;
const REFUSED = { refused: [{ servicePort: 'a', error: 'E' }] };

const family = (change: Partial<FamilyStatus>) => ({ families: [{ ...FAMILY, ...change }] });
function api(hasListed: boolean, failure?: { failingSince: string; reason: string }) {
  const resources = [{ resource: 'services', hasListed, ...failure }];
  return { source: { kind: 'api', server: 'https://a', reconnects: 0, resources } as const };
}
const FAILING = { failingSince: '14:03', reason: '403' };

test.each<readonly [string, Partial<Status>]>([
  ['', {}],
  ['', api(true)],
  ['error sync-late', { late: ['IPv4'] }],
  ['warning resource-not-listed', api(false)],
  ['error resource-not-listed', api(false, FAILING)],
  ['error resource-not-watched', api(true, FAILING)],
  ['warning manifest-problem', { source: { ...MANIFESTS, problems: ['a.yaml:1: no port'] } }],
  ['info family-left-out', { leftOut: [LEFT_OUT] }],
  ['warning port-taken', family({ takenPorts: ['a port cannot be held'] })],
  ['info draining', family({ isDraining: true })],
  ['warning not-served-yet', family({ isServed: false })],
  ['error sync-failed', family({ lastSync: FAILED })],
  ['error service-refused', family(REFUSED)],
  ['warning conntrack-nearly-full', { conntrack: { count: 95, max: 100 } }],
  ['error conntrack-full', { conntrack: { count: 100, max: 100 } }],
])('%s: %j', (expected, more) => {
  const findings = statusFindings({ ...WELL, ...more });
  expect(findings.map(({ severity, code }) => `${severity} ${code}`).join()).toBe(expected);
});

test('it is starting until every family that can be served has its first rules', () => {
  const stage = (families: FamilyStatus[], leftOut: (typeof LEFT_OUT)[] = []) =>
    stageOf({ families, leftOut, findings: statusFindings({ ...WELL, families, leftOut }) });
  const unserved: FamilyStatus = { ...FAMILY, family: 'IPv6', isServed: false };
  expect(stage([FAMILY, unserved])).toBe('starting');
  expect(stage([FAMILY, unserved], [LEFT_OUT])).toBe('ok');
  expect(stage([{ ...FAMILY, ...REFUSED }])).toBe('errors');
});

/** Reads a status, or a report of doctor, that came from elsewhere: one that lacks something, or has something of another kind, is none. */
import { DOCTOR_GROUPS, type DoctorReport } from '../explain/doctorReport.ts';
import type { Status } from '../explain/status.ts';
import { MODE_NAMES } from '../model/mode.ts';
import { ownField } from '../text/cursor.ts';
import { conforms, FAMILY, fields, listOf, optional, type Shape } from './shapes.ts';

const SYNC: Shape = fields({
  at: 'number',
  kind: 'text',
  cause: 'text',
  ms: 'number',
  planMs: optional('number'),
  writeMs: optional('number'),
  commits: 'number',
  objects: 'number',
  error: optional('text'),
});

const FAMILY_STATUS: Shape = fields({
  family: FAMILY,
  isServed: 'flag',
  services: 'number',
  servicePorts: 'number',
  endpoints: 'number',
  lastSync: optional(SYNC),
  syncs: fields({ full: 'number', incremental: 'number', nothing: 'number', failed: 'number' }),
  lastVerification: optional(fields({ at: 'number', ms: 'number', isUnchanged: 'flag' })),
  isNotified: 'flag',
  refused: listOf(fields({ servicePort: 'text', error: 'text' })),
  foreignChanges: fields({
    count: 'number',
    byProgram: { mapOf: 'number' },
    last: optional(
      fields({ at: 'number', objects: listOf('text'), program: 'text', repairedMs: optional('number') }),
    ),
  }),
  proof: fields({
    isOn: 'flag',
    packets: 'number',
    lastAt: optional('number'),
    disagreements: listOf(
      fields({ since: 'number', service: 'text', packet: 'text', planned: 'text', kernel: 'text' }),
    ),
    disagreementCount: 'number',
  }),
  history: fields({
    records: 'number',
    mostRecords: 'number',
    bytes: 'number',
    mostBytes: 'number',
    since: 'number',
  }),
});

const FINDING: Shape = fields({
  code: 'text',
  severity: { oneOf: ['error', 'warning', 'info'] },
  text: 'text',
  evidence: optional('text'),
  consequence: optional('text'),
  cure: optional('text'),
  reference: optional(fields({ object: 'text', field: 'text', where: optional('text') })),
});

const STATUS: Shape = fields({
  version: 'text',
  processId: 'number',
  node: 'text',
  mode: { oneOf: MODE_NAMES },
  layout: 'text',
  networkNamespace: optional('text'),
  startedAt: 'number',
  now: 'number',
  source: fields({ kind: { oneOf: ['api', 'manifests'] }, lastEventAt: optional('number') }),
  families: listOf(FAMILY_STATUS),
  leftOut: listOf(fields({ family: FAMILY, reason: 'text', since: 'number' })),
  conntrack: optional(fields({ count: 'number', max: 'number' })),
  findings: listOf(FINDING),
});

const RESOURCE: Shape = fields({
  resource: 'text',
  hasListed: 'flag',
  failingSince: optional('text'),
  reason: optional('text'),
});

const SOURCES: Readonly<Record<Status['source']['kind'], Shape>> = {
  api: fields({ server: 'text', reconnects: 'number', resources: listOf(RESOURCE) }),
  manifests: fields({ paths: listOf('text'), problems: listOf('text') }),
};

export function isStatus(raw: unknown): raw is Status {
  if (!conforms(raw, STATUS)) return false;
  const source = ownField(raw, 'source');
  return conforms(source, SOURCES[ownField(source, 'kind') === 'api' ? 'api' : 'manifests']);
}

const DOCTOR_REPORT: Shape = fields({
  node: 'text',
  mode: { oneOf: MODE_NAMES },
  at: 'number',
  hasProblems: 'flag',
  groups: listOf(
    fields({
      name: { oneOf: DOCTOR_GROUPS },
      findings: listOf(FINDING),
      fine: listOf('text'),
      notEvaluated: listOf('text'),
    }),
  ),
});

export function isDoctorReport(raw: unknown): raw is DoctorReport {
  return conforms(raw, DOCTOR_REPORT);
}

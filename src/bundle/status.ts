/** Reads a status, or a report of doctor, that came from elsewhere: one that lacks something, or has something of another kind, is none. */
import { DOCTOR_GROUPS, type DoctorReport } from '../explain/doctorReport.ts';
import type { Status } from '../explain/status.ts';
import { MODE_NAMES } from '../model/mode.ts';
import { ownField } from '../text/cursor.ts';
import { conforms, FAMILY, fields, every, maybe, type Shape } from './shapes.ts';

const SYNC: Shape = fields({
  at: 'number',
  kind: 'text',
  cause: 'text',
  ms: 'number',
  planMs: maybe('number'),
  writeMs: maybe('number'),
  commits: 'number',
  objects: 'number',
  error: maybe('text'),
});

const FAMILY_STATUS: Shape = fields({
  family: FAMILY,
  isServed: 'flag',
  services: 'number',
  servicePorts: 'number',
  endpoints: 'number',
  lastSync: maybe(SYNC),
  syncs: fields({ full: 'number', incremental: 'number', nothing: 'number', failed: 'number' }),
  lastVerification: maybe(fields({ at: 'number', ms: 'number', isUnchanged: 'flag' })),
  isNotified: 'flag',
  takenPorts: maybe(every('text')),
  isDraining: maybe('flag'),
  refused: every(fields({ servicePort: 'text', error: 'text' })),
  foreignChanges: fields({
    count: 'number',
    byProgram: { mapOf: 'number' },
    last: maybe(
      fields({ at: 'number', objects: every('text'), program: 'text', repairedMs: maybe('number') }),
    ),
  }),
});

const FINDING: Shape = fields({
  code: 'text',
  severity: { oneOf: ['error', 'warning', 'info'] },
  text: 'text',
  evidence: maybe('text'),
  consequence: maybe('text'),
  cure: maybe('text'),
  reference: maybe(fields({ object: 'text', field: 'text', where: maybe('text') })),
});

const STATUS: Shape = fields({
  version: 'text',
  processId: 'number',
  node: 'text',
  mode: { oneOf: MODE_NAMES },
  layout: 'text',
  networkNamespace: maybe('text'),
  startedAt: 'number',
  now: 'number',
  source: fields({ kind: { oneOf: ['api', 'manifests'] }, lastEventAt: maybe('number') }),
  families: every(FAMILY_STATUS),
  leftOut: every(fields({ family: FAMILY, reason: 'text', since: 'number' })),
  state: maybe({ oneOf: ['starting', 'errors', 'ok'] }),
  wait: maybe(
    fields({
      isApplied: 'flag',
      milliseconds: 'number',
      open: every('text'),
      warnings: every('text'),
    }),
  ),
  conntrack: maybe(fields({ count: 'number', max: 'number' })),
  findings: every(FINDING),
});

const RESOURCE: Shape = fields({
  resource: 'text',
  hasListed: 'flag',
  encoding: maybe('text'),
  failingSince: maybe('text'),
  reason: maybe('text'),
});

const SOURCES: Readonly<Record<Status['source']['kind'], Shape>> = {
  api: fields({ server: 'text', reconnects: 'number', resources: every(RESOURCE) }),
  manifests: fields({ paths: every('text'), problems: every('text') }),
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
  groups: every(
    fields({
      name: { oneOf: DOCTOR_GROUPS },
      findings: every(FINDING),
      fine: every('text'),
      notEvaluated: every('text'),
    }),
  ),
});

export function isDoctorReport(raw: unknown): raw is DoctorReport {
  return conforms(raw, DOCTOR_REPORT);
}

/** The status of a plan that is written nowhere: how much there is, and nothing of a kernel. */
import type { FamilyStatus, SourceStatus, Status } from '../../explain/status.ts';
import { statusFindings } from '../../explain/statusFindings.ts';
import type { FamilySubject, Subject } from '../../explain/subject.ts';
import { VERSION } from '../../version.ts';

interface PlannedParts {
  readonly subject: Pick<Subject, 'nodeName' | 'mode' | 'layout'>;
  readonly families: readonly {
    readonly subject: FamilySubject;
    readonly services: number;
  }[];
  readonly source: SourceStatus;
  readonly startedAt: number;
  readonly answeredBy: NonNullable<Status['answeredBy']>;
}

export function plannedStatus(parts: PlannedParts): Status {
  const { subject, families, source, startedAt, answeredBy } = parts;
  return {
    version: VERSION,
    processId: process.pid,
    node: subject.nodeName,
    mode: subject.mode,
    layout: subject.layout,
    startedAt,
    now: Date.now(),
    source,
    families: families.map(familyStatus),
    leftOut: [],
    findings: statusFindings({ source, families: [], leftOut: [], late: [] }),
    answeredBy,
  };
}

function familyStatus({ subject, services }: PlannedParts['families'][number]): FamilyStatus {
  const { family, plan } = subject;
  return {
    family,
    isServed: false,
    services,
    servicePorts: plan.servicePorts.size,
    endpoints: plan.endpointCount,
    syncs: { full: 0, incremental: 0, nothing: 0, failed: 0 },
    isNotified: false,
    refused: [],
    foreignChanges: { count: 0, byProgram: {} },
  };
}

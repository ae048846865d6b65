/** The routes of the API, answered from a bundle: as it was when it was taken. */
import { nodeRoutes } from '../../daemon/api/nodeRoutes.ts';
import { type ApiRoute, RefusedQuestion } from '../../daemon/api/routes.ts';
import { snapshotLines } from '../../daemon/api/snapshot.ts';
import { QuestionTurns } from '../../daemon/api/turns.ts';
import type { DoctorReport } from '../../explain/doctorReport.ts';
import type { Status } from '../../explain/status.ts';
import type { Subject } from '../../explain/subject.ts';
import { systemClock } from '../../time/systemClock.ts';
import type { openBundle } from '../bundleSubject.ts';
import { plannedStatus } from './plannedStatus.ts';

type OpenedBundle = Awaited<ReturnType<typeof openBundle>>;

export function bundleRoutes({ bundle, subject: taken }: OpenedBundle): readonly ApiRoute[] {
  const turns = new QuestionTurns({ clock: systemClock, isSyncing: () => false });
  const subject: Subject = { ...taken, pause: () => turns.pause() };
  return nodeRoutes({
    status: () => statusOf(bundle, subject),
    subject: () => subject,
    recentEvents: () => bundle.events,
    snapshot: () =>
      snapshotLines({
        header: bundle.header,
        node: bundle.nodes.find(({ name }) => name === bundle.header.node),
        families: subject.families,
        pause: () => turns.pause(),
      }),
    doctor: doctorOf(bundle),
    turns,
  });
}

/** What doctor found then. */
function doctorOf({ doctor, missing }: OpenedBundle['bundle']): () => Promise<DoctorReport> {
  const why = missing.find((each) => each.startsWith('doctor:'));
  return () =>
    doctor
      ? Promise.resolve(doctor)
      : Promise.reject(new RefusedQuestion(404, 'not-here', why ?? 'what doctor found is not in the bundle'));
}

/** What the proxy said then; where none ran, what the plan has. */
function statusOf({ status, header, path }: OpenedBundle['bundle'], subject: Subject): Status {
  const answeredBy = { kind: 'bundle', file: path, takenAt: header.takenAt } as const;
  if (status) return { ...status, answeredBy };
  return plannedStatus({
    subject,
    families: subject.families.map((family) => ({
      subject: family,
      services: [...family.services()].length,
    })),
    source: { kind: 'manifests', paths: [], problems: [] },
    startedAt: header.takenAt,
    answeredBy,
  });
}

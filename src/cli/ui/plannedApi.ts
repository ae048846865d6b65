/** The routes of the API, answered from a plan in this process. */
import { toV1alpha1, type ValidConfig } from '../../config/effective.ts';
import type { Settings } from '../../config/settings.ts';
import { type AskedNode, nodeRoutes } from '../../daemon/api/nodeRoutes.ts';
import type { ApiRoute } from '../../daemon/api/routes.ts';
import { snapshotLines } from '../../daemon/api/snapshot.ts';
import { QuestionTurns } from '../../daemon/api/turns.ts';
import { doctor } from '../../doctor/doctor.ts';
import { changesIn } from '../../explain/events.ts';
import type { SourceStatus } from '../../explain/status.ts';
import type { Subject } from '../../explain/subject.ts';
import { FAMILIES } from '../../model/ip.ts';
import { systemClock } from '../../time/systemClock.ts';
import { VERSION } from '../../version.ts';
import type { PlannedNode } from './plannedNode.ts';
import { plannedStatus } from './plannedStatus.ts';

interface PlannedApiOptions extends Pick<Subject, 'locate' | 'unserved'>, Pick<AskedNode, 'nodes'> {
  readonly node: PlannedNode;
  readonly config: ValidConfig;
  readonly settings: Settings;
  readonly source: () => SourceStatus;
  /** False: what was read stays as it was. */
  readonly hasEvents: boolean;
}

export function plannedRoutes(options: PlannedApiOptions): readonly ApiRoute[] {
  const { node, config, settings, source, hasEvents, locate, unserved, nodes } = options;
  const { nodeName, mode, layout, detectLocal } = settings;
  const turns = new QuestionTurns({ clock: systemClock, isSyncing: () => node.isPlanning });
  const startedAt = Date.now();
  const subject = (): Subject => ({
    nodeName,
    mode,
    layout,
    families: node.families.map((family) => family.subject),
    detectLocal: detectLocal.mode,
    serviceCidrs: node.serviceCidrs,
    now: () => Date.now(),
    changesOf: (service) => changesIn(node.feed.recent, service),
    pause: () => turns.pause(),
    ...(locate && { locate }),
    ...(unserved && { unserved }),
  });
  const asked: AskedNode = {
    status: () => {
      const { lastEventAt, families } = node;
      return plannedStatus({
        subject: settings,
        families,
        source: { ...source(), ...(lastEventAt !== undefined && { lastEventAt }) },
        startedAt,
        answeredBy: { kind: 'plan' },
      });
    },
    subject,
    recentEvents: () => node.feed.recent,
    ...(hasEvents && { watch: (signal: AbortSignal) => node.feed.subscribe(signal) }),
    snapshot: () =>
      snapshotLines({
        header: {
          kind: 'header',
          format: 1,
          version: VERSION,
          node: nodeName,
          mode,
          takenAt: Date.now(),
          config: toV1alpha1(config),
          serviceCidrs: node.serviceCidrs,
          families: subject().families.map(({ family, host }) => ({
            family,
            addresses: host.addresses,
            refused: [],
          })),
        },
        node: node.currentNode,
        families: subject().families,
        pause: () => turns.pause(),
      }),
    // Of the machine nothing is known: it is another one, or none.
    doctor: () => doctor({ config, nodeName, families: FAMILIES, subject: subject(), only: ['services'] }),
    nodes,
    turns,
  };
  return nodeRoutes(asked);
}

/** What happened, as routes: changes and other events that are kept. */
import type { ChangeRecord, WatchEvent } from '../../explain/types.ts';
import type { ObjectKey } from '../../model/objects.ts';
import { type ApiRoute, listOfItems, RefusedQuestion } from './routes.ts';
import type { QuestionTurns } from './turns.ts';

export interface RecordOptions {
  /** Newest first; of one service, or of all. */
  readonly records: (service?: ObjectKey) => readonly ChangeRecord[];
  /** Oldest first. Unset: the changes are all that is known. */
  readonly recentEvents?: (() => readonly WatchEvent[]) | undefined;
  readonly turns: QuestionTurns;
}

const KINDS: readonly WatchEvent['kind'][] = ['change', 'sync', 'foreign', 'refused', 'conntrack'];

export function recordRoutes(options: RecordOptions): readonly ApiRoute[] {
  const { records, turns, recentEvents = () => changesOf(records) } = options;
  const pause = (): Promise<void> | undefined => turns.pause();
  return [
    {
      path: '/v1/events',
      parameters: ['kind'],
      answer: ({ query }) => {
        const kinds = kindsOf(query);
        return listOfItems(
          recentEvents().filter(({ kind }) => kinds.includes(kind)),
          pause,
        );
      },
    },
    {
      path: '/v1/history',
      parameters: ['service'],
      answer: ({ query }) => listOfItems(records(query.get('service') ?? undefined), pause),
    },
  ];
}

function changesOf(records: RecordOptions['records']): readonly WatchEvent[] {
  return records()
    .toReversed()
    .map((record) => ({ kind: 'change', ...record }));
}

/** The parameter may be there several times. */
function kindsOf(query: URLSearchParams): readonly string[] {
  const asked = query.getAll('kind');
  const known: readonly string[] = KINDS;
  if (asked.length === 0) return known;
  if (asked.every((kind) => known.includes(kind))) return asked;
  throw new RefusedQuestion(400, 'parameter', `kind must be one of ${KINDS.join(', ')}`);
}

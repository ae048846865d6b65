/** What happened of late, as routes: all events, and the changes of services among them. */
import { changesIn } from '../../explain/events.ts';
import type { WatchEvent } from '../../explain/types.ts';
import { type ApiRoute, listOfItems, RefusedQuestion } from './routes.ts';
import type { QuestionTurns } from './turns.ts';

export interface RecordOptions {
  /** Oldest first. */
  readonly recentEvents: () => readonly WatchEvent[];
  readonly turns: QuestionTurns;
}

const KINDS: readonly WatchEvent['kind'][] = ['change', 'sync', 'foreign', 'refused', 'conntrack'];

export function recordRoutes({ recentEvents, turns }: RecordOptions): readonly ApiRoute[] {
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
      answer: ({ query }) => listOfItems(changesIn(recentEvents(), query.get('service') ?? undefined), pause),
    },
  ];
}

/** The parameter may be there several times. */
function kindsOf(query: URLSearchParams): readonly string[] {
  const asked = query.getAll('kind');
  const known: readonly string[] = KINDS;
  if (asked.length === 0) return known;
  if (asked.every((kind) => known.includes(kind))) return asked;
  throw new RefusedQuestion(400, 'parameter', `kind must be one of ${KINDS.join(', ')}`);
}

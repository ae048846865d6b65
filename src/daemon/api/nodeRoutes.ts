/** All routes of the local API, for whatever can answer: a running proxy, a plan in a command's process, a bundle. */
import type { Status } from '../../explain/status.ts';
import type { ChangeRecord } from '../../explain/types.ts';
import type { ObjectKey } from '../../model/objects.ts';
import { namesOf } from './names.ts';
import { type QuestionOptions, questionRoutes } from './questions.ts';
import { type ApiRoute, data, events, lines, listOfItems, noEvents } from './routes.ts';

export interface AskedNode extends QuestionOptions {
  readonly status: () => Status;
  /** Newest first; of one service, or of all. */
  readonly records: (service?: ObjectKey) => readonly ChangeRecord[];
  /** Lines of JSON, from now on. Unset: nothing ever changes. */
  readonly watch?: (signal: AbortSignal) => AsyncIterable<string>;
  readonly snapshot: (withPast: boolean) => AsyncIterable<string>;
}

export function nodeRoutes(node: AskedNode): readonly ApiRoute[] {
  const { status, records, watch, snapshot, subject, turns } = node;
  return [
    { path: '/v1/status', parameters: [], answer: () => data(status()) },
    ...questionRoutes(node),
    {
      path: '/v1/history',
      parameters: ['service'],
      answer: ({ query }) => listOfItems(records(query.get('service') ?? undefined), () => turns.pause()),
    },
    {
      path: '/v1/watch',
      parameters: ['format'],
      answer: ({ query, signal }) => {
        if (!watch) return noEvents();
        return query.get('format') === 'events' ? events(watch(signal)) : lines(watch(signal), true);
      },
    },
    {
      path: '/v1/snapshot',
      parameters: ['history'],
      answer: ({ query }) => lines(snapshot(query.get('history') === 'true')),
    },
    {
      path: '/v1/names',
      parameters: ['kind', 'prefix', 'service'],
      answer: async ({ query }) => {
        await turns.begin();
        return data(await namesOf(subject(), query));
      },
    },
  ];
}

/** All routes of the local API, for whatever can answer: a running proxy, a plan in a command's process, a bundle. */
import type { DoctorReport } from '../../explain/doctorReport.ts';
import type { NodeStatus } from '../../explain/nodes.ts';
import { type QuestionOptions, questionRoutes } from './questions.ts';
import { type RecordOptions, recordRoutes } from './recordRoutes.ts';
import { type StatusOptions, statusRoute } from './statusRoute.ts';
import { type ApiRoute, data, events, lines, noEvents, RefusedQuestion } from './routes.ts';

export interface AskedNode extends QuestionOptions, RecordOptions, StatusOptions {
  /** Lines of JSON, from now on. Unset: nothing ever changes. */
  readonly watch?: (signal: AbortSignal) => AsyncIterable<string>;
  readonly snapshot: () => AsyncIterable<string>;
  /** Unset: nothing is known of the machine. */
  readonly doctor?: (() => Promise<DoctorReport>) | undefined;
  /** All nodes, worst first. Unset: nothing is known of others. */
  readonly nodes?: (() => Promise<readonly NodeStatus[]>) | undefined;
}

export function nodeRoutes(node: AskedNode): readonly ApiRoute[] {
  const { watch, snapshot, doctor, nodes } = node;
  return [
    statusRoute(node),
    ...questionRoutes(node),
    ...recordRoutes(node),
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
      parameters: [],
      answer: () => lines(snapshot()),
    },
    {
      path: '/v1/doctor',
      parameters: [],
      answer: async () => {
        if (doctor) return data(await doctor());
        throw new RefusedQuestion(
          404,
          'no-machine',
          'nothing is known here of the machine of the node',
          'Run junction doctor on the node.',
        );
      },
    },
    {
      path: '/v1/nodes',
      parameters: [],
      answer: async () => {
        if (nodes) return data(await nodes());
        throw new RefusedQuestion(404, 'not-here', 'this page is about one node', OF_ALL_NODES);
      },
    },
  ];
}

const OF_ALL_NODES = 'junction ui --kubeconfig FILE shows all nodes of a cluster.';

/** All nodes, worst first: of a cluster, where they can be asked; every other source is one node. */
import { type ApiRoute, data, RefusedQuestion } from '../../daemon/api/routes.ts';
import type { NodeStatus } from '../../explain/nodes.ts';
import type { Clock } from '../../time/clock.ts';

const PATH = '/v1/nodes';
/** Each answer asks every node: it is kept for a while, and all who ask meanwhile wait for the same one. */
const KEPT_MS = 15_000;

export function nodesRoute(ask: () => Promise<readonly NodeStatus[]>, clock: Clock): ApiRoute {
  let kept: { readonly answer: Promise<readonly NodeStatus[]>; readonly until: number } | undefined;
  return {
    path: PATH,
    parameters: [],
    answer: async () => {
      if (!kept || clock.now() >= kept.until) kept = { answer: ask(), until: clock.now() + KEPT_MS };
      try {
        return data(await kept.answer);
      } catch (error) {
        kept = undefined;
        throw error;
      }
    },
  };
}

export function noNodes(): ApiRoute {
  return {
    path: PATH,
    parameters: [],
    answer: () => {
      throw new RefusedQuestion(
        404,
        'not-here',
        'this page is about one node',
        'junction ui --kubeconfig FILE shows all nodes of a cluster.',
      );
    },
  };
}

/** What the page is answered from: the running proxy, manifests, a cluster or a bundle. */
import type { ParsedFlags } from '../../config/commandLine.ts';
import { apiPage, type ApiRoute } from '../../daemon/api/routes.ts';
import type { Status } from '../../explain/status.ts';
import type { Log } from '../../log/log.ts';
import type { StreamingPage } from '../../telemetry/http/server.ts';
import { openBundle } from '../bundleSubject.ts';
import { askJson } from '../localApi.ts';
import type { Output } from '../output.ts';
import type { QuestionSource } from '../questionSource.ts';
import { bundleRoutes } from './bundleApi.ts';
import { openCluster } from './clusterSource.ts';
import { openManifests } from './manifestSource.ts';
import { relay } from './relay.ts';

export interface PageSource {
  readonly api: StreamingPage;
  /** For people: `node1, as the running proxy has it` */
  readonly what: string;
  readonly close: () => Promise<void>;
}

/** Routes as a page that survives their faults. */
export type PagedRoutes = (routes: readonly ApiRoute[]) => StreamingPage;

export async function openPageSource(
  source: QuestionSource,
  parsed: ParsedFlags,
  output: Output,
  log: Log,
): Promise<PageSource> {
  const paged: PagedRoutes = (routes) =>
    apiPage(routes, (error) => log.error('A question failed', { err: error }));
  switch (source.kind) {
    case 'live':
      return liveSource(source.socket);
    case 'bundle': {
      const opened = await openBundle(source.file, output);
      const { node, takenAt } = opened.bundle.header;
      const time = new Date(takenAt).toISOString();
      return {
        api: paged(bundleRoutes(opened)),
        what: `${node} as it was at ${time}, from ${source.file}`,
        close: () => Promise.resolve(),
      };
    }
    case 'manifests':
      return openManifests(parsed, output, paged);
    case 'kubeconfig':
      return openCluster(parsed, output, log, paged);
  }
}

/** One that does not answer now is a mistake; one that goes and comes back later is not. */
async function liveSource(socket: string): Promise<PageSource> {
  const { node } = await askJson<Status>(socket, '/v1/status');
  return {
    api: relay(socket),
    what: `${node}, as the running proxy at ${socket} has it`,
    close: () => Promise.resolve(),
  };
}

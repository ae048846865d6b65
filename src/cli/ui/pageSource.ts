/** What the page is answered from: the running proxy, manifests, a cluster or a bundle. */
import { readlinkSync } from 'node:fs';
import type { ParsedFlags } from '../../config/commandLine.ts';
import { apiPage, type ApiRoute, data, RefusedQuestion } from '../../daemon/api/routes.ts';
import { attempt } from '../../errors.ts';
import { DOCTOR_GROUPS, type DoctorReport } from '../../explain/doctorReport.ts';
import type { Status } from '../../explain/status.ts';
import type { Log } from '../../log/log.ts';
import { FAMILIES } from '../../model/ip.ts';
import type { Answer, StreamingPage } from '../../telemetry/http/server.ts';
import { openBundle } from '../bundleSubject.ts';
import { doctorReport } from '../doctorCommand.ts';
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
      return liveSource(source.socket, paged, () => doctorReport(parsed, output, FAMILIES, DOCTOR_ONLY));
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

const DOCTOR = '/v1/doctor';
/** Trials and probes change something for a moment, and a page asks again and again. */
const DOCTOR_ONLY = DOCTOR_GROUPS.filter((name) => name !== 'kernel' && name !== 'probe');

/** One that does not answer now is a mistake; one that goes and comes back later is not. */
async function liveSource(
  socket: string,
  paged: PagedRoutes,
  doctor: () => Promise<DoctorReport>,
): Promise<PageSource> {
  const { node, networkNamespace } = await askJson<Status>(socket, '/v1/status');
  const proxy = relay(socket);
  const ours = attempt(() => readlinkSync('/proc/self/ns/net'));
  const answer = async (): Promise<Answer> => {
    if (networkNamespace === ours) return data(await doctor());
    const message = 'junction ui runs in another network than the proxy, and cannot look at its machine';
    throw new RefusedQuestion(404, 'no-machine', message, 'Run junction doctor on the node.');
  };
  const machine = paged([{ path: DOCTOR, parameters: [], answer }]);
  return {
    api: (request) => (request.path === DOCTOR ? machine : proxy)(request),
    what: `${node}, as the running proxy at ${socket} has it`,
    close: () => Promise.resolve(),
  };
}

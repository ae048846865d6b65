/** What an API server has now, as the input of a plan. */
import type { ValidConfig } from '../config/effective.ts';
import { JunctionError } from '../errors.ts';
import type { UnservedService } from '../explain/subject.ts';
import { unservedFor } from '../explain/unserved.ts';
import type { Cidr } from '../model/ip.ts';
import type { EndpointSlice, Node, ObjectKey, Service } from '../model/objects.ts';
import { projectService } from '../model/project/service.ts';
import { ApiSource } from '../sources/api/apiSource.ts';
import { ApiClient } from '../sources/api/client.ts';
import { wantedEncoding } from '../sources/api/encoding.ts';
import { loadAccess } from '../sources/api/credentials/load.ts';
import type { ApiFailure } from '../sources/api/failure.ts';
import type { SourceProblem } from '../sources/source.ts';
import { runPlugin } from '../system/pluginProcess.ts';
import { printMessage } from '../text/cursor.ts';
import { systemClock } from '../time/systemClock.ts';
import { VERSION } from '../version.ts';
import type { Output } from './output.ts';
import type { PlanInput } from './planInput.ts';

/** Longer than this, and people want to know what they wait for. */
const PROGRESS_MS = 1000;

export async function openClient({ clientConnection, master }: ValidConfig) {
  const { kubeconfig, qps, burst, contentType, acceptContentTypes } = clientConnection;
  const clock = systemClock;
  const access = await loadAccess({ kubeconfig, master, env: process.env, clock, runPlugin });
  const client = new ApiClient({
    access,
    clock,
    rateLimit: { qps, burst },
    userAgent: `junction/${VERSION} (${process.platform}/${process.arch})`,
    encoding: wantedEncoding(contentType, acceptContentTypes),
  });
  return { client, server: access.server.origin };
}

/** A proxy does not even list these; `undefined`: there is none, or it is served. */
export async function readOneService(
  config: ValidConfig,
  service: ObjectKey,
): Promise<UnservedService | undefined> {
  const [namespace = '', name = ''] = service.split('/');
  const { client } = await openClient(config);
  try {
    const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/services/${encodeURIComponent(name)}`;
    const response = await client.get(path);
    if (response.status === 404) return undefined;
    if (response.status !== 200) throw withoutRetry(await client.failureOf(response, `Service ${service}`));
    const chunks: Uint8Array[] = [];
    for await (const chunk of response.body) chunks.push(chunk);
    const projection = projectService(JSON.parse(Buffer.concat(chunks).toString('utf8')));
    if (projection.kind === 'ignored') return unservedFor(projection.reason);
    return projection.kind === 'invalid'
      ? unservedFor(projection.problems.map(printMessage).join('; '))
      : undefined;
  } finally {
    await client.close();
  }
}

/** Everything once. What the proxy would wait for and try again is an error here. */
export async function readCluster(config: ValidConfig, nodeName: string, output: Output): Promise<PlanInput> {
  const { client, server } = await openClient(config);
  const clock = systemClock;
  const progress = setTimeout(
    () => output.err(`Reading Services, EndpointSlices and the Node from ${server} …\n`),
    PROGRESS_MS,
  );
  const services = new Map<ObjectKey, Service>();
  const slices = new Map<ObjectKey, EndpointSlice>();
  const nodes = new Map<string, Node>();
  const problems: SourceProblem[] = [];
  let serviceCidrs: readonly Cidr[] = [];
  let source: ApiSource | undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      source = new ApiSource({
        client,
        nodeName,
        clock,
        withServiceCIDRs: config.mode === 'nftables',
        onDiagnostic: (diagnostic) => {
          if (diagnostic.kind === 'backingOff') reject(withoutRetry(diagnostic.failure));
        },
      });
      source
        .start({
          service: (key, current) => put(services, key, current),
          endpointSlice: (key, current) => put(slices, key, current),
          node: (name, current) => put(nodes, name, current),
          serviceCIDRs: (cidrs) => {
            serviceCidrs = cidrs;
          },
          report: (problem) => problems.push(problem),
          synced: resolve,
        })
        .catch(reject);
    });
  } finally {
    clearTimeout(progress);
    await source?.stop();
    await client.close();
  }
  return {
    services: [...services.values()],
    slices: [...slices.values()],
    nodes: [...nodes.values()],
    problems,
    ignored: [],
    places: new Map(),
    serviceCidrs,
    isCluster: true,
  };
}

/** The proxy would try again, and its hint says so. */
export function withoutRetry({ code, message, hint }: ApiFailure): JunctionError {
  return new JunctionError(code, message, { hint: hint.replace(/^Junction tries again\. /, '') });
}

function put<K, V>(map: Map<K, V>, key: K, value: V | undefined): void {
  if (value === undefined) map.delete(key);
  else map.set(key, value);
}

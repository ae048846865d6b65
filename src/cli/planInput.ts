/** What `junction plan` plans for: manifests, standard input, or what an API server has now. */
import type { ValidConfig } from '../config/index.ts';
import { JunctionError } from '../errors.ts';
import { runPlugin } from '../system/pluginProcess.ts';
import type { Cidr } from '../model/ip.ts';
import { type EndpointSlice, type Node, type ObjectKey, objectKey, type Service } from '../model/objects.ts';
import { ApiClient, type ApiFailure, ApiSource, loadAccess } from '../sources/api/index.ts';
import type { IgnoredObject } from '../sources/manifests/fileReading.ts';
import { loadManifests, type Manifests, readManifestStream } from '../sources/manifests/load.ts';
import type { SourceProblem } from '../sources/source.ts';
import { systemClock } from '../time/systemClock.ts';
import { VERSION } from '../version.ts';
import type { Output } from './output.ts';

export interface PlanInput {
  /** Of a cluster, `nodes` has the Node that is planned for, or none. */
  readonly isCluster: boolean;
  readonly services: readonly Service[];
  readonly slices: readonly EndpointSlice[];
  readonly nodes: readonly Node[];
  readonly problems: readonly SourceProblem[];
  /** Services and slices that are not for a proxy, each with the reason. */
  readonly ignored: readonly IgnoredObject[];
  /** Where cluster IPs come from, as far as the API server tells. */
  readonly serviceCidrs: readonly Cidr[];
}

/** Manifests from standard input, as with kubectl. */
export const STDIN = '-';
/** Longer than this, and people want to know what they wait for. */
const PROGRESS_MS = 1000;

export async function readPlanInput(
  config: ValidConfig,
  nodeName: string,
  output: Output,
): Promise<PlanInput> {
  if ((config.junction.manifests ?? []).length === 0) return readCluster(config, nodeName, output);
  return { ...(await readManifests(config, output)), isCluster: false, serviceCidrs: [] };
}

/** Files and directories, or standard input. */
export async function readManifests({ junction }: ValidConfig, output: Output): Promise<Manifests> {
  const { manifests, strictManifests: strict } = junction;
  const paths = manifests ?? [];
  if (!paths.includes(STDIN)) return loadManifests(paths, { strict });
  if (paths.length > 1)
    throw new JunctionError('MANIFESTS_UNREADABLE', 'manifests: - is standard input, and stands alone', {
      hint: 'Name files and directories, or pipe all documents, with --- between them.',
    });
  if (process.stdin.isTTY) output.err('Reading manifests from standard input, until Ctrl-D …\n');
  return readManifestStream(process.stdin, 'stdin', { strict });
}

/** Everything once. What the proxy would wait for and try again is an error here. */
async function readCluster(config: ValidConfig, nodeName: string, output: Output): Promise<PlanInput> {
  const { kubeconfig, qps, burst } = config.clientConnection;
  const { master } = config;
  const clock = systemClock;
  const access = await loadAccess({ kubeconfig, master, env: process.env, clock, runPlugin });
  const progress = setTimeout(
    () => output.err(`Reading Services, EndpointSlices and the Node from ${access.server.origin} …\n`),
    PROGRESS_MS,
  );
  const client = new ApiClient({
    access,
    clock,
    rateLimit: { qps, burst },
    userAgent: `junction/${VERSION} (${process.platform}/${process.arch})`,
  });
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
          endpointSlice: (namespace, name, current) => put(slices, objectKey(namespace, name), current),
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
    serviceCidrs,
    isCluster: true,
  };
}

/** The proxy would try again, and its hint says so. */
function withoutRetry({ code, message, hint }: ApiFailure): JunctionError {
  return new JunctionError(code, message, { hint: hint.replace(/^Junction tries again\. /, '') });
}

function put<K, V>(map: Map<K, V>, key: K, value: V | undefined): void {
  if (value === undefined) map.delete(key);
  else map.set(key, value);
}

/** `junction plan`: what would be written for given manifests, or for what an API server has. Needs no root and touches nothing. */
import type { Family, Cidr } from '../model/ip.ts';
import { objectKey, type EndpointSlice, type Node, type ObjectKey, type Service } from '../model/objects.ts';
import type { Planner } from '../plan/planner.ts';
import { capacityOf } from '../plan/capacity.ts';
import { printableLine } from '../text/printable.ts';
import { Proxier } from '../proxy/proxier.ts';
import { printSourceProblem, type SourceProblem } from '../sources/source.ts';
import type { Output, PrintOptions } from './output.ts';
import type { ValidConfig } from '../config/effective.ts';
import type { Settings } from '../config/settings.ts';
import { nodeOf, type PlanInput, planNotes, printPlans } from './planOutput.ts';
import { JunctionError } from '../errors.ts';
import { runPlugin } from '../system/pluginProcess.ts';
import { ApiSource } from '../sources/api/apiSource.ts';
import { ApiClient } from '../sources/api/client.ts';
import { loadAccess } from '../sources/api/credentials/load.ts';
import type { ApiFailure } from '../sources/api/failure.ts';
import { loadManifests, type Manifests, readManifestStream } from '../sources/manifests/store.ts';
import { systemClock } from '../time/systemClock.ts';
import { VERSION } from '../version.ts';

/**
 * Returns the exit code: 1 if something of the input could not be used. Rules of a part would take down the rest where
 * somebody pipes them into iptables-restore or sh, so then there are none; nor is there anything of files that could not
 * be read, nor with --strict.
 */
export async function planCommand(
  config: ValidConfig,
  settings: Settings,
  output: Output,
  options: PrintOptions,
): Promise<number> {
  const paths = config.junction.manifests ?? [];
  const input: PlanInput =
    paths.length === 0
      ? await readCluster(config, settings.nodeName, output)
      : { ...(await readManifests(config, output)), isCluster: false, serviceCidrs: [] };
  for (const problem of input.problems) output.err(`${printSourceProblem(problem)}\n`);
  for (const { where, object, reason } of input.ignored) {
    output.err(`${printableLine(`${where}: note: ${object} is left alone: ${reason}`)}\n`);
  }
  const errors = input.problems.filter(({ severity }) => severity === 'error');
  const isApplied = options.output === 'text' || options.output === 'script';
  const isUnread = errors.some(({ object }) => object === undefined);
  const needsAll = isApplied || config.junction.strictManifests;
  if (isUnread || (errors.length > 0 && needsAll)) {
    const count = errors.length === 1 ? 'an error' : `${errors.length} errors`;
    output.err(`junction: ${count} above, so nothing is planned\n`);
    return 1;
  }
  if (paths.length > 0 && errors.length === 0 && isNothing(input)) {
    const where = paths.map((path) => (path === STDIN ? 'standard input' : path)).join(', ');
    const what = `no Service, EndpointSlice, Endpoints or Node in ${where}`;
    output.err(`junction: ${printableLine(what)}, so nothing is planned\n`);
    return 1;
  }
  const note = nodeNote(input, settings);
  if (note !== undefined) output.err(`${printableLine(note)}\n`);
  const plans = options.families.map((family) => planFamily(family, settings, input));
  for (const line of plans.flatMap(planNotes)) output.err(`${printableLine(`warning: ${line}`)}\n`);
  output.out(printPlans(plans, settings, input, options));
  return errors.length > 0 ? 1 : 0;
}

/** Rules for nothing would take down everything: likelier a wrong path, or a pipe from a command that failed. */
function isNothing({ services, slices, nodes, ignored }: PlanInput): boolean {
  return [services, slices, nodes, ignored].every(({ length }) => length === 0);
}

/** A name with a typo looks like a node without endpoints. Of a cluster only this Node was asked for. */
function nodeNote({ nodes, isCluster }: PlanInput, { nodeName }: Settings): string | undefined {
  if (nodeOf(nodes, nodeName) || (nodes.length === 0 && !isCluster)) return undefined;
  const names = nodes.map(({ name }) => name).sort();
  const some = names.length > MOST_NAMES ? [...names.slice(0, MOST_NAMES), '…'] : names;
  const others = isCluster ? 'kubectl get nodes names those that are there' : `there are ${some.join(', ')}`;
  return `warning: no Node is named ${nodeName}; ${others}. --hostname-override says which one to plan for`;
}

const MOST_NAMES = 10;

function planFamily(family: Family, settings: Settings, input: PlanInput): Planner {
  const capacity = capacityOf(settings.mode, family);
  const proxy = new Proxier({ family, settings, writer: NO_WRITER, capacity });
  for (const service of input.services) proxy.onService(objectKey(service.namespace, service.name), service);
  for (const slice of input.slices) proxy.onEndpointSlice(objectKey(slice.namespace, slice.name), slice);
  proxy.onNode(nodeOf(input.nodes, settings.nodeName));
  proxy.replan();
  return proxy.plan;
}

const NO_WRITER = {
  sync: () => Promise.reject(new Error('a plan is not written anywhere')),
  requestFull: (): void => {},
};

/** Manifests from standard input, as with kubectl. */
const STDIN = '-';
/** Longer than this, and people want to know what they wait for. */
const PROGRESS_MS = 1000;

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

/** The page of a cluster, from anywhere: what one node does, by what the API server says now; and how all nodes are. */
import type { ParsedFlags } from '../../config/commandLine.ts';
import type { ValidConfig } from '../../config/effective.ts';
import { askForService } from '../../daemon/api/askForService.ts';
import { SourceHealth } from '../../daemon/sourceHealth.ts';
import type { SourceStatus } from '../../explain/status.ts';
import type { Log } from '../../log/log.ts';
import { ApiSource } from '../../sources/api/apiSource.ts';
import type { ApiClient } from '../../sources/api/client.ts';
import { ApiFailure } from '../../sources/api/failure.ts';
import { printSourceProblem } from '../../sources/source.ts';
import type { Kubectl } from '../../system/kubectlExec.ts';
import { systemTimestamps } from '../../telemetry/http/timestamp.ts';
import { printableLine } from '../../text/printable.ts';
import { systemClock } from '../../time/systemClock.ts';
import { allNodes } from '../allNodes.ts';
import { openClient, withoutRetry } from '../clusterInput.ts';
import { loadValid, nodeSettings } from '../configuration.ts';
import { nodeObjects } from '../junctionPods.ts';
import { withKubeconfigFlag } from '../offlineSubject.ts';
import type { Output } from '../output.ts';
import { nodeNote } from '../planInput.ts';
import { keptFor } from './keptAnswer.ts';
import type { PagedRoutes, PageSource } from './pageSource.ts';
import { plannedRoutes } from './plannedApi.ts';
import { PlannedNode } from './plannedNode.ts';

/** Where Junction's pods are, by the manifests in deploy/. */
const NAMESPACE = 'kube-system';
/** Each answer asks every node. */
const KEPT_MS = 15_000;
/** Longer than this, and people want to know what they wait for. */
const PROGRESS_MS = 1000;

export async function openCluster(
  parsed: ParsedFlags,
  output: Output,
  log: Log,
  paged: PagedRoutes,
): Promise<PageSource> {
  const given = withKubeconfigFlag(loadValid(parsed).config, parsed);
  const { client, server } = await openClient(given);
  const say = (text: string): void => output.err(`${printableLine(text)}\n`);
  const progress = setTimeout(
    () => say(`Reading Services, EndpointSlices and Nodes from ${server} …`),
    PROGRESS_MS,
  );
  try {
    const config = await withNode(given, client, say);
    const settings = nodeSettings(config);
    const node = new PlannedNode({ settings, onProblem: (problem) => say(printSourceProblem(problem)) });
    const health = new SourceHealth({ clock: systemClock, now: systemTimestamps, log, metrics: NO_METRICS });
    const source = await startSource(client, node, config, health);
    const routes = plannedRoutes({
      node,
      config,
      settings,
      source: () => statusOf(server, health),
      hasEvents: true,
      unserved: (service) => askForService(client, service),
      nodes: keptFor(KEPT_MS, () => allNodes(client, kubectlFor(given), NAMESPACE)),
    });
    return {
      api: paged(routes),
      what: `${settings.nodeName}, as it would serve what ${server} has`,
      close: async () => {
        await source.stop();
        health.close();
        await client.close();
      },
    };
  } catch (error) {
    await client.close();
    throw error;
  } finally {
    clearTimeout(progress);
  }
}

function kubectlFor({ clientConnection: { kubeconfig }, master }: ValidConfig): Kubectl {
  const flags = [
    ...(kubeconfig === '' ? [] : ['--kubeconfig', kubeconfig]),
    ...(master === '' ? [] : ['--server', master]),
  ];
  return { flags, env: process.env };
}

/** A laptop is no node: without --hostname-override it is the first one. */
async function withNode(
  config: ValidConfig,
  client: ApiClient,
  say: (text: string) => void,
): Promise<ValidConfig> {
  const settings = nodeSettings(config);
  let names: readonly string[];
  try {
    names = [...(await nodeObjects(client)).keys()].sort();
  } catch (error) {
    if (!(error instanceof ApiFailure)) throw error;
    if (error.kind !== 'forbidden') throw withoutRetry(error);
    say(`note: nodes cannot be listed: ${error.message}`);
    return config;
  }
  const [first] = names;
  if (first === undefined || names.includes(settings.nodeName)) return config;
  if (config.hostnameOverride !== '') {
    say(nodeNote({ nodes: [], isCluster: true }, settings) ?? '');
    return config;
  }
  say(`note: this is what ${first} does; --hostname-override names another node`);
  return { ...config, hostnameOverride: first };
}

/** Before the first list, a failure is the answer; afterwards it is tried again, and the status says so. */
async function startSource(
  client: ApiClient,
  node: PlannedNode,
  config: ValidConfig,
  health: SourceHealth,
): Promise<ApiSource> {
  let isListing = true;
  let onFailure: (error: Error) => void = () => undefined;
  const failed = new Promise<never>((_, reject) => {
    onFailure = reject;
  });
  const source = new ApiSource({
    client,
    nodeName: nodeSettings(config).nodeName,
    clock: systemClock,
    withServiceCIDRs: config.mode === 'nftables',
    onDiagnostic: (diagnostic) => {
      if (isListing && diagnostic.kind === 'backingOff') onFailure(withoutRetry(diagnostic.failure));
      else if ('resource' in diagnostic) health.note(diagnostic);
    },
  });
  try {
    await source.start(node);
    await Promise.race([node.ready, failed]);
  } catch (error) {
    await source.stop();
    throw error;
  }
  isListing = false;
  return source;
}

const NO_METRICS = { resourceUp: (): void => {}, resourceFailed: (): void => {} };

function statusOf(server: string, health: SourceHealth): SourceStatus {
  return {
    kind: 'api',
    server,
    reconnects: health.reconnects,
    resources: health.resources().map(({ resource, hasListed, since, reason }) => ({
      resource,
      hasListed,
      ...(since !== undefined && { failingSince: since }),
      ...(reason !== undefined && { reason }),
    })),
  };
}

/** Where the objects come from, by configuration: manifests, or an API server. */
import type { ValidConfig } from '../config/effective.ts';
import type { SendEvent } from '../telemetry/events/sender.ts';
import type { ResourceHealth } from '../telemetry/http/health.ts';
import { systemTimestamps } from '../telemetry/http/timestamp.ts';
import { runPlugin } from '../system/pluginProcess.ts';
import type { Log } from '../log/log.ts';
import type { Registry } from '../telemetry/metrics/instruments.ts';
import { RestClientMetrics } from '../telemetry/metrics/restClientMetrics.ts';
import { ApiSource } from '../sources/api/apiSource.ts';
import { ApiClient } from '../sources/api/client.ts';
import { wantedEncoding } from '../sources/api/encoding.ts';
import type { ApiAccess } from '../sources/api/credentials/identity.ts';
import { loadAccess } from '../sources/api/credentials/load.ts';
import type { ApiDiagnostic, ResourceDiagnostic } from '../sources/api/diagnostics.ts';
import { ManifestSource } from '../sources/manifests/source.ts';
import { checkRoots } from '../sources/manifests/files.ts';
import type { SourceStatus } from '../explain/status.ts';
import type { UnservedService } from '../explain/subject.ts';
import { unservedInFiles } from '../explain/unserved.ts';
import type { ObjectKey } from '../model/objects.ts';
import { askForService } from './api/askForService.ts';
import type { SocketAddress } from '../plan/view.ts';
import { printSourceProblem, type Source } from '../sources/source.ts';
import { systemClock } from '../time/systemClock.ts';
import { VERSION } from '../version.ts';
import { SourceHealth, type SourceMetrics } from './sourceHealth.ts';
import { lookup } from 'node:dns/promises';
import { parseIp } from '../model/ip.ts';

export interface OpenedSource {
  readonly source: Source;
  /** Whether a Node object is to be expected. */
  readonly isNodeExpected: boolean;
  /** Where the API server is dialled, as far as that matters in this mode. */
  readonly apiServers: readonly SocketAddress[];
  /** How events reach the API server, where there is one. */
  readonly sendEvent: SendEvent | undefined;
  /** What has been listed and what cannot be; nothing for manifests. */
  readonly resources: () => readonly ResourceHealth[];
  readonly status: () => SourceStatus;
  /** Why a Service that is not in the plan is not served; `undefined`: there is none. */
  readonly unserved: (service: ObjectKey) => Promise<UnservedService | undefined>;
  /** File and line of an object, where there are files. */
  readonly locate?: (object: string) => string | undefined;
  close(): Promise<void>;
}

interface SourceOptions {
  readonly config: ValidConfig;
  readonly nodeName: string;
  readonly log: Log;
  /** For metrics of requests to the API server, where there is one. */
  readonly registry: Registry;
  readonly metrics: SourceMetrics;
}

/** Of one status. */
const MOST_PROBLEMS = 100;

export async function openSource(options: SourceOptions): Promise<OpenedSource> {
  const { junction } = options.config;
  const manifests = junction.manifests ?? [];
  if (manifests.length === 0) return openApi(options);
  await checkRoots(manifests);
  const source = new ManifestSource(manifests);
  return {
    source,
    isNodeExpected: false,
    apiServers: [],
    sendEvent: undefined,
    resources: () => [],
    status: () => ({
      kind: 'manifests',
      paths: manifests,
      problems: source.problems.slice(0, MOST_PROBLEMS).map(printSourceProblem),
    }),
    unserved: (service) => Promise.resolve(unservedInFiles(source, service)),
    locate: (object) => source.locate(object),
    close: () => Promise.resolve(),
  };
}

async function openApi(options: SourceOptions): Promise<OpenedSource> {
  const { config, nodeName, log, registry, metrics } = options;
  const clock = systemClock;
  const rest = new RestClientMetrics(registry);
  const { kubeconfig, qps, burst, contentType, acceptContentTypes } = config.clientConnection;
  const access = await loadAccess({
    kubeconfig,
    master: config.master,
    env: process.env,
    clock,
    runPlugin: async (call) => {
      const result = await runPlugin(call);
      rest.pluginCalled(result);
      return result;
    },
    onPluginCertificate: (pem) => rest.pluginCertificate(pem),
  });
  const health = new SourceHealth({ clock, now: systemTimestamps, log, metrics });
  const onDiagnostic = (diagnostic: ApiDiagnostic): void => {
    if (diagnostic.kind === 'request') return rest.requested(diagnostic);
    if (diagnostic.kind === 'answer') return rest.answered(diagnostic);
    if (diagnostic.kind === 'transport') return rest.transportCreated();
    if (diagnostic.kind === 'listEnded' && diagnostic.how === 'stream')
      rest.answered({
        method: 'GET',
        host: access.host ?? access.server.host,
        durationMs: diagnostic.durationMs,
      });
    health.note(diagnostic);
    logDiagnostic(log, diagnostic);
  };
  const client = new ApiClient({
    access,
    clock,
    rateLimit: { qps, burst },
    userAgent: `junction/${VERSION} (${process.platform}/${process.arch})`,
    onDiagnostic,
    encoding: wantedEncoding(contentType, acceptContentTypes),
  });
  log.info('Using API server', { server: access.server.origin });
  for (const what of ['service', 'endpoint slice', 'node']) log.info(`Starting ${what} config controller`);
  log.info('Waiting for caches to sync');
  return {
    source: new ApiSource({
      client,
      nodeName,
      clock,
      onDiagnostic,
      withServiceCIDRs: config.mode === 'nftables',
    }),
    isNodeExpected: true,
    apiServers: config.mode === 'ipvs' ? await dialledAddresses(access) : [],
    sendEvent: (request, signal) => client.send(request, signal),
    resources: () => health.resources(),
    status: () => ({
      kind: 'api',
      server: access.server.origin,
      reconnects: health.reconnects,
      resources: health.resources().map(({ resource, hasListed, encoding, since, reason }) => ({
        resource,
        hasListed,
        ...(encoding !== undefined && { encoding }),
        ...(since !== undefined && { failingSince: since }),
        ...(reason !== undefined && { reason }),
      })),
    }),
    unserved: (service) => askForService(client, service),
    close: () => {
      health.close();
      return client.close();
    },
  };
}

function logDiagnostic(log: Log, diagnostic: ResourceDiagnostic): void {
  const { kind, resource } = diagnostic;
  const info = (message: string, fields: object): void => log.info(message, { resource, ...fields });
  const detail = (message: string, fields: object): void => log.verbose(2, message, { resource, ...fields });
  switch (kind) {
    case 'listEnded': {
      const { how, encoding, objects, durationMs } = diagnostic;
      return info('Caches are synced', { how, encoding, objects, milliseconds: Math.round(durationMs) });
    }
    case 'backingOff': {
      const { delayMs, next, failure: err } = diagnostic;
      return detail('Watch or list failed; backing off', { next, inMilliseconds: Math.round(delayMs), err });
    }
    case 'streamingRefused':
      return info('A streaming list failed; listed in pages', { err: diagnostic.failure });
    case 'resourceAbsent':
      return info('The API server does not serve an optional resource; continuing without it', {
        err: diagnostic.failure,
      });
    case 'listStarted':
      return detail('Listing', { how: diagnostic.how });
    case 'watchStarted':
      return detail('Watching', {
        resourceVersion: diagnostic.resourceVersion,
        encoding: diagnostic.encoding,
      });
    case 'watchEnded':
      return detail('Watch ended', { events: diagnostic.events, err: diagnostic.failure?.message });
  }
}

/**
 * Where connections to the API server go: its addresses, or those of the proxy before it. A name is looked up once. Where
 * that fails, the endpoints of default/kubernetes are still known.
 */
export async function dialledAddresses({
  server,
  proxy,
}: Pick<ApiAccess, 'server' | 'proxy'>): Promise<readonly SocketAddress[]> {
  const { hostname, port, protocol } = proxy ?? server;
  const number = port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port);
  const host = hostname.replace(/^\[|\]$/g, '');
  const ip = parseIp(host);
  if (ip !== undefined) return [{ ip, port: number }];
  const found = await lookup(host, { all: true }).catch(() => []);
  return found.flatMap(({ address }) => {
    const each = parseIp(address);
    return each === undefined ? [] : [{ ip: each, port: number }];
  });
}

/** A source before a test API server, on a clock that the test owns. */
import { onTestFinished } from 'vitest';
import { deepEqual } from '../../../src/model/equal.ts';
import { ApiClient } from '../../../src/sources/api/client.ts';
import type { ApiAccess, Identity } from '../../../src/sources/api/credentials/identity.ts';
import type { Encoding } from '../../../src/sources/api/encoding.ts';
import type { ApiDiagnostic, OnDiagnostic } from '../../../src/sources/api/diagnostics.ts';
import { ApiSource, type ApiSourceEvents } from '../../../src/sources/api/apiSource.ts';
import type { EndpointSlice } from '../../../src/model/objects.ts';
import { projectEndpointSlice } from '../../../src/model/project/endpointSlice.ts';
import { projectNode } from '../../../src/model/project/node.ts';
import { projectService } from '../../../src/model/project/service.ts';
import { printSourceProblem, type Source } from '../../../src/sources/source.ts';
import { MemoryNetwork } from '../../support/apiServer/memoryNetwork.ts';
import type { FakeClock } from '../../time/fakeClock.ts';
import {
  type ApiServerOptions,
  type FaultRule,
  type RawObject,
  TestApiServer,
} from '../../support/apiServer/index.ts';
import { RESOURCES } from '../../support/apiServer/resources.ts';

const NODE = 'node1';

/** A source, and what it has told. */
interface Started {
  readonly source: Source;
  readonly diagnostics: readonly ApiDiagnostic[];
  /** What the source has told, by `Kind key`. */
  readonly world: ReadonlyMap<string, unknown>;
  /** Every event, as lines, since the last call. */
  readonly told: () => readonly string[];
  readonly isSynced: () => boolean;
  /** Lets time go on until it is so. */
  readonly until: (what: string, check: () => boolean) => Promise<void>;
}

export interface Harness extends Started {
  readonly server: TestApiServer;
  readonly network: MemoryNetwork;
  readonly clock: FakeClock;
  /** Lets so much time go by. */
  readonly pass: (ms: number) => Promise<void>;
  /** The source's world is the server's, and every watch is open. */
  readonly settled: () => Promise<void>;
}

interface SourceOptions {
  readonly withServiceCIDRs?: boolean;
  /** Asked for; protobuf when not given. */
  readonly encoding?: Encoding;
  readonly rateLimit?: { readonly qps: number; readonly burst: number };
  /** Gets the diagnostics too, as they come. */
  readonly observe?: (clock: FakeClock) => OnDiagnostic;
  /** Called by the listener of each object. */
  readonly onEvent?: () => void;
}

export interface HarnessOptions extends Omit<ApiServerOptions, 'clock' | 'network'>, SourceOptions {
  readonly objects?: readonly RawObject[];
  readonly access?: (server: TestApiServer, clock: FakeClock) => Promise<ApiAccess>;
  /** The server refuses connections until the test lets it listen. */
  readonly away?: boolean;
  /** Faults from the beginning. */
  readonly faults?: readonly FaultRule[];
}

export async function startHarness(options: HarnessOptions = {}): Promise<Harness> {
  const network = new MemoryNetwork();
  const { clock } = network;
  const server = await TestApiServer.start({ ...options, network });
  server.put(...(options.objects ?? []));
  for (const rule of options.faults ?? []) server.faults.add(rule);
  const access = (await options.access?.(server, clock)) ?? openAccess(server.url);
  if (options.away) await server.close();
  onTestFinished(() => server.close());
  const started = await startSource(network, access, options);
  const serverWorld = remembered(server);
  const settled: Harness['settled'] = async () => {
    const kinds = options.withServiceCIDRs ? 4 : 3;
    await started.until(
      'the source has the world of the server',
      () => started.isSynced() && server.watches.size === kinds && sameWorld(started.world, serverWorld()),
    );
  };
  const pass = async (ms: number): Promise<void> => {
    const end = clock.now() + ms;
    clock.schedule(ms, () => undefined);
    await started.until('time passes', () => clock.now() >= end);
  };
  return { ...started, server, network, clock, pass, settled };
}

export async function startSource(
  network: MemoryNetwork,
  access: ApiAccess,
  {
    encoding = 'protobuf',
    rateLimit = { qps: 50, burst: 100 },
    withServiceCIDRs,
    observe,
    onEvent,
  }: SourceOptions,
): Promise<Started> {
  const { clock } = network;
  const diagnostics: ApiDiagnostic[] = [];
  const observer = observe?.(clock);
  const onDiagnostic = (diagnostic: ApiDiagnostic): void => {
    diagnostics.push(diagnostic);
    observer?.(diagnostic);
  };
  const createDispatcher = network.createDispatcher.bind(network);
  const client = new ApiClient({ access, clock, rateLimit, onDiagnostic, encoding, createDispatcher });
  const random = seededRandom();
  const source = new ApiSource({ client, clock, nodeName: NODE, random, onDiagnostic, withServiceCIDRs });
  const { events, world, told, isSynced } = record(onEvent);
  onTestFinished(async () => {
    await source.stop().catch(() => undefined);
    await client.close();
  });
  await source.start(events);
  const until: Started['until'] = async (what, check) => {
    await network.quiet();
    for (let turn = 0; turn < 20_000; turn++) {
      if (check()) return;
      await clock.advanceToNext();
    }
    throw new Error(`waited in vain: ${what}\n${diagnostics.map(printDiagnostic).slice(-20).join('\n')}`);
  };
  return { source, diagnostics, world, told, isSynced, until };
}

export function openAccess(url: string, identity: Partial<Identity> = {}): ApiAccess {
  const all: Identity = {
    authorization: undefined,
    ca: undefined,
    certificate: undefined,
    key: undefined,
    ...identity,
  };
  return {
    origin: 'a test',
    server: new URL(url),
    insecure: false,
    serverName: undefined,
    proxy: undefined,
    identity: () => Promise.resolve(all),
    renew: () => Promise.resolve(false),
  };
}

/** As `projectEndpointSlice` makes it. */
function unpacked(slice: EndpointSlice): EndpointSlice {
  const { namespace, name, service, family, ports, endpoints, triggerTime } = slice;
  return { namespace, name, service, family, ports, endpoints, triggerTime };
}

/** What a proxy should know of what the server holds. */
function worldOf(server: TestApiServer): ReadonlyMap<string, unknown> {
  const project = {
    Service: projectService,
    EndpointSlice: projectEndpointSlice,
    Node: projectNode,
  } as const;
  const world = new Map<string, unknown>();
  for (const resource of RESOURCES) {
    const read = Object.hasOwn(project, resource.kind)
      ? project[resource.kind as keyof typeof project]
      : undefined;
    if (read === undefined) continue;
    for (const { key, json } of server.store.list(resource)) {
      const projection = read(JSON.parse(json.toString('utf8')));
      if (projection.kind !== 'object' || (resource.kind === 'Node' && key !== NODE)) continue;
      world.set(`${resource.kind} ${key}`, projection.value);
    }
  }
  return world;
}

/** `worldOf`, made anew when the server has changed. */
function remembered(server: TestApiServer): () => ReadonlyMap<string, unknown> {
  let revision = Number.NaN;
  let world: ReadonlyMap<string, unknown> = new Map();
  return () => {
    if (server.store.revision !== revision) world = worldOf(server);
    ({ revision } = server.store);
    return world;
  };
}

function sameWorld(one: ReadonlyMap<string, unknown>, other: ReadonlyMap<string, unknown>): boolean {
  return one.size === other.size && [...one].every(([key, value]) => deepEqual(value, other.get(key)));
}

function printDiagnostic(diagnostic: ApiDiagnostic): string {
  const failure = 'failure' in diagnostic && diagnostic.failure ? `: ${diagnostic.failure.message}` : '';
  const resource = 'resource' in diagnostic ? ` ${diagnostic.resource}` : '';
  return `${diagnostic.kind}${resource}${failure}`;
}

function record(onChange = (): void => undefined): {
  readonly events: ApiSourceEvents;
  readonly world: ReadonlyMap<string, unknown>;
  readonly told: () => readonly string[];
  readonly isSynced: () => boolean;
} {
  const world = new Map<string, unknown>();
  const lines: string[] = [];
  let synced = false;
  const change = (key: string, value: unknown): void => {
    lines.push(`${value === undefined ? '-' : world.has(key) ? '~' : '+'} ${key}`);
    if (value === undefined) world.delete(key);
    else world.set(key, value);
    onChange();
  };
  return {
    world,
    told: () => lines.splice(0),
    isSynced: () => synced,
    events: {
      service: (key, value) => change(`Service ${key}`, value),
      endpointSlice: (key, value) => change(`EndpointSlice ${key}`, value && unpacked(value)),
      node: (name, value) => change(`Node ${name}`, value),
      serviceCIDRs: (cidrs) => void lines.push(`ServiceCIDRs ${cidrs.join(' ')}`),
      synced: () => {
        synced = true;
        lines.push('synced');
      },
      report: (problem) => void lines.push(printSourceProblem(problem)),
    },
  };
}

/** The same for the same seed; spread over 0 to 1. */
export function seededRandom(seed = 1): () => number {
  let state = seed % 2_147_483_647 || 1;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

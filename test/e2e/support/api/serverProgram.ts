/** The API server as a process of its own, so that it can live in a host of the lab. Its owner calls it by IPC. */
import {
  type ApiServerOptions,
  type LoggedRequest,
  type RawObject,
  type RequestKind,
  StatusError,
  TestApiServer,
} from '../../../support/apiServer/index.ts';

/** What can be said of a fault in JSON. */
export type RemoteFault =
  | { readonly kind: 'status'; readonly code: number; readonly retryAfter?: string }
  | { readonly kind: 'answer'; readonly body: string }
  | { readonly kind: 'reset' | 'hang' };

export interface RemoteFaultRule {
  readonly on: readonly RequestKind[];
  readonly resource?: string;
  readonly fault: RemoteFault;
  readonly times?: number;
}

const options = JSON.parse(process.argv[2] ?? '{}') as ApiServerOptions;
const server = await TestApiServer.start(options);

const operations = {
  url: (): string => server.url,
  /** Returns the version of the last of them. */
  put: (objects: readonly RawObject[]): number => {
    server.put(...objects);
    return server.store.revision;
  },
  delete: (kind: string, key: string): void => server.delete(kind, key),
  /** Connections break; afterwards there are other objects, and nobody remembers what was before. */
  replace: (objects: readonly RawObject[], revision: number): void => server.replace(objects, revision),
  close: (): Promise<void> => server.close(),
  listen: (): Promise<void> => server.listen(),
  dropConnections: (): void => server.dropConnections(),
  addFault: ({ on, resource, fault, times }: RemoteFaultRule): void => {
    for (const kind of on) server.faults.add({ on: kind, resource, fault: toFault(fault), times });
  },
  clearFaults: (): void => server.faults.clear(),
  /** Into every open watch of the resource; then the connection ends, or breaks, or stays. */
  writeToWatches: (resource: string, text: string, then: 'end' | 'cut' | 'stay'): void => {
    for (const watch of server.watchesOf(resource)) {
      watch.write(text);
      if (then === 'end') watch.end();
      // Not at once: what was written is to arrive.
      if (then === 'cut') setTimeout(() => watch.cut(), 20);
    }
  },
  watches: (resource: string): number => server.watchesOf(resource).length,
  requests: (): readonly Omit<LoggedRequest, 'headers'>[] =>
    server.log.map(({ headers: _headers, ...entry }) => entry),
  events: (): readonly { readonly path: string; readonly body: unknown }[] => server.events,
};

export type Operations = typeof operations;

function toFault(fault: RemoteFault): Parameters<typeof server.faults.add>[0]['fault'] {
  switch (fault.kind) {
    case 'status': {
      const { code, retryAfter } = fault;
      return {
        kind: 'status',
        error: new StatusError(code, { message: 'a test', ...(retryAfter !== undefined && { retryAfter }) }),
      };
    }
    case 'answer':
      return { kind: 'answer', code: 200, contentType: 'application/json', body: fault.body };
    default:
      return fault;
  }
}

interface Call {
  readonly id: number;
  readonly name: keyof Operations;
  readonly args: readonly never[];
}

async function answer({ id, name, args }: Call): Promise<void> {
  const operation: (...args: readonly never[]) => unknown = operations[name];
  try {
    process.send?.({ id, output: await operation(...args) });
  } catch (error) {
    process.send?.({ id, error: error instanceof Error ? error.message : String(error) });
  }
}

process.on('message', (call) => void answer(call as Call));
process.once('disconnect', () => process.exit(0));
process.send?.({ ready: true });

/** One watch, from its request to its end. */
import { isMap, ownField } from '../../model/project/cursor.ts';
import type { ApiClient, Query } from './client.ts';
import { type ApiFailure, failureOfStatus, malformed } from './failure.ts';
import type { Guard } from './guard.ts';
import { parseJson } from './jsonItems.ts';
import { LineSplitter } from './lines.ts';
import type { Resource } from './resource.ts';
import { readStatus } from './status.ts';

export interface WatchFrame {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  readonly object: unknown;
  readonly resourceVersion: string;
  /** The bookmark after the last object of a streamed list. */
  readonly endsInitialEvents: boolean;
}

const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';

export interface WatchRequest {
  /** When the server is to end it. */
  readonly seconds: number;
  readonly query: Query;
  readonly onOpen: () => void;
  readonly onFrame: (frame: WatchFrame) => void;
}

/** Resolves when the server ended the watch as agreed. */
export async function readWatch<T>(
  client: ApiClient,
  resource: Resource<T>,
  { seconds, query, onOpen, onFrame }: WatchRequest,
  guard: Guard,
): Promise<void> {
  const what = `watching ${resource.name}`;
  const response = await client.get(
    resource.path,
    {
      ...resource.selectors,
      watch: 'true',
      allowWatchBookmarks: 'true',
      timeoutSeconds: String(seconds),
      ...query,
    },
    { signal: guard.signal },
  );
  guard.sign();
  if (response.status !== 200) throw await client.failureOf(response, what);
  onOpen();
  const splitter = new LineSplitter();
  for await (const chunk of response.body) {
    guard.sign();
    for (const line of splitter.push(chunk)) {
      const frame = readFrame(line, resource.kind, what);
      if (frame !== undefined) onFrame(frame);
    }
    const rest = guard.rest();
    if (rest) await rest;
  }
  splitter.end();
}

/** Nothing for what a newer server may send and this version does not know. */
function readFrame(line: string, kind: string, what: string): WatchFrame | undefined {
  const raw = parseJson(line, `${what}: a frame`);
  const type = ownField(raw, 'type');
  const object = ownField(raw, 'object');
  if (typeof type !== 'string' || !isMap(object)) throw malformed(`${what}: a frame is not a watch event`);
  if (type === 'ERROR') throw errorFrame(object, what);
  const isKnown = type === 'ADDED' || type === 'MODIFIED' || type === 'DELETED' || type === 'BOOKMARK';
  if (!isKnown || (ownField(object, 'kind') ?? kind) !== kind) return undefined;
  const metadata = ownField(object, 'metadata');
  const resourceVersion = ownField(metadata, 'resourceVersion');
  if (typeof resourceVersion !== 'string' || resourceVersion === '') {
    throw malformed(`${what}: an event has no resourceVersion`);
  }
  const mark = ownField(ownField(metadata, 'annotations'), INITIAL_EVENTS_END);
  return { type, object, resourceVersion, endsInitialEvents: type === 'BOOKMARK' && mark === 'true' };
}

function errorFrame(object: unknown, what: string): ApiFailure {
  return failureOfStatus(readStatus(object, 500), what);
}

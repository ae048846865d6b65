/** One watch, from its request to its end: how long it may be, how long it may be silent, and the frames of its body. */
import type { Clock } from '../../time/clock.ts';
import type { ApiClient, Query } from './client.ts';
import type { OnDiagnostic } from './diagnostics.ts';
import { type Encoding, frameReader, type WatchFrame } from './encoding.ts';
import { ApiFailure } from './failure.ts';
import { guarded, type RequestGuard } from './request.ts';
import type { Resource } from './resources.ts';

export interface WatchContext<T> {
  readonly client: ApiClient;
  readonly resource: Resource<T>;
  readonly clock: Clock;
  /** From 0 to 1. */
  readonly random: () => number;
  readonly onDiagnostic: OnDiagnostic;
}

interface WatchRun<T> {
  readonly query: Query;
  /** For diagnostics. */
  readonly resourceVersion: string;
  /** How long the answer may take to begin. */
  readonly answerMs: number;
  /** The request goes out. */
  readonly onRequest: (guard: RequestGuard) => void;
  /** Others have their turn before more is read of what has come. */
  readonly onPause: (isPausing: boolean) => void;
  /** The server has begun to answer. */
  readonly onOpen: (guard: RequestGuard, encoding: Encoding) => void;
  readonly onFrame: (frame: WatchFrame<T>, guard: RequestGuard) => void;
}

/**
 * Between two objects of a streaming list. etcd is asked for its progress every 100 ms, and the bookmark at the end
 * waits for that; where it does not come, an ordinary list serves sooner.
 */
const STREAM_SILENCE_MS = 20_000;
/**
 * The API server sends a bookmark about every minute. None means that the connection is dead, or that the server has
 * not reached our version: such a watch is silent for ever (etcd was restored from a backup).
 */
export const BOOKMARK_DUE_MS = 100_000;

/** Watches end after 5 to 10 minutes, so that clients spread over servers again after one was restarted. */
const LEAST_WATCH_SECONDS = 300;

/** Resolves when the server ended the watch as agreed, with the time that it lasted. */
export async function runWatch<T>(
  { client, resource, clock, random, onDiagnostic }: WatchContext<T>,
  run: WatchRun<T>,
  stop: AbortSignal,
): Promise<number> {
  const { name, path, selectors } = resource;
  const what = `watching ${name}`;
  const query: Query = {
    ...selectors,
    watch: 'true',
    allowWatchBookmarks: 'true',
    timeoutSeconds: String(Math.floor(LEAST_WATCH_SECONDS * (1 + random()))),
    ...run.query,
  };
  const begun = clock.now();
  let events = 0;
  let isOpen = false;
  const ended = (failure: ApiFailure | undefined): number => {
    const durationMs = clock.now() - begun;
    if (isOpen) onDiagnostic({ kind: 'watchEnded', resource: name, events, durationMs, failure });
    return durationMs;
  };
  const read = async (guard: RequestGuard): Promise<void> => {
    run.onRequest(guard);
    const response = await client.getObjects(path, query, guard.signal);
    guard.touch();
    if (response.status !== 200) throw await client.failureOf(response, what);
    isOpen = true;
    const { encoding } = response;
    onDiagnostic({ kind: 'watchStarted', resource: name, resourceVersion: run.resourceVersion, encoding });
    run.onOpen(guard, encoding);
    const reader = frameReader(encoding, resource, what);
    const take = (frame: WatchFrame<T>): void => {
      events++;
      run.onFrame(frame, guard);
    };
    for await (const chunk of response.body) {
      guard.touch();
      reader.push(chunk, take);
      const pause = guard.pause();
      if (!pause) continue;
      run.onPause(true);
      await pause;
      run.onPause(false);
    }
    reader.end();
  };
  try {
    await guarded({ clock, stop, what, answerMs: run.answerMs, silenceMs: STREAM_SILENCE_MS }, read);
  } catch (error) {
    if (error instanceof ApiFailure) ended(error);
    throw error;
  }
  return ended(undefined);
}

/** One watch with everything around it: how long it may be, how long it may be silent, and what is told about it. */
import type { Clock } from '../../time/clock.ts';
import type { ApiClient, Query } from './client.ts';
import type { OnDiagnostic } from './diagnostics.ts';
import { ApiFailure } from './failure.ts';
import { type Guard, guarded } from './guard.ts';
import type { Resource } from './resource.ts';
import { readWatch, type WatchFrame } from './watchStream.ts';

export interface WatchRunOptions<T> {
  readonly client: ApiClient;
  readonly resource: Resource<T>;
  readonly clock: Clock;
  /** From 0 to 1. */
  readonly random: () => number;
  readonly onDiagnostic: OnDiagnostic;
}

export interface WatchRun {
  readonly query: Query;
  /** For those who are told. */
  readonly resourceVersion: string;
  /** How long the answer may take to begin. */
  readonly answerMs: number;
  /** The request goes out. */
  readonly onGuard: (guard: Guard) => void;
  /** The server has begun to answer. */
  readonly onOpen: (limits: WatchLimits) => void;
  readonly onFrame: (frame: WatchFrame, limits: WatchLimits) => void;
}

/** A watch that is open may be silent from one bookmark to the next; until it has given its first objects, less. */
export interface WatchLimits {
  expectSilence(): void;
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
  options: WatchRunOptions<T>,
  run: WatchRun,
  stop: AbortSignal,
): Promise<number> {
  const { client, resource, clock, random, onDiagnostic } = options;
  const seconds = Math.floor(LEAST_WATCH_SECONDS * (1 + random()));
  const begun = clock.now();
  let events = 0;
  let isOpen = false;
  const ended = (failure: ApiFailure | undefined): number => {
    const durationMs = clock.now() - begun;
    if (isOpen) onDiagnostic({ kind: 'watchEnded', resource: resource.name, events, durationMs, failure });
    return durationMs;
  };
  const read = (guard: Guard): Promise<void> => {
    const limits: WatchLimits = { expectSilence: () => guard.allow(BOOKMARK_DUE_MS) };
    run.onGuard(guard);
    const onOpen = (): void => {
      isOpen = true;
      onDiagnostic({ kind: 'watchStarted', resource: resource.name, resourceVersion: run.resourceVersion });
      run.onOpen(limits);
    };
    const onFrame = (frame: WatchFrame): void => {
      events++;
      run.onFrame(frame, limits);
    };
    return readWatch(client, resource, { seconds, query: run.query, onOpen, onFrame }, guard);
  };
  try {
    const what = `watching ${resource.name}`;
    await guarded({ clock, stop, what, answerMs: run.answerMs, silenceMs: STREAM_SILENCE_MS }, read);
  } catch (error) {
    if (error instanceof ApiFailure) ended(error);
    throw error;
  }
  return ended(undefined);
}

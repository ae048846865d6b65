/**
 * Keeps a mirror of one resource: lists it, watches from there, and finds back after everything that can go wrong.
 *
 * A list is streamed where the server can: one watch that begins with every object and goes on with every change.
 * Otherwise it is read in pages, and a watch follows from the version of the list.
 */
import type { Clock } from '../../sync/clock.ts';
import { Backoff } from './backoff.ts';
import type { ApiClient } from './client.ts';
import type { ListMethod, OnDiagnostic } from './diagnostics.ts';
import { ApiFailure, type FailureKind, malformed } from './failure.ts';
import { type Guard, guarded } from './guard.ts';
import { currentVersion, listPages, type NotOlderThan } from './listPages.ts';
import type { Mirror } from './mirror.ts';
import type { Resource } from './resource.ts';
import { isOlder } from './resourceVersion.ts';
import { wait } from './wait.ts';
import { readWatch, type WatchFrame } from './watchStream.ts';

export interface ReflectorOptions<T> {
  readonly client: ApiClient;
  readonly resource: Resource<T>;
  readonly mirror: Mirror<T>;
  readonly clock: Clock;
  /** From 0 to 1. */
  readonly random: () => number;
  readonly server: ServerTraits;
  readonly onDiagnostic: OnDiagnostic;
  /** After each complete list. */
  readonly onListed: () => void;
}

/** What this process has learned about the server; shared by all reflectors. */
export interface ServerTraits {
  streamsLists: boolean;
}

/** Watches end after 5 to 10 minutes, so that clients spread over servers again after one was restarted. */
const LEAST_WATCH_SECONDS = 300;
const ANSWER_SILENCE_MS = 75_000;
const WATCH_SLACK_MS = 30_000;
/** A watch that ends sooner than this would make a hot loop. */
const SHORT_WATCH_MS = 1000;
/** A watch that fails at the same place this often will fail there for ever. */
const MOST_FRUITLESS = 3;
/** The API server sends one about every minute. */
const BOOKMARK_DUE_MS = 3 * 60_000;
const ABSENT_RETRY_MS = 10 * 60_000;

export class Reflector<T> {
  readonly #options: ReflectorOptions<T>;
  readonly #backoff: Backoff;
  /** The last version that was seen. */
  #version: string | undefined;
  #next: 'list' | 'watch' = 'list';
  /** The server has no memory of `#version`, or has not come so far: lists must not refer to it. */
  #versionIsUseless = false;
  #fruitless = 0;

  constructor(options: ReflectorOptions<T>) {
    this.#options = options;
    this.#backoff = new Backoff(options.clock, options.random);
  }

  /** Resolves when the signal has aborted and nothing is told any more. */
  async run(stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      try {
        await (this.#next === 'list' ? this.#list(stop) : this.#watch(stop));
      } catch (error) {
        if (stop.aborted) return;
        if (!(error instanceof ApiFailure)) throw error;
        await this.#recover(error, stop);
      }
    }
  }

  async #list(stop: AbortSignal): Promise<void> {
    const { server, resource, onDiagnostic } = this.#options;
    if (!server.streamsLists) {
      await this.#listInPages(stop);
      return;
    }
    let refusal: ApiFailure;
    try {
      await this.#listByWatch(stop);
      return;
    } catch (error) {
      if (!(error instanceof StreamingRefused)) throw error;
      refusal = error.failure;
    }
    await this.#listInPages(stop);
    server.streamsLists = false;
    onDiagnostic({ kind: 'streamingRefused', resource: resource.name, failure: refusal });
  }

  async #listInPages(stop: AbortSignal): Promise<void> {
    const { client, resource, mirror } = this.#options;
    const begun = this.#listStarted('pages');
    const list = await this.#guarded(stop, `listing ${resource.name}`, (guard) =>
      listPages(client, resource, mirror, this.#notOlderThan('any'), guard),
    );
    this.#listEnded('pages', begun, list);
  }

  /** Resolves when the watch that the list turned into has ended. */
  async #listByWatch(stop: AbortSignal): Promise<void> {
    const { resource, mirror } = this.#options;
    const begun = this.#listStarted('stream');
    const from = this.#notOlderThan('latest');
    let isLive = false;
    mirror.beginList();
    try {
      await this.#readWatch(stop, {
        query: {
          sendInitialEvents: 'true',
          resourceVersionMatch: 'NotOlderThan',
          ...(typeof from === 'object' ? from : {}),
        },
        silenceMs: () => ANSWER_SILENCE_MS,
        onFrame: (frame, guard, silenceMs) => {
          if (isLive) {
            this.#onLiveFrame(frame);
          } else if (frame.endsInitialEvents) {
            isLive = true;
            guard.allow(silenceMs);
            const objects = mirror.endList();
            this.#listEnded('stream', begun, {
              resourceVersion: frame.resourceVersion,
              objects,
              requests: 1,
            });
          } else {
            this.#apply(frame);
          }
        },
      });
    } catch (error) {
      if (!isLive && error instanceof ApiFailure && isRefusal(error.kind)) throw new StreamingRefused(error);
      throw error;
    }
    if (!isLive) {
      throw new StreamingRefused(malformed(`listing ${resource.name}: the stream ended before its bookmark`));
    }
    if (this.#options.clock.now() - begun < SHORT_WATCH_MS) throw endedAtOnce(resource.name);
  }

  async #watch(stop: AbortSignal): Promise<void> {
    const { clock, resource } = this.#options;
    const begun = clock.now();
    const events = await this.#readWatch(stop, {
      query: { resourceVersion: this.#version ?? '0' },
      silenceMs: (limit) => limit,
      onFrame: (frame) => this.#onLiveFrame(frame),
    });
    const durationMs = clock.now() - begun;
    if (durationMs < SHORT_WATCH_MS) throw endedAtOnce(resource.name);
    if (events === 0 && durationMs > BOOKMARK_DUE_MS) await this.#checkVersion(stop);
  }

  /** Answers how many frames came. */
  async #readWatch(stop: AbortSignal, reading: Reading): Promise<number> {
    const { client, resource, clock, random, onDiagnostic } = this.#options;
    const seconds = Math.floor(LEAST_WATCH_SECONDS * (1 + random()));
    const silenceMs = seconds * 1000 + WATCH_SLACK_MS;
    const begun = clock.now();
    let events = 0;
    let isOpen = false;
    const ended = (failure?: ApiFailure): void => {
      const durationMs = clock.now() - begun;
      if (isOpen) onDiagnostic({ kind: 'watchEnded', resource: resource.name, events, durationMs, failure });
    };
    try {
      await this.#guarded(stop, `watching ${resource.name}`, async (guard) => {
        const onOpen = (): void => {
          isOpen = true;
          guard.allow(reading.silenceMs(silenceMs));
          onDiagnostic({
            kind: 'watchStarted',
            resource: resource.name,
            resourceVersion: this.#version ?? '',
          });
        };
        const onFrame = (frame: WatchFrame): void => {
          events++;
          reading.onFrame(frame, guard, silenceMs);
        };
        await readWatch(client, resource, { seconds, query: reading.query, onOpen, onFrame }, guard);
      });
    } catch (error) {
      if (!(error instanceof ApiFailure)) throw error;
      ended(error);
      if (isOpen && (error.kind === 'malformed' || error.status !== undefined)) this.#fruitless++;
      throw error;
    }
    ended();
    return events;
  }

  /**
   * A watch from a version that the server has not reached is silent: no events, no bookmarks, no error. That is how
   * a cluster looks whose etcd was restored from a backup. One object of a list says what the version is now.
   */
  async #checkVersion(stop: AbortSignal): Promise<void> {
    const { client, resource } = this.#options;
    const known = this.#version ?? '';
    const current = await this.#guarded(stop, `listing ${resource.name}`, (guard) =>
      currentVersion(client, resource, guard),
    );
    if (isOlder(current, known)) throw wentBack(resource.name, known, current);
  }

  #onLiveFrame(frame: WatchFrame): void {
    const { resource } = this.#options;
    const before = this.#version;
    if (before !== undefined && isOlder(frame.resourceVersion, before)) {
      if (frame.type !== 'DELETED') throw wentBack(resource.name, before, frame.resourceVersion);
      this.#apply(frame);
      return;
    }
    this.#apply(frame);
    this.#version = frame.resourceVersion;
    this.#fruitless = 0;
  }

  #apply({ type, object }: WatchFrame): void {
    const { mirror } = this.#options;
    if (type === 'DELETED') mirror.delete(object);
    else if (type !== 'BOOKMARK') mirror.set(object);
  }

  /** Decides what to do next, and waits until then. */
  async #recover(failure: ApiFailure, stop: AbortSignal): Promise<void> {
    const { resource, onDiagnostic, onListed, mirror } = this.#options;
    if (failure.kind === 'absent' && resource.optional && this.#next === 'list') {
      onDiagnostic({ kind: 'resourceAbsent', resource: resource.name, failure });
      mirror.beginList();
      mirror.endList();
      onListed();
      await wait(this.#options.clock, ABSENT_RETRY_MS * (1 + this.#options.random()), stop);
      return;
    }
    this.#decide(failure);
    const delayMs = Math.max(failure.retryAfterMs ?? 0, this.#backoff.next());
    onDiagnostic({ kind: 'backingOff', resource: resource.name, delayMs, next: this.#next, failure });
    await wait(this.#options.clock, delayMs, stop);
  }

  #decide({ kind }: ApiFailure): void {
    const wasList = this.#next === 'list';
    if (kind === 'ahead' || (kind === 'expired' && wasList)) this.#versionIsUseless = true;
    if (wasList) return;
    const isLost = kind === 'expired' || kind === 'ahead' || kind === 'unsupported' || kind === 'absent';
    if (!isLost && this.#fruitless < MOST_FRUITLESS) return;
    this.#next = 'list';
    this.#fruitless = 0;
  }

  #notOlderThan(atFirst: 'any' | 'latest'): NotOlderThan {
    if (this.#versionIsUseless) return 'latest';
    return this.#version === undefined ? atFirst : { resourceVersion: this.#version };
  }

  #listStarted(how: ListMethod): number {
    const { onDiagnostic, resource, clock } = this.#options;
    onDiagnostic({ kind: 'listStarted', resource: resource.name, how });
    return clock.now();
  }

  #listEnded(how: ListMethod, begun: number, list: ListSummary): void {
    const { onDiagnostic, resource, clock, onListed } = this.#options;
    this.#version = list.resourceVersion;
    this.#versionIsUseless = false;
    this.#next = 'watch';
    this.#fruitless = 0;
    const durationMs = clock.now() - begun;
    onDiagnostic({ kind: 'listEnded', resource: resource.name, how, durationMs, ...list });
    onListed();
  }

  #guarded<R>(stop: AbortSignal, what: string, run: (guard: Guard) => Promise<R>): Promise<R> {
    return guarded({ clock: this.#options.clock, stop, what, silenceMs: ANSWER_SILENCE_MS }, run);
  }
}

interface Reading {
  readonly query: Readonly<Record<string, string>>;
  /** How long it may be silent at first, given how long a watch may. */
  readonly silenceMs: (watchSilenceMs: number) => number;
  readonly onFrame: (frame: WatchFrame, guard: Guard, watchSilenceMs: number) => void;
}

interface ListSummary {
  readonly resourceVersion: string;
  readonly objects: number;
  readonly requests: number;
}

class StreamingRefused extends Error {
  readonly failure: ApiFailure;
  constructor(failure: ApiFailure) {
    super(failure.message);
    this.failure = failure;
  }
}

/** 403 too: some clusters' policies allow `list` and not every `watch`. */
function isRefusal(kind: FailureKind): boolean {
  return kind === 'unsupported' || kind === 'forbidden';
}

function endedAtOnce(resource: string): ApiFailure {
  return new ApiFailure(
    'API_UNREACHABLE',
    'unreachable',
    `watching ${resource}: it ended as soon as it had begun`,
  );
}

/** etcd was restored from a backup, or another cluster answers: what we know is of another history. */
function wentBack(resource: string, from: string, to: string): ApiFailure {
  const message = `watching ${resource}: the resourceVersion went back from ${from} to ${to}`;
  return new ApiFailure('API_MALFORMED', 'ahead', message);
}

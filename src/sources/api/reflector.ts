/**
 * Keeps a mirror of one resource: lists it, watches from there, and finds back after everything that can go wrong.
 *
 * A list is streamed where the server can: one watch that begins with every object and goes on with every change.
 * Otherwise it is read in pages, and a watch follows from the version of the list.
 */
import { Backoff } from './backoff.ts';
import type { ListMethod } from './diagnostics.ts';
import { ApiFailure, endedAtOnce, type FailureKind, malformed, wentBack } from './failure.ts';
import { ANSWER_SILENCE_MS, type Guard, guarded } from './guard.ts';
import { currentVersion, listPages, type NotOlderThan, type PagedList } from './listPages.ts';
import type { Mirror } from './mirror.ts';
import { isOlder } from './resourceVersion.ts';
import { wait } from './wait.ts';
import { runWatch, type WatchRunOptions } from './watchRun.ts';
import type { WatchFrame } from './watchStream.ts';

export interface ReflectorOptions<T> extends WatchRunOptions<T> {
  readonly mirror: Mirror<T>;
  readonly server: ServerTraits;
  /** After each complete list. */
  readonly onListed: () => void;
}

/** What this process has learned about the server; shared by all reflectors. */
export interface ServerTraits {
  streamsLists: boolean;
}

/** A watch that ends sooner than this would make a hot loop. */
const SHORT_WATCH_MS = 1000;
/** A watch that fails at the same place this often will fail there for ever. */
const MOST_FRUITLESS = 3;
/** The API server sends a bookmark about every minute. */
const BOOKMARK_DUE_MS = 3 * 60_000;
const ABSENT_RETRY_MS = 10 * 60_000;

export class Reflector<T> {
  readonly #options: ReflectorOptions<T>;
  readonly #backoff: Backoff;
  #next: 'list' | 'watch' = 'list';
  /** The last version that was seen. */
  #version: string | undefined;
  /** The server has no memory of `#version`, or has not come so far: lists must not refer to it. */
  #versionIsUseless = false;
  /** When the server last said something that agrees with `#version`. */
  #confirmedAt = 0;
  /** The watch that just failed had been opened. */
  #wasOpen = false;
  #fruitless = 0;

  constructor(options: ReflectorOptions<T>) {
    this.#options = options;
    this.#backoff = new Backoff(options.clock, options.random);
  }

  /** Resolves when the signal has aborted and nothing is told any more. */
  async run(stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      this.#wasOpen = false;
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
    const refusal = server.streamsLists ? await this.#listByWatch(stop) : 'known';
    if (refusal === undefined) return;
    await this.#listInPages(stop);
    if (refusal === 'known') return;
    server.streamsLists = false;
    onDiagnostic({ kind: 'streamingRefused', resource: resource.name, failure: refusal });
  }

  async #listInPages(stop: AbortSignal): Promise<void> {
    const { client, resource, mirror } = this.#options;
    const begun = this.#listStarted('pages');
    const list = await this.#guarded(stop, (guard) =>
      listPages(client, resource, mirror, this.#notOlderThan('any'), guard),
    );
    this.#listEnded('pages', begun, list);
  }

  /** Resolves when the watch that the list turned into has ended, or when the server does not stream lists. */
  async #listByWatch(stop: AbortSignal): Promise<ApiFailure | undefined> {
    const { resource, mirror } = this.#options;
    const begun = this.#listStarted('stream');
    const from = this.#notOlderThan('latest');
    const floor = typeof from === 'object' ? from : {};
    let isLive = false;
    mirror.beginList();
    try {
      const lastedMs = await runWatch(
        this.#options,
        {
          query: { sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan', ...floor },
          resourceVersion: '',
          onOpen: () => undefined,
          onFrame: (frame, limits) => {
            if (isLive) {
              this.#onLiveFrame(frame);
            } else if (frame.endsInitialEvents) {
              isLive = true;
              this.#wasOpen = true;
              limits.expectSilence();
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
        },
        stop,
      );
      if (isLive && lastedMs < SHORT_WATCH_MS) throw endedAtOnce(resource.name);
    } catch (error) {
      if (isLive || !(error instanceof ApiFailure) || !isRefusal(error.kind)) throw error;
      return error;
    }
    return isLive ? undefined : malformed(`listing ${resource.name}: the stream ended before its bookmark`);
  }

  async #watch(stop: AbortSignal): Promise<void> {
    const { clock, resource } = this.#options;
    if (clock.now() - this.#confirmedAt > BOOKMARK_DUE_MS) await this.#confirmVersion(stop);
    const resourceVersion = this.#version ?? '';
    const lastedMs = await runWatch(
      this.#options,
      {
        query: { resourceVersion },
        resourceVersion,
        onOpen: (limits) => {
          this.#wasOpen = true;
          limits.expectSilence();
        },
        onFrame: (frame) => this.#onLiveFrame(frame),
      },
      stop,
    );
    if (lastedMs < SHORT_WATCH_MS) throw endedAtOnce(resource.name);
  }

  /**
   * A watch from a version that the server has not reached is silent: no events, no bookmarks, no error. That is how
   * a cluster looks whose etcd was restored from a backup. One object of a list says what the version is now.
   */
  async #confirmVersion(stop: AbortSignal): Promise<void> {
    const { client, resource, clock } = this.#options;
    const known = this.#version ?? '';
    try {
      const current = await this.#guarded(stop, (guard) => currentVersion(client, resource, guard));
      if (isOlder(current, known)) throw wentBack(resource.name, known, current);
    } catch (error) {
      // Whoever may watch and not list goes without this.
      if (!(error instanceof ApiFailure) || !isRefusal(error.kind)) throw error;
    }
    this.#confirmedAt = clock.now();
  }

  #onLiveFrame(frame: WatchFrame): void {
    const { resource, clock } = this.#options;
    const before = this.#version ?? '';
    const isOld = isOlder(frame.resourceVersion, before);
    // A deleted object may carry the version that it had in life.
    if (isOld && frame.type !== 'DELETED') throw wentBack(resource.name, before, frame.resourceVersion);
    this.#apply(frame);
    if (!isOld) this.#version = frame.resourceVersion;
    this.#confirmedAt = clock.now();
    this.#fruitless = 0;
  }

  #apply({ type, object }: WatchFrame): void {
    const { mirror } = this.#options;
    if (type === 'DELETED') mirror.delete(object);
    else if (type !== 'BOOKMARK') mirror.set(object);
  }

  /** Decides what to do next, and waits until then. */
  async #recover(failure: ApiFailure, stop: AbortSignal): Promise<void> {
    const { resource, onDiagnostic, clock, random } = this.#options;
    if (failure.kind === 'absent' && resource.optional && this.#next === 'list') {
      this.#takeAsEmpty(failure);
      await wait(clock, ABSENT_RETRY_MS * (1 + random()), stop);
      return;
    }
    this.#decide(failure);
    const delayMs = Math.max(failure.retryAfterMs ?? 0, this.#backoff.next());
    onDiagnostic({ kind: 'backingOff', resource: resource.name, delayMs, next: this.#next, failure });
    await wait(clock, delayMs, stop);
  }

  #decide({ kind, status }: ApiFailure): void {
    const wasList = this.#next === 'list';
    if (kind === 'ahead' || (kind === 'expired' && wasList)) this.#versionIsUseless = true;
    if (wasList) return;
    if (this.#wasOpen && (kind === 'malformed' || status !== undefined)) this.#fruitless++;
    const isLost = kind === 'expired' || kind === 'ahead' || kind === 'unsupported' || kind === 'absent';
    if (!isLost && this.#fruitless < MOST_FRUITLESS) return;
    this.#next = 'list';
    this.#fruitless = 0;
  }

  #takeAsEmpty(failure: ApiFailure): void {
    const { resource, onDiagnostic, onListed, mirror } = this.#options;
    onDiagnostic({ kind: 'resourceAbsent', resource: resource.name, failure });
    mirror.beginList();
    mirror.endList();
    onListed();
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

  #listEnded(how: ListMethod, begun: number, list: PagedList): void {
    const { onDiagnostic, resource, clock, onListed } = this.#options;
    this.#version = list.resourceVersion;
    this.#versionIsUseless = false;
    this.#confirmedAt = clock.now();
    this.#next = 'watch';
    this.#fruitless = 0;
    const durationMs = clock.now() - begun;
    onDiagnostic({ kind: 'listEnded', resource: resource.name, how, durationMs, ...list });
    onListed();
  }

  #guarded<R>(stop: AbortSignal, run: (guard: Guard) => Promise<R>): Promise<R> {
    const { clock, resource } = this.#options;
    return guarded({ clock, stop, what: `listing ${resource.name}`, silenceMs: ANSWER_SILENCE_MS }, run);
  }
}

/** 403 too: some clusters' policies allow `list` and not every `watch`. */
function isRefusal(kind: FailureKind): boolean {
  return kind === 'unsupported' || kind === 'forbidden';
}

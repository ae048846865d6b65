/**
 * Keeps the store of one resource up to date: lists it, watches from there, and finds back after everything that can go wrong.
 *
 * A list is streamed where the server can: one watch that begins with every object and goes on with every change.
 * Otherwise it is read in pages, and a watch follows from the version of the list.
 */
import { Backoff, wait } from '../../time/wait.ts';
import type { ListMethod, ListResult } from './diagnostics.ts';
import type { Encoding, WatchFrame } from './encoding.ts';
import { ApiFailure, endedAtOnce, type FailureKind, malformedAnswer, wentBack } from './failure.ts';
import { currentVersion, listPages, type NotOlderThan } from './list.ts';
import { ANSWER_SILENCE_MS, AnswerLimit, guarded, type RequestGuard } from './request.ts';
import { LIST_SPREAD_MS, type ServerMonitor, type Waiter } from './serverMonitor.ts';
import type { ResourceStore } from './store.ts';
import { isOlder, type Received } from './resourceVersion.ts';
import { BOOKMARK_DUE_MS, runWatch, type WatchContext } from './watch.ts';

interface ReflectorOptions<T> extends WatchContext<T> {
  readonly store: ResourceStore<T>;
  /** Shared by all reflectors. */
  readonly server: ServerMonitor;
  /** After each complete list. */
  readonly onListed: () => void;
  /** Something has come, or a list has ended. */
  readonly onReceived?: () => void;
}

/** A watch that ends sooner than this would make a hot loop. */
const SHORT_WATCH_MS = 1000;
/** A watch that fails at the same place this often will fail there for ever. */
const MOST_FRUITLESS = 3;
const ABSENT_RETRY_MS = 10 * 60_000;
/** A request that was sent before the server returned may lie on a connection that nobody reads any more. */
const ANSWER_AFTER_RETURN_MS = 1000;

export class Reflector<T> implements Waiter, Received {
  readonly #options: ReflectorOptions<T>;
  readonly #backoff: Backoff;
  #next: 'list' | 'watch' = 'list';
  /** The last version that was seen. */
  #version: string | undefined;
  /** The server has no memory of `#version`, or has not come so far: lists must not refer to it. */
  #versionIsUseless = false;
  /** Since when an open watch has been silent; nothing when none is open. */
  #silentSince: number | undefined;
  /** How long watches were open without a word about `#version`. */
  #silentMs = 0;
  /** The watch that just failed had been opened. */
  #wasOpen = false;
  #fruitless = 0;
  /** The next list is read in pages: the server was too busy for a streaming one. */
  #skipsStream = false;
  #hasListed = false;
  readonly #answerLimit: AnswerLimit;
  /** Of the request that is under way. */
  #guard: RequestGuard | undefined;
  #isListing = false;
  #isBehind = false;
  /** What fails now was sent before the server returned. */
  #isFree = false;
  /** Ends the wait before the next attempt. */
  #wake: (() => void) | undefined;

  constructor(options: ReflectorOptions<T>) {
    this.#options = options;
    this.#backoff = new Backoff(options.clock, options.random);
    this.#answerLimit = new AnswerLimit(options.clock);
    options.server.add(this);
  }

  get name(): string {
    return this.#options.resource.name;
  }

  get version(): string | undefined {
    return this.#version;
  }

  get isListing(): boolean {
    return this.#isListing;
  }

  get isBehind(): boolean {
    return this.#isBehind;
  }

  has(key: string): boolean {
    return this.#options.store.has(key);
  }

  /** The server was away and is back: nothing that was learned before is a reason to wait. */
  onReturn(): void {
    this.#backoff.reset();
    this.#wake?.();
    this.#guard?.hurry(ANSWER_AFTER_RETURN_MS);
    this.#isFree = true;
  }

  /** Resolves when the signal has aborted and nothing is emitted any more. */
  async run(stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      this.#wasOpen = false;
      try {
        await this.#options.client.prepare(stop);
        await (this.#next === 'list' ? this.#list(stop) : this.#watch(stop));
      } catch (error) {
        if (stop.aborted) return;
        if (!(error instanceof ApiFailure)) throw error;
        this.#noteSilence();
        this.#listIsOver();
        await this.#recover(error, stop);
      }
      this.#noteSilence();
    }
  }

  #listIsOver(): void {
    if (!this.#isListing) return;
    this.#isListing = false;
    this.#options.onReceived?.();
  }

  #noteSilence(): void {
    if (this.#silentSince !== undefined) this.#silentMs += this.#options.clock.now() - this.#silentSince;
    this.#silentSince = undefined;
  }

  /**
   * A streaming list that fails, for whatever reason, is followed by an ordinary one. Over etcd before 3.4.31 (3.5
   * before 3.5.13) each of them fails, with an internal error in the stream.
   */
  async #list(stop: AbortSignal): Promise<void> {
    const { server, resource, onDiagnostic } = this.#options;
    const failure = server.streamsLists && !this.#skipsStream ? await this.#listByWatch(stop) : 'notAsked';
    if (failure === undefined) return;
    await this.#listInPages(stop);
    if (failure === 'notAsked') return;
    if (isRefusal(failure.kind) || failure.kind === 'serverError') server.streamsLists = false;
    onDiagnostic({ kind: 'streamingRefused', resource: resource.name, failure });
  }

  async #listInPages(stop: AbortSignal): Promise<void> {
    const { client, resource, store } = this.#options;
    const begun = this.#listStarted('pages');
    const read = (guard: RequestGuard): Promise<ListResult> =>
      listPages(client, resource, store, this.#notOlderThan('any'), guard);
    let list: ListResult;
    try {
      list = await this.#guarded(stop, read);
    } catch (error) {
      if (!(error instanceof ApiFailure) || !isLost(error.kind) || this.#versionIsUseless) throw error;
      // Not of that version then, but of the latest: whoever answered knows it.
      this.#versionIsUseless = true;
      list = await this.#guarded(stop, read);
    }
    this.#listEnded('pages', begun, list);
  }

  /** Resolves when the watch that the list turned into has ended, or with the reason why there was no list. */
  async #listByWatch(stop: AbortSignal): Promise<ApiFailure | undefined> {
    const { resource, store } = this.#options;
    const begun = this.#listStarted('stream');
    const from = this.#notOlderThan('latest');
    const floor = typeof from === 'object' ? from : {};
    let isLive = false;
    let encoding: Encoding = 'json';
    store.beginList();
    try {
      const lastedMs = await runWatch(
        this.#options,
        {
          query: { sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan', ...floor },
          resourceVersion: '',
          answerMs: this.#answerLimit.ofWatch,
          onRequest: (guard) => this.#sent(guard),
          onPause: (isPausing) => (this.#isBehind = isPausing),
          onOpen: (_, opened) => {
            encoding = opened;
            this.#answerLimit.answered();
          },
          onFrame: (frame, guard) => {
            if (isLive) {
              this.#onLiveFrame(frame);
            } else if (frame.type === 'BOOKMARK' && frame.object.endsInitialEvents) {
              isLive = true;
              this.#wasOpen = true;
              guard.allow(BOOKMARK_DUE_MS);
              const { resourceVersion } = frame.object;
              const objects = store.endList();
              this.#listEnded('stream', begun, { resourceVersion, objects, requests: 1, encoding });
            } else {
              this.#apply(frame);
            }
          },
        },
        stop,
      );
      if (isLive && lastedMs < SHORT_WATCH_MS) throw endedAtOnce(resource.name);
    } catch (error) {
      if (isLive || !(error instanceof ApiFailure) || error.kind === 'credentials') throw error;
      if (isLost(error.kind)) this.#versionIsUseless = true;
      // It has asked for time. After that, pages: it may be too busy for streams only.
      if (error.kind === 'busy') {
        this.#skipsStream = true;
        throw error;
      }
      if (error.status === undefined) this.#options.server.suspect(this);
      if (error.kind === 'silent') this.#options.client.renewConnections();
      return error;
    }
    return isLive
      ? undefined
      : malformedAnswer(`listing ${resource.name}: the stream ended before its bookmark`);
  }

  async #watch(stop: AbortSignal): Promise<void> {
    const { clock, resource } = this.#options;
    if (this.#silentMs >= BOOKMARK_DUE_MS) await this.#confirmVersion(stop);
    const resourceVersion = this.#version ?? '';
    const lastedMs = await runWatch(
      this.#options,
      {
        query: { resourceVersion },
        resourceVersion,
        answerMs: this.#answerLimit.ofWatch,
        onRequest: (guard) => this.#sent(guard),
        onPause: (isPausing) => (this.#isBehind = isPausing),
        onOpen: (guard) => {
          this.#wasOpen = true;
          this.#silentSince = clock.now();
          this.#answerLimit.answered();
          guard.allow(BOOKMARK_DUE_MS);
          this.#options.server.served(this);
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
    const { client, resource } = this.#options;
    const known = this.#version ?? '';
    try {
      const current = await this.#guarded(stop, (guard) => currentVersion(client, resource, guard));
      if (isOlder(current, known)) throw wentBack(resource.name, known, current);
    } catch (error) {
      // Not for clients that may watch but not list.
      if (!(error instanceof ApiFailure) || !isRefusal(error.kind)) throw error;
    }
    this.#silentMs = 0;
  }

  #onLiveFrame(frame: WatchFrame<T>): void {
    const { resource, clock } = this.#options;
    const { resourceVersion } = frame.object;
    const before = this.#version ?? '';
    const isOld = isOlder(resourceVersion, before);
    // A deleted object may carry the version that it had in life.
    if (isOld && frame.type !== 'DELETED') throw wentBack(resource.name, before, resourceVersion);
    this.#apply(frame);
    if (!isOld) this.#version = resourceVersion;
    this.#silentSince = clock.now();
    this.#silentMs = 0;
    this.#fruitless = 0;
    this.#options.onReceived?.();
  }

  #apply({ type, object }: WatchFrame<T>): void {
    const { store } = this.#options;
    if (type === 'DELETED') store.delete(object);
    else if (type !== 'BOOKMARK') store.set(object);
  }

  /** Decides what to do next, and waits until then. */
  async #recover(failure: ApiFailure, stop: AbortSignal): Promise<void> {
    const { resource, onDiagnostic, clock, random, server, client, store } = this.#options;
    this.#guard = undefined;
    if (failure.kind === 'absent' && resource.optional && this.#next === 'list') {
      server.served(this);
      store.beginList();
      store.endList();
      this.#goWithout(failure);
      await wait(clock, ABSENT_RETRY_MS * (1 + random()), stop);
      return;
    }
    this.#decide(failure);
    if (failure.kind === 'silent') {
      client.renewConnections();
      if (!server.isAway) this.#answerLimit.grow();
    }
    const isAnswer = isLost(failure.kind);
    if (!isAnswer && failure.kind !== 'credentials') server.suspect(this);
    const spreadMs = LIST_SPREAD_MS * random();
    // Expired is a good server's answer: a list is due at once, unless the last one helped nothing.
    const isFree = (isAnswer || (this.#isFree && failure.kind === 'silent')) && this.#backoff.takeFree();
    const freeMs = this.#next === 'list' ? spreadMs : 0;
    const delayMs = isFree ? freeMs : Math.max(failure.retryAfterMs ?? 0, this.#backoff.next());
    this.#isFree = false;
    onDiagnostic({ kind: 'backingOff', resource: resource.name, delayMs, next: this.#next, failure });
    // A server that refuses an optional resource must not keep the others from being served.
    if (resource.optional && failure.status !== undefined && !this.#hasListed) this.#goWithout(failure);
    const isWoken = await this.#waitForReturn(delayMs, stop);
    if (isWoken && this.#next === 'list') await wait(clock, spreadMs, stop);
  }

  /** True: the server has returned before the time was over. */
  async #waitForReturn(delayMs: number, stop: AbortSignal): Promise<boolean> {
    const controller = new AbortController();
    const wake = (): void => controller.abort();
    this.#wake = wake;
    stop.addEventListener('abort', wake);
    if (!stop.aborted) await wait(this.#options.clock, delayMs, controller.signal);
    stop.removeEventListener('abort', wake);
    this.#wake = undefined;
    return controller.signal.aborted && !stop.aborted;
  }

  #sent(guard: RequestGuard): void {
    this.#guard = guard;
    this.#answerLimit.sent();
  }

  #decide({ kind, status }: ApiFailure): void {
    const wasList = this.#next === 'list';
    if (kind === 'ahead' || (kind === 'expired' && wasList)) this.#versionIsUseless = true;
    if (wasList) return;
    if (this.#wasOpen && (kind === 'malformed' || status !== undefined)) this.#fruitless++;
    const isHopeless = isLost(kind) || kind === 'unsupported' || kind === 'absent';
    if (!isHopeless && this.#fruitless < MOST_FRUITLESS) return;
    this.#next = 'list';
    this.#fruitless = 0;
  }

  #goWithout(failure: ApiFailure): void {
    const { resource, onDiagnostic, onListed } = this.#options;
    this.#hasListed = true;
    onDiagnostic({ kind: 'resourceAbsent', resource: resource.name, failure });
    onListed();
  }

  #notOlderThan(atFirst: 'any' | 'latest'): NotOlderThan {
    if (this.#versionIsUseless) return 'latest';
    return this.#version === undefined ? atFirst : { resourceVersion: this.#version };
  }

  #listStarted(how: ListMethod): number {
    const { onDiagnostic, resource, clock } = this.#options;
    onDiagnostic({ kind: 'listStarted', resource: resource.name, how });
    this.#isListing = true;
    return clock.now();
  }

  #listEnded(how: ListMethod, begun: number, list: ListResult): void {
    const { onDiagnostic, resource, clock, onListed, server } = this.#options;
    server.served(this);
    this.#version = list.resourceVersion;
    this.#versionIsUseless = false;
    this.#skipsStream = false;
    this.#hasListed = true;
    this.#silentSince = how === 'stream' ? clock.now() : undefined;
    this.#silentMs = 0;
    this.#next = 'watch';
    this.#fruitless = 0;
    const durationMs = clock.now() - begun;
    onDiagnostic({ kind: 'listEnded', resource: resource.name, how, durationMs, ...list });
    onListed();
    this.#listIsOver();
  }

  #guarded<R>(stop: AbortSignal, run: (guard: RequestGuard) => Promise<R>): Promise<R> {
    const { clock, resource } = this.#options;
    const what = `listing ${resource.name}`;
    const answerMs = this.#answerLimit.ofList;
    return guarded({ clock, stop, what, answerMs, silenceMs: ANSWER_SILENCE_MS }, (guard) => {
      this.#sent(guard);
      return run(guard);
    });
  }
}

/** 403 too: some clusters' policies allow `list` and not every `watch`. */
function isRefusal(kind: FailureKind): boolean {
  return kind === 'unsupported' || kind === 'forbidden';
}

/** The server does not have the version that was asked for. */
function isLost(kind: FailureKind): boolean {
  return kind === 'expired' || kind === 'ahead';
}

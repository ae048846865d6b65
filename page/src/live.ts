/**
 * Events of the proxy, as they happen. One stream for the whole page, none while the tab is hidden. Not by EventSource,
 * which can send no token.
 */
import type { WatchEvent } from '../../src/explain/types.ts';
import { ApiFailure, ask } from './api.ts';
import { EventStream } from './eventStream.ts';
import { retryPause } from './retry.ts';

export type LiveState =
  | { readonly kind: 'connecting' }
  | { readonly kind: 'connected'; readonly since: number }
  /** What is shown was true then. `reason`: why the stream ended. */
  | { readonly kind: 'stale'; readonly since: number; readonly reason: string; readonly nextTryAt: number }
  /** The source has no events: a bundle. */
  | { readonly kind: 'fixed' }
  /** A token is needed, or another one; or pages like this may not ask. */
  | { readonly kind: 'denied'; readonly failure: ApiFailure };

type Listener = (events: readonly WatchEvent[]) => void;

/** The proxy says something every 15 s, if only that it is there. */
const SILENCE_MS = 40_000;
const DENIALS: ReadonlySet<number> = new Set([401, 403, 421]);
/** The first questions do not wait longer for the stream. */
const OPENING_MS = 1000;

class LiveEvents {
  readonly #listeners = new Set<Listener>();
  readonly #watchers = new Set<() => void>();
  readonly #opened = deferred();
  #isOpened = false;
  #state: LiveState = { kind: 'connecting' };
  #stream: AbortController | undefined;
  #failures = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  get state(): LiveState {
    return this.#state;
  }

  start(): void {
    document.addEventListener('visibilitychange', () => {
      if (document.hidden) this.#stop();
      else this.open();
    });
    if (!document.hidden) this.open();
  }

  /**
   * Resolves when the stream is open, or did not open: no event after an answer that was asked for from then on is missed,
   * and nothing has to be asked for twice.
   */
  opened(): Promise<void> {
    return this.#opened.promise;
  }

  /** Returns what ends it. After a gap, `events` is empty and everything shown must be asked for again. */
  subscribe(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  onState(watcher: () => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** Again, without waiting for the next try. */
  open(): void {
    this.#stop();
    if (this.#state.kind === 'fixed') return;
    const stream = new AbortController();
    this.#stream = stream;
    if (this.#state.kind === 'connected') this.#set({ kind: 'connecting' });
    if (!this.#isOpened) this.#timer = setTimeout(() => this.#release(), OPENING_MS);
    this.#read(stream).catch((error: unknown) => {
      if (this.#stream === stream) this.#fail(error);
    });
  }

  #set(state: LiveState): void {
    this.#state = state;
    for (const watcher of this.#watchers) watcher();
  }

  #release(): void {
    this.#isOpened = true;
    this.#opened.resolve();
  }

  #stop(): void {
    clearTimeout(this.#timer);
    this.#stream?.abort(new Error('hidden'));
    this.#stream = undefined;
  }

  #fail(error: unknown): void {
    this.#stop();
    if (error instanceof ApiFailure && DENIALS.has(error.status)) {
      this.#set({ kind: 'denied', failure: error });
      return;
    }
    const reason = error instanceof Error ? error.message : String(error);
    const since = this.#state.kind === 'stale' ? this.#state.since : Date.now();
    const pause = retryPause(++this.#failures);
    this.#set({ kind: 'stale', since, reason, nextTryAt: Date.now() + pause });
    this.#release();
    this.#timer = setTimeout(() => this.open(), pause);
  }

  async #read(stream: AbortController): Promise<void> {
    const response = await ask('/v1/watch?format=events', stream.signal);
    if (!response.body) throw new Error('the stream has no body');
    const isFixed = response.headers.get('X-Junction-Events') === 'none';
    clearTimeout(this.#timer);
    this.#failures = 0;
    this.#set(isFixed ? { kind: 'fixed' } : { kind: 'connected', since: Date.now() });
    // Whatever happened before is not among the events.
    if (this.#isOpened) this.#emit([]);
    else this.#release();
    if (isFixed) return this.#stop();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const events = new EventStream();
    for (;;) {
      const { done, value } = await withLimit(reader.read(), SILENCE_MS);
      if (done) throw new Error('the proxy has closed the stream');
      const complete = events.push(value);
      if (complete.length > 0) this.#emit(complete);
      // A proxy that starts answers before it has everything.
      if (complete.some((event) => event.kind === 'sync' && event.cause === 'start')) this.#emit([]);
    }
  }

  #emit(events: readonly WatchEvent[]): void {
    for (const listener of this.#listeners) listener(events);
  }
}

function deferred(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = (): void => undefined;
  const promise = new Promise<void>((done) => (resolve = done));
  return { promise, resolve: () => resolve() };
}

function withLimit<T>(promise: Promise<T>, ms: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('nothing was heard from the proxy')), ms);
    // What the browser says of it differs, and says no more.
    const lost = (): void => reject(new Error('the connection to the proxy was lost'));
    promise.then(resolve, lost).finally(() => clearTimeout(timer));
  });
}

export const live = new LiveEvents();

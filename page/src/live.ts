/**
 * Events of the proxy, as they happen. One stream for the whole page, none while the tab is hidden. Not by EventSource,
 * which can send no token.
 */
import type { WatchEvent } from '../../src/explain/types.ts';
import { ask } from './api.ts';

export type LiveState =
  | { readonly kind: 'connecting' }
  | { readonly kind: 'connected'; readonly since: number }
  /** What is shown was true then. `reason`: why the stream ended. */
  | { readonly kind: 'stale'; readonly since: number; readonly reason: string }
  /** The source has no events: a bundle. */
  | { readonly kind: 'fixed' };

type Listener = (events: readonly WatchEvent[]) => void;

const RETRY_MS = [250, 500, 1000, 2000, 5000];
/** The proxy says something every 15 s, if only that it is there. */
const SILENCE_MS = 40_000;

export class LiveEvents {
  readonly #listeners = new Set<Listener>();
  readonly #watchers = new Set<() => void>();
  #state: LiveState = { kind: 'connecting' };
  #stream: AbortController | undefined;
  #tries = 0;
  #retry: ReturnType<typeof setTimeout> | undefined;

  get state(): LiveState {
    return this.#state;
  }

  start(): void {
    document.addEventListener('visibilitychange', () => {
      if (document.hidden) this.#stop();
      else this.#open();
    });
    if (!document.hidden) this.#open();
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

  #set(state: LiveState): void {
    this.#state = state;
    for (const watcher of this.#watchers) watcher();
  }

  #stop(): void {
    clearTimeout(this.#retry);
    this.#stream?.abort(new Error('hidden'));
    this.#stream = undefined;
  }

  #open(): void {
    this.#stop();
    const stream = new AbortController();
    this.#stream = stream;
    this.#read(stream).catch((error: unknown) => {
      if (this.#stream !== stream) return;
      const reason = error instanceof Error ? error.message : String(error);
      const since = this.#state.kind === 'stale' ? this.#state.since : Date.now();
      this.#set({ kind: 'stale', since, reason });
      const pause = RETRY_MS[Math.min(this.#tries++, RETRY_MS.length - 1)] ?? 5000;
      this.#retry = setTimeout(() => this.#open(), pause);
    });
  }

  async #read(stream: AbortController): Promise<void> {
    const response = await ask('/v1/watch?format=events', stream.signal);
    if (!response.body) throw new Error('the stream has no body');
    if (response.headers.get('X-Junction-Events') === 'none') {
      this.#set({ kind: 'fixed' });
      return;
    }
    this.#tries = 0;
    this.#set({ kind: 'connected', since: Date.now() });
    // Whatever happened before is not among the events.
    this.#emit([]);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '';
    for (;;) {
      const { done, value } = await withLimit(reader.read(), SILENCE_MS);
      if (done) throw new Error('the proxy has closed the stream');
      const blocks = (rest + value).split('\n\n');
      rest = blocks.pop() ?? '';
      const events = blocks.flatMap(eventOf);
      if (events.length > 0) this.#emit(events);
    }
  }

  #emit(events: readonly WatchEvent[]): void {
    for (const listener of this.#listeners) listener(events);
  }
}

function eventOf(block: string): readonly WatchEvent[] {
  const data = block
    .split('\n')
    .filter((line) => line.startsWith('data:'))
    .map((line) => line.slice(5).trimStart())
    .join('\n');
  return data === '' ? [] : [JSON.parse(data) as WatchEvent];
}

function withLimit<T>(promise: Promise<T>, ms: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('nothing was heard from the proxy')), ms);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

export const live = new LiveEvents();

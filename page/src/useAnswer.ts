/** An answer of the API, kept while a newer one is on its way, and asked for again when events say that it is old. */
import { useEffect, useState } from 'preact/hooks';
import type { WatchEvent } from '../../src/explain/types.ts';
import { ApiFailure, askJson } from './api.ts';
import { live } from './live.ts';

export type Answer<T> =
  | { readonly kind: 'loading' }
  | { readonly kind: 'failed'; readonly failure: ApiFailure }
  /** `failure`: it could not be asked for again. `at`: when it came. */
  | { readonly kind: 'here'; readonly value: T; readonly at: number; readonly failure?: ApiFailure };

/** Not more often than this, however many events come. */
const LEAST_PAUSE_MS = 400;

/**
 * `path` undefined: nothing is asked. `isTouched`: which events make the answer old; unset: none but a gap in the
 * events.
 */
export function useAnswer<T>(
  path: string | undefined,
  isTouched?: (event: WatchEvent) => boolean,
  read: (path: string, signal: AbortSignal) => Promise<T> = askJson,
): Answer<T> {
  const [answer, setAnswer] = useState<Answer<T>>({ kind: 'loading' });
  useEffect(() => {
    if (path === undefined) return;
    const ended = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isAsking = false;
    let isOld = false;
    const refresh = async (): Promise<void> => {
      isAsking = true;
      isOld = false;
      try {
        const value = await read(path, ended.signal);
        setAnswer({ kind: 'here', value, at: Date.now() });
      } catch (error) {
        if (ended.signal.aborted) return;
        const failure = error instanceof ApiFailure ? error : new ApiFailure(0, String(error));
        setAnswer((before) =>
          before.kind === 'here' ? { ...before, failure } : { kind: 'failed', failure },
        );
      }
      timer = setTimeout(() => {
        isAsking = false;
        if (isOld) void refresh();
      }, LEAST_PAUSE_MS);
    };
    setAnswer({ kind: 'loading' });
    void refresh();
    const unsubscribe = live.subscribe((events) => {
      if (events.length > 0 && !events.some((event) => event.kind === 'lost' || isTouched?.(event))) return;
      isOld = true;
      if (!isAsking) void refresh();
    });
    return () => {
      ended.abort();
      clearTimeout(timer);
      unsubscribe();
    };
  }, [path]);
  return answer;
}

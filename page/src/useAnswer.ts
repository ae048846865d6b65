/** An answer of the API, kept while a newer one is on its way, and asked for again when events say that it is old. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { WatchEvent } from '../../src/explain/types.ts';
import { askJson } from './api.ts';
import { ApiFailure, failureOf } from './apiFailure.ts';
import { live } from './live.ts';
import { Refresher } from './refresher.ts';

export type Answer<T> =
  | { readonly kind: 'loading' }
  /** `again`: asks without waiting for anything. */
  | { readonly kind: 'failed'; readonly failure: ApiFailure; readonly again?: () => void }
  /** `failure`: it could not be asked for again. `at`: when it came. */
  | {
      readonly kind: 'here';
      readonly value: T;
      readonly at: number;
      readonly failure?: ApiFailure;
      readonly again?: () => void;
    };

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
  // What touches an answer may depend on it.
  const touches = useRef(isTouched);
  touches.current = isTouched;
  useEffect(() => {
    if (path === undefined) return;
    const again = (): void => refresher.now();
    const refresher = new Refresher<T>({
      ask: (signal) => live.opened().then(() => read(path, signal)),
      onAnswer: (value) => setAnswer({ kind: 'here', value, at: Date.now(), again }),
      onFailure: (error) => {
        const failure = failureOf(error);
        setAnswer((before) =>
          before.kind === 'here' ? { ...before, failure } : { kind: 'failed', failure, again },
        );
      },
      mayPass,
    });
    setAnswer({ kind: 'loading' });
    refresher.now();
    const unsubscribe = live.subscribe((events) => {
      if (events.length === 0 || events.some((event) => event.kind === 'lost' || touches.current?.(event)))
        refresher.touch();
    });
    return () => {
      refresher.stop();
      unsubscribe();
    };
  }, [path]);
  return answer;
}

/** Without an answer, the stream of events says when there is one again; with one of the server's, nothing does. */
export function mayPass(error: unknown): boolean {
  return !document.hidden && error instanceof ApiFailure && (error.status === 0 || error.status >= 500);
}

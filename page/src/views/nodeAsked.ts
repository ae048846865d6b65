/** What changes without an event: asked for on request, or again every few seconds while somebody looks. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { askJson } from '../api.ts';
import { failureOf } from '../apiFailure.ts';
import { live } from '../live.ts';
import { useNow } from '../parts/time.tsx';
import { Refresher } from '../refresher.ts';
import { type Answer, mayPass } from '../useAnswer.ts';

interface Asked<T> {
  /** Unset until the first came. */
  readonly answer: Answer<T> | undefined;
  readonly isAsking: boolean;
  readonly ask: () => void;
}

/** Asked once, and then on request only. */
export function useAsked<T>(path: string): Asked<T> {
  const [answer, setAnswer] = useState<Answer<T>>();
  const [isAsking, setIsAsking] = useState(true);
  const ended = useRef<AbortController | undefined>(undefined);
  const ask = (): void => {
    const { signal } = (ended.current = new AbortController());
    setIsAsking(true);
    askJson<T>(path, signal)
      .then(
        (value) => setAnswer({ kind: 'here', value, at: Date.now() }),
        (error: unknown) => {
          if (!signal.aborted) setAnswer({ kind: 'failed', failure: failureOf(error) });
        },
      )
      .finally(() => {
        if (!signal.aborted) setIsAsking(false);
      });
  };
  useEffect(() => {
    ask();
    return () => ended.current?.abort();
  }, [path]);
  return { answer, isAsking, ask };
}

/**
 * Counts of connections and ages of watches move without an event. `byEvents`: with an event, too. What is not there is not
 * asked for again. `path` undefined: nothing is asked.
 */
export function usePolled<T>(path: string | undefined, everyMs: number, byEvents: boolean): Answer<T> {
  const [answer, setAnswer] = useState<Answer<T>>({ kind: 'loading' });
  const poll = useRef<() => void>(() => undefined);
  // The clock of the page, which stands still in a hidden tab.
  const turn = Math.floor(useNow() / everyMs);
  useEffect(() => poll.current(), [turn]);
  useEffect(() => {
    if (path === undefined) return;
    let isAbsent = false;
    const refresher = new Refresher<T>({
      ask: (signal) => live.opened().then(() => askJson<T>(path, signal)),
      onAnswer: (value) => setAnswer({ kind: 'here', value, at: Date.now() }),
      onFailure: (error) => {
        const failure = failureOf(error);
        isAbsent = failure.status === 404;
        setAnswer((before) =>
          before.kind === 'here'
            ? { ...before, failure }
            : { kind: 'failed', failure, again: () => refresher.now() },
        );
      },
      mayPass,
    });
    refresher.now();
    poll.current = () => {
      if (!isAbsent && live.state.kind === 'connected') refresher.touch();
    };
    const unsubscribe = live.subscribe((events) => {
      // After a gap, another proxy may answer.
      if (events.length === 0 || (byEvents && !isAbsent)) refresher.touch();
    });
    return () => {
      poll.current = () => undefined;
      unsubscribe();
      refresher.stop();
    };
  }, [path]);
  return answer;
}

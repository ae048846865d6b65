/** The events for the view: those that the proxy kept, and those that come. Drawn at most ten times a second. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { timeOfEvent } from '../../../src/explain/events.ts';
import type { WatchEvent } from '../../../src/explain/types.ts';
import { askJson } from '../api.ts';
import { failureOf } from '../apiFailure.ts';
import { live } from '../live.ts';
import { Refresher } from '../refresher.ts';
import { type Answer, mayPass } from '../useAnswer.ts';
import { EventLog, type Gap, type LoggedEvent } from './syncsLog.ts';

export interface Logged {
  readonly entries: readonly LoggedEvent[];
  readonly gaps: readonly Gap[];
  /** How much later it is at the proxy than here, in milliseconds. */
  readonly skewMs: number;
}

const LEAST_PAUSE_MS = 100;
/** Less may as well be the way of an event to here. */
const LEAST_SKEW_MS = 1000;

export function useSyncEvents(): Answer<Logged> {
  const [answer, setAnswer] = useState<Answer<Logged>>({ kind: 'loading' });
  const skew = useRef(0);
  useEffect(() => {
    const log = new EventLog();
    const draw = (): void => {
      const { entries, gaps } = log;
      const value = { entries, gaps, skewMs: skew.current };
      setAnswer({ kind: 'here', value, at: Date.now() });
    };
    const pacer = new Pacer(draw);
    let hasPast = false;
    const past = new Refresher<readonly WatchEvent[]>({
      ask: (signal) => live.opened().then(() => askJson<readonly WatchEvent[]>('/v1/events', signal)),
      onAnswer: (events) => {
        log.merge(events);
        hasPast = true;
        draw();
      },
      onFailure: (error) => {
        const failure = failureOf(error);
        setAnswer((before) =>
          before.kind === 'here'
            ? { ...before, failure }
            : { kind: 'failed', failure, again: () => past.now() },
        );
      },
      mayPass,
    });
    past.now();
    const unsubscribe = live.subscribe((events) => {
      if (events.length === 0) return past.touch();
      log.add(events);
      const newest = events.at(-1);
      const ahead = newest ? timeOfEvent(newest) - Date.now() : 0;
      skew.current = Math.abs(ahead) < LEAST_SKEW_MS ? 0 : ahead;
      if (hasPast) pacer.request();
    });
    return () => {
      unsubscribe();
      past.stop();
      pacer.stop();
    };
  }, []);
  return answer;
}

/** Draws in an animation frame, of which a hidden tab has none, and not in every one. */
class Pacer {
  readonly #draw: () => void;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #frame: number | undefined;
  #drawnAt = 0;

  constructor(draw: () => void) {
    this.#draw = draw;
  }

  request(): void {
    if (this.#timer !== undefined || this.#frame !== undefined) return;
    const pause = Math.max(0, this.#drawnAt + LEAST_PAUSE_MS - performance.now());
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#frame = requestAnimationFrame((now) => {
        this.#frame = undefined;
        this.#drawnAt = now;
        this.#draw();
      });
    }, pause);
  }

  stop(): void {
    clearTimeout(this.#timer);
    if (this.#frame !== undefined) cancelAnimationFrame(this.#frame);
  }
}

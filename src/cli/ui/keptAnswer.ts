/** An answer that is dear: it is kept for a while, and all who ask meanwhile wait for the same one. */
import { systemClock } from '../../time/systemClock.ts';

export function keptFor<T>(milliseconds: number, ask: () => Promise<T>): () => Promise<T> {
  let kept: { readonly answer: Promise<T>; readonly until: number } | undefined;
  return async () => {
    if (!kept || systemClock.now() >= kept.until)
      kept = { answer: ask(), until: systemClock.now() + milliseconds };
    try {
      return await kept.answer;
    } catch (error) {
      kept = undefined;
      throw error;
    }
  };
}

/** How many questions are worked on at one time. Others wait in line; beyond that they are refused. */
import { RefusedQuestion } from './routes.ts';

const MOST_AT_ONCE = 4;
const MOST_WAITING = 256;

export class QuestionGate {
  #working = 0;
  readonly #waiting: (() => void)[] = [];

  async ask<T>(answer: () => Promise<T>): Promise<T> {
    if (this.#working >= MOST_AT_ONCE) {
      if (this.#waiting.length >= MOST_WAITING)
        throw new RefusedQuestion(503, 'busy', `${MOST_WAITING} questions wait already`, 'Ask again later.');
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    } else this.#working++;
    try {
      return await answer();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#working--;
    }
  }
}

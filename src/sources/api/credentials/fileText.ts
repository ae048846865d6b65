/** A file that somebody else replaces now and then: a token, a certificate. */
import { JunctionError } from '../../../errors.ts';
import { explainFileError } from './explain.ts';
import type { Surroundings } from './surroundings.ts';

/** The kubelet writes a new token long before the old one ends; a minute late is early enough. */
const FRESH_MS = 60_000;

export class FileText {
  readonly path: string;
  readonly #what: string;
  readonly #surroundings: Surroundings;
  #last: { readonly text: string; readonly readAt: number } | undefined;
  #isStale = false;

  /** `what` is for messages: `kubeconfig /etc/junction.conf, user "proxy": tokenFile`. */
  constructor(path: string, what: string, surroundings: Surroundings) {
    this.path = path;
    this.#what = what;
    this.#surroundings = surroundings;
  }

  async read(): Promise<string> {
    const { clock, readFile } = this.#surroundings;
    const last = this.#last;
    if (last !== undefined && !this.#isStale && clock.now() - last.readAt < FRESH_MS) return last.text;
    try {
      const text = await readFile(this.path);
      if (text.trim() === '') throw new Error('it is empty');
      this.#last = { text, readAt: clock.now() };
      this.#isStale = false;
      return text;
    } catch (error) {
      // In the middle of being replaced, perhaps; what was good a minute ago may still be.
      if (last !== undefined) return last.text;
      const message = `${this.#what}: cannot read ${this.path}: ${explainFileError(error)}`;
      throw new JunctionError('CREDENTIALS_UNAVAILABLE', message, { cause: error });
    }
  }

  /** The next read goes to the disk. */
  forget(): void {
    this.#isStale = true;
  }
}

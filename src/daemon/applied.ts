/** Says when everything that the source has received is in the kernel, and until then what is still open. */

/** Work that has to end first. */
export interface Work {
  /** Marks what is open now. The result says later what of it still is, a sentence each; what comes after the mark is not in it. */
  mark(): () => readonly string[];
}

/** What an answer waits for besides. */
export interface Wait {
  /** What the source has not received yet, a sentence each. */
  readonly missing: () => readonly string[];
  /** Aborted at the time-out, or when the client has disconnected. */
  readonly signal: AbortSignal;
}

interface AppliedOptions {
  /** Resolves when everything that had arrived is with the parts of the proxy. */
  readonly refresh: () => Promise<void>;
  /** What the source is receiving, a sentence each. */
  readonly receiving: () => readonly string[];
  readonly work: () => readonly Work[];
}

export class Applied {
  readonly #options: AppliedOptions;
  readonly #waiting = new Set<() => void>();

  constructor(options: AppliedOptions) {
    this.#options = options;
  }

  /** To be called when work has ended. */
  changed(): void {
    for (const wake of this.#waiting) wake();
  }

  /** Returns what is still open at the end of the signal; nothing: everything is applied. */
  async wait({ missing, signal }: Wait): Promise<readonly string[]> {
    const { refresh, receiving, work } = this.#options;
    const unreceived = (): readonly string[] => [...receiving(), ...missing()];
    const unwritten = (): (() => readonly string[]) => {
      const marks = work().map((each) => each.mark());
      return () => marks.flatMap((open) => open());
    };
    const isRefreshed = await endsBefore(refresh(), signal);
    await this.#until(unreceived, signal);
    const open = unwritten();
    if (isRefreshed) await this.#until(open, signal);
    const rest = [...(isRefreshed ? [] : [REFRESHING]), ...unreceived(), ...open()];
    return signal.aborted ? [...new Set(rest)] : [];
  }

  async #until(open: () => readonly string[], signal: AbortSignal): Promise<void> {
    while (!signal.aborted && open().length > 0) {
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          this.#waiting.delete(wake);
          signal.removeEventListener('abort', wake);
          resolve();
        };
        this.#waiting.add(wake);
        signal.addEventListener('abort', wake);
      });
    }
  }
}

const REFRESHING = 'what the source has received is still being read';

/** False: the signal was first. */
function endsBefore(work: Promise<void>, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const end = (isDone: boolean): void => {
      signal.removeEventListener('abort', onAbort);
      resolve(isDone);
    };
    const onAbort = (): void => end(false);
    if (signal.aborted) return end(false);
    signal.addEventListener('abort', onAbort);
    work.then(() => end(true), reject);
  });
}

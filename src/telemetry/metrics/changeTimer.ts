/**
 * How long changes take from their arrival to the kernel.
 *
 * One sync takes all changes that wait, and what is measured is the one that waited longest: nobody waited longer
 * than that.
 */
export interface ChangeTimes {
  /** From the event to the plan. */
  readonly planSeconds: number;
  /** From the plan to the kernel's acknowledgement. */
  readonly writeSeconds: number;
  readonly totalSeconds: number;
}

/** Times are those of a steady clock, in milliseconds. */
export class ChangeTimer {
  #receivedAt: number | undefined;
  #writing: { readonly receivedAt: number; readonly plannedAt: number } | undefined;

  received(now: number): void {
    this.#receivedAt ??= now;
  }

  /** All changes so far are in the plan. After a failed write they are measured from when they came. */
  planned(now: number): void {
    const receivedAt = this.#writing?.receivedAt ?? this.#receivedAt;
    this.#receivedAt = undefined;
    this.#writing = receivedAt === undefined ? undefined : { receivedAt, plannedAt: now };
  }

  /** The plan is in the kernel; `undefined`: no change was waiting for that. */
  written(now: number): ChangeTimes | undefined {
    const writing = this.#writing;
    this.#writing = undefined;
    return (
      writing && {
        planSeconds: (writing.plannedAt - writing.receivedAt) / 1000,
        writeSeconds: (now - writing.plannedAt) / 1000,
        totalSeconds: (now - writing.receivedAt) / 1000,
      }
    );
  }
}

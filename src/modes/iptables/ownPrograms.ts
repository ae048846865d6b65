/** The programs that we run ourselves, by the numbers of their processes: what they change is no foreign change. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ProcessObserver } from '../../system/processes.ts';

/** Gets the numbers of those that run now, and answers when the kernel tells of them no more. */
export type OwnProgramsFollower = (processIds: readonly number[]) => Promise<void>;

const MOST_WAIT_MS = 1000;

export class OwnPrograms implements ProcessObserver {
  readonly #running = new Set<number>();
  /** Running, or ended so recently that the kernel's word of what they did may still be on its way. */
  readonly #known = new Set<number>();
  #follower: OwnProgramsFollower | undefined;

  follow(follower: OwnProgramsFollower | undefined): void {
    this.#follower = follower;
  }

  has(processId: number | undefined): boolean {
    return processId !== undefined && this.#known.has(processId);
  }

  async started(processId: number): Promise<void> {
    this.#running.add(processId);
    this.#known.add(processId);
    await this.#tell();
  }

  ended(processId: number): void {
    this.#running.delete(processId);
    void this.#tell().then(() => {
      // The number may have been given to another program of ours meanwhile.
      if (!this.#running.has(processId)) this.#known.delete(processId);
    });
  }

  /**
   * A follower that fails has lost its socket, and looks at everything when it has another. One that is slow must not
   * hold up a write: what the kernel tells of it then is recognised by its sender.
   */
  async #tell(): Promise<void> {
    const told = this.#follower?.([...this.#running]).catch(() => undefined);
    if (told) await Promise.race([told, sleep(MOST_WAIT_MS, undefined, { ref: false })]);
  }
}

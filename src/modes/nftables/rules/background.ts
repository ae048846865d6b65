/**
 * A rebuild beside syncs. Changes are written into the table in force meanwhile, by the ordinary way, and into the new one
 * before the swap.
 */
import type { ServicePortId } from '../../../model/serviceTracker.ts';
import type { Plan } from '../../../plan/types.ts';
import { Rebuild, type RebuildOptions } from './rebuild.ts';
import type { WrittenTable } from './written.ts';

interface BackgroundOptions {
  readonly rebuild: RebuildOptions;
  /** The one in force. */
  readonly table: WrittenTable;
  readonly plan: Plan;
  /** Work that has to end before. */
  readonly after: Promise<unknown> | undefined;
  /** It can be swapped now, or has failed. */
  readonly onEnd: () => void;
}

export interface BuiltTable {
  readonly rebuild: Rebuild;
  readonly refused: ReadonlyMap<ServicePortId, Error>;
}

export class BackgroundRebuild {
  /** Never rejects. */
  readonly #done: Promise<void>;
  #rebuild: Rebuild | undefined;
  #built: BuiltTable | undefined;
  #error: unknown;
  #isSpoiled = false;

  constructor(options: BackgroundOptions) {
    this.#done = this.#run(options)
      .catch((error: unknown) => {
        this.#error = error;
      })
      .then(options.onEnd);
  }

  async #run({ rebuild: given, table, plan, after }: BackgroundOptions): Promise<void> {
    await after;
    const rebuild = await Rebuild.begin(given, table.options);
    this.#rebuild = rebuild;
    const refused = await rebuild.writeAll(new Map(table.ports), new Map());
    await rebuild.catchUp(table.ports);
    await rebuild.copyAffinity([table], { plan, nodeIps: table.options.nodeIps ?? [] });
    this.#built = { rebuild, refused };
  }

  /** These were written into the table in force. */
  note(ids: Iterable<ServicePortId>): void {
    this.#rebuild?.note(ids);
  }

  /** What was built so far is of no use: another program changed it, where these tables are named. */
  spoil(names: ReadonlySet<string> | undefined): void {
    if (names && !names.has(this.#rebuild?.table.name ?? '')) return;
    this.#isSpoiled = true;
    this.#rebuild?.stop();
  }

  get isSpoiled(): boolean {
    return this.#isSpoiled;
  }

  get hasEnded(): boolean {
    return this.#built !== undefined || this.#error !== undefined;
  }

  /** Once it has ended: throws where it failed. */
  get built(): BuiltTable | undefined {
    if (this.#error !== undefined) throw this.#error;
    return this.#built;
  }

  async stop(): Promise<void> {
    this.#rebuild?.stop();
    await this.#done;
  }
}

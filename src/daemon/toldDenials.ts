/** Two services name one address: who did not get it should know, and once is enough for as long as it is so. */
import type { FrontendKey } from '../plan/claims.ts';
import type { ServicePortId } from '../model/serviceTracker.ts';

export interface Denial {
  readonly key: FrontendKey;
  readonly owner: ServicePortId;
}

export class ToldDenials {
  readonly #told = new Map<ServicePortId, ReadonlySet<string>>();

  /** Of all that a service port is denied now, what has not been told yet. What is over is forgotten. */
  news(id: ServicePortId, denied: readonly Denial[]): readonly Denial[] {
    const before = this.#told.get(id);
    if (denied.length > 0) this.#told.set(id, new Set(denied.map(textOf)));
    else this.#told.delete(id);
    return denied.filter((denial) => before?.has(textOf(denial)) !== true);
  }
}

function textOf({ key, owner }: Denial): string {
  return `${key} ${owner}`;
}

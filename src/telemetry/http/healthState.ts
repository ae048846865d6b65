/**
 * Whether the proxy keeps up: a family that has had a change waiting for too long is unhealthy.
 *
 * A family that has never reported is left out, so that a machine with one family is not blamed for the other.
 */
import { FAMILIES, type Family } from '../../model/ip.ts';
import type { Moment, MomentSource } from './moment.ts';

export interface FamilyHealth {
  readonly family: Family;
  readonly lastUpdated: Moment;
  readonly healthy: boolean;
}

/** A resource of the API server. */
export interface ResourceHealth {
  readonly resource: string;
  /** At least once. Until then there is nothing to serve. */
  readonly hasListed: boolean;
  /** Since when it cannot be listed or watched, and why; nothing when it can. */
  readonly since?: string;
  readonly reason?: string;
}

/** Not served at all. */
export interface LeftOutHealth {
  readonly family: Family;
  readonly since: Moment;
  readonly reason: string;
  /** The machine does not have this family, which is no fault of the proxy; else nobody knows. */
  readonly isAnswered: boolean;
}

export interface Health {
  readonly healthy: boolean;
  readonly leftOut: readonly LeftOutHealth[];
  readonly checkedAt: Moment;
  /** The newest of all families; `undefined`: none has reported. */
  readonly lastUpdated: Moment | undefined;
  readonly families: readonly FamilyHealth[];
}

export interface HealthStateOptions {
  /** A change may wait for twice as long. */
  readonly syncPeriodMs: number;
  readonly now: MomentSource;
}

export class HealthState {
  readonly #timeoutNs: bigint;
  readonly #now: MomentSource;
  readonly #lastUpdated = new Map<Family, Moment>();
  readonly #oldestPending = new Map<Family, Moment>();
  readonly #leftOut = new Map<Family, LeftOutHealth>();
  #nodeEligible = false;
  #resources: () => readonly ResourceHealth[] = () => [];

  constructor({ syncPeriodMs, now }: HealthStateOptions) {
    this.#timeoutNs = BigInt(Math.round(2 * syncPeriodMs * 1e6));
    this.#now = now;
  }

  /** A change waits to be written. Of several, the oldest counts. */
  queued(family: Family): void {
    if (!this.#oldestPending.has(family)) this.#oldestPending.set(family, this.#now());
  }

  /** The kernel has everything; or the family begins its work. */
  updated(family: Family): void {
    this.#leftOut.delete(family);
    this.#oldestPending.delete(family);
    this.#lastUpdated.set(family, this.#now());
  }

  /** The family cannot be served, until `updated`. */
  leftOut(family: Family, why: Pick<LeftOutHealth, 'reason' | 'isAnswered'>): void {
    const since = this.#leftOut.get(family)?.since ?? this.#now();
    this.#leftOut.set(family, { family, since, ...why });
  }

  setNodeEligible(eligible: boolean): void {
    this.#nodeEligible = eligible;
  }

  setResources(resources: () => readonly ResourceHealth[]): void {
    this.#resources = resources;
  }

  /** What the API server is asked for. A failure is no reason to leave the node once all has been listed. */
  get resources(): readonly ResourceHealth[] {
    return this.#resources();
  }

  get nodeEligible(): boolean {
    return this.#nodeEligible;
  }

  /** The proxy's own health, whatever becomes of the node. */
  isHealthy(): boolean {
    return this.check().healthy;
  }

  check(): Health {
    const checkedAt = this.#now();
    const families = FAMILIES.flatMap((family): readonly FamilyHealth[] => {
      const lastUpdated = this.#lastUpdated.get(family);
      return lastUpdated ? [{ family, lastUpdated, healthy: !this.#isLate(family, checkedAt) }] : [];
    });
    const leftOut = [...this.#leftOut.values()];
    return {
      healthy: families.every(({ healthy }) => healthy),
      leftOut,
      checkedAt,
      lastUpdated: families.map((each) => each.lastUpdated).reduce(newer, undefined),
      families,
    };
  }

  #isLate(family: Family, at: Moment): boolean {
    const pending = this.#oldestPending.get(family);
    return pending !== undefined && at.steadyNs - pending.steadyNs >= this.#timeoutNs;
  }
}

function newer(a: Moment | undefined, b: Moment): Moment {
  return a === undefined || b.steadyNs > a.steadyNs ? b : a;
}

/**
 * Who owns a frontend that several service ports claim: whose cluster IP it is, then the oldest, then the first by
 * name.
 *
 * Two services may name the same external IP and port. An address can be served once, and a newcomer must not take
 * it from whoever has it. A cluster IP is allocated by the cluster; nobody can claim it away by naming it.
 */
import type { Ip } from '../model/ip.ts';
import type { Protocol } from '../model/objects.ts';
import type { ServicePortId } from '../model/servicePort.ts';

/** `10.96.0.1/TCP/80`; `*` stands for the node's addresses. */
export type FrontendKey = string & { readonly __frontendKey?: true };

export function frontendKey(address: Ip | undefined, protocol: Protocol, port: number): FrontendKey {
  return `${address ?? '*'}/${protocol}/${port}`;
}

export interface Claimant {
  readonly id: ServicePortId;
  readonly createdAt: number | undefined;
  readonly isClusterIP: boolean;
}

export class Claims {
  /** The owner first. Most keys have one claimant. */
  readonly #claimants = new Map<FrontendKey, readonly Claimant[]>();

  ownerOf(key: FrontendKey): ServicePortId | undefined {
    return this.#claimants.get(key)?.[0]?.id;
  }

  /** Everybody who claims the key, the owner first. */
  claimantsOf(key: FrontendKey): readonly Claimant[] {
    return this.#claimants.get(key) ?? [];
  }

  /** Answers whose share of frontends this changed, apart from the claimant's own. */
  claim(key: FrontendKey, claimant: Claimant): ServicePortId | undefined {
    const known = this.#claimants.get(key);
    if (!known) {
      this.#claimants.set(key, [claimant]);
      return undefined;
    }
    const before = known[0]?.id;
    const others = known.filter((other) => other.id !== claimant.id);
    this.#claimants.set(key, [...others, claimant].sort(bySeniority));
    const after = this.ownerOf(key);
    if (before === after) return undefined;
    return before === claimant.id ? after : before; // an owner that is born again loses to who waited
  }

  /** Answers who owns the key now, if somebody else waited for it. */
  release(key: FrontendKey, id: ServicePortId): ServicePortId | undefined {
    const wasOwner = this.ownerOf(key) === id;
    const others = this.claimantsOf(key).filter((other) => other.id !== id);
    if (others.length > 0) this.#claimants.set(key, others);
    else this.#claimants.delete(key);
    return wasOwner ? others[0]?.id : undefined;
  }
}

function bySeniority(a: Claimant, b: Claimant): number {
  if (a.isClusterIP !== b.isClusterIP) return a.isClusterIP ? -1 : 1;
  const age = (a.createdAt ?? Number.POSITIVE_INFINITY) - (b.createdAt ?? Number.POSITIVE_INFINITY);
  if (age < 0 || age > 0) return age; // both unknown: Infinity - Infinity is NaN, so fall through
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
}

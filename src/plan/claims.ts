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

/** Somebody may name an address that thousands name already, so only the owner's place is known. */
interface Claimed {
  owner: Claimant;
  readonly others: Map<ServicePortId, Claimant>;
}

export class Claims {
  /** Most keys have one claimant, who stands for itself. */
  readonly #claimants = new Map<FrontendKey, Claimant | Claimed>();

  ownerOf(key: FrontendKey): ServicePortId | undefined {
    const claimed = this.#claimants.get(key);
    return claimed && ownerOf(claimed).id;
  }

  /** Everybody who claims the key, the owner first. */
  claimantsOf(key: FrontendKey): readonly Claimant[] {
    const claimed = this.#claimants.get(key);
    if (!claimed) return [];
    return 'owner' in claimed
      ? [claimed.owner, ...[...claimed.others.values()].sort(bySeniority)]
      : [claimed];
  }

  /** Answers whose share of frontends this changed, apart from the claimant's own. */
  claim(key: FrontendKey, claimant: Claimant): ServicePortId | undefined {
    const claimed = this.#claimants.get(key);
    const owner = claimed && ownerOf(claimed);
    if (!claimed || (owner?.id === claimant.id && !('owner' in claimed))) {
      this.#claimants.set(key, claimant);
      return undefined;
    }
    const shared: Claimed = 'owner' in claimed ? claimed : { owner: claimed, others: new Map() };
    this.#claimants.set(key, shared);
    const before = shared.owner;
    if (before.id !== claimant.id) {
      shared.others.set(claimant.id, claimant);
      if (bySeniority(claimant, before) > 0) return undefined;
      give(shared, claimant);
      return before.id;
    }
    shared.owner = claimant;
    const eldest = eldestOf(shared.others);
    if (!eldest || bySeniority(claimant, eldest) < 0) return undefined;
    give(shared, eldest); // an owner that is born again loses to who waited
    return eldest.id;
  }

  /** Answers who owns the key now, if somebody else waited for it. */
  release(key: FrontendKey, id: ServicePortId): ServicePortId | undefined {
    const claimed = this.#claimants.get(key);
    if (!claimed) return undefined;
    if (!('owner' in claimed)) {
      if (claimed.id === id) this.#claimants.delete(key);
      return undefined;
    }
    const { owner, others } = claimed;
    if (owner.id !== id) {
      others.delete(id);
      if (others.size === 0) this.#claimants.set(key, owner);
      return undefined;
    }
    const eldest = eldestOf(others);
    if (!eldest) {
      this.#claimants.delete(key);
      return undefined;
    }
    others.delete(eldest.id);
    claimed.owner = eldest;
    if (others.size === 0) this.#claimants.set(key, eldest);
    return eldest.id;
  }
}

function ownerOf(claimed: Claimant | Claimed): Claimant {
  return 'owner' in claimed ? claimed.owner : claimed;
}

function give(claimed: Claimed, heir: Claimant): void {
  claimed.others.delete(heir.id);
  claimed.others.set(claimed.owner.id, claimed.owner);
  claimed.owner = heir;
}

function eldestOf(claimants: ReadonlyMap<ServicePortId, Claimant>): Claimant | undefined {
  let eldest: Claimant | undefined;
  for (const claimant of claimants.values())
    if (!eldest || bySeniority(claimant, eldest) < 0) eldest = claimant;
  return eldest;
}

function bySeniority(a: Claimant, b: Claimant): number {
  if (a.isClusterIP !== b.isClusterIP) return a.isClusterIP ? -1 : 1;
  const age = (a.createdAt ?? Number.POSITIVE_INFINITY) - (b.createdAt ?? Number.POSITIVE_INFINITY);
  if (age < 0 || age > 0) return age; // both unknown: Infinity - Infinity is NaN, so fall through
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
}

/**
 * Who owns a frontend that several service ports claim: whose cluster IP it is, then the oldest, then the first by
 * name.
 *
 * Two services may name the same external IP and port. An address can be served once, and a newcomer must not take
 * it from whoever has it. A cluster IP is allocated by the cluster; no other service can claim it by naming it.
 */
import { hostPort, type Ip, parseIp } from '../model/ip.ts';
import { flat } from '../model/flat.ts';
import type { Protocol } from '../model/objects.ts';
import type { ServicePortId } from '../model/serviceTracker.ts';
import type { Frontend, ServicePortPlan } from './types.ts';

/** `10.96.0.1/TCP/80`; `*` stands for the node's addresses. */
export type FrontendKey = string;

export function frontendKey(address: Ip | undefined, protocol: Protocol, port: number): FrontendKey {
  return flat(`${address ?? '*'}/${protocol}/${port}`);
}

/** `10.96.0.1:80/TCP`, `node port 30080/TCP` */
export function printFrontendKey(key: FrontendKey): string {
  const [address = '', protocol = '', port = ''] = key.split('/');
  const ip = parseIp(address);
  return ip === undefined ? `node port ${port}/${protocol}` : `${hostPort(ip, Number(port))}/${protocol}`;
}

interface Claimant {
  readonly id: ServicePortId;
  readonly createdAt: number | undefined;
  readonly isClusterIP: boolean;
}

/** Who waits for a frontend. Thousands may name one address, so they are put in order when the first one is asked for. */
class Waiting {
  readonly #byId = new Map<ServicePortId, Claimant>();
  /** The eldest last; some may have left. `undefined`: not in order. */
  #sorted: Claimant[] | undefined;

  get size(): number {
    return this.#byId.size;
  }

  ids(): readonly ServicePortId[] {
    return [...this.#byId.keys()];
  }

  get(id: ServicePortId): Claimant | undefined {
    return this.#byId.get(id);
  }

  add(claimant: Claimant): void {
    this.#byId.set(claimant.id, claimant);
    this.#sorted = undefined;
  }

  remove(id: ServicePortId): void {
    this.#byId.delete(id);
  }

  eldest(): Claimant | undefined {
    this.#sorted ??= [...this.#byId.values()].sort((a, b) => bySeniority(b, a));
    for (;;) {
      const last = this.#sorted.at(-1);
      if (!last || this.#byId.get(last.id) === last) return last;
      this.#sorted.pop();
    }
  }
}

interface Claimed {
  owner: Claimant;
  readonly others: Waiting;
}

export class Claims {
  /** Most keys have one claimant, who stands for itself. */
  readonly #claimants = new Map<FrontendKey, Claimant | Claimed>();

  ownerOf(key: FrontendKey): ServicePortId | undefined {
    const claimed = this.#claimants.get(key);
    return claimed && ownerOf(claimed).id;
  }

  /** How old who claims the key said that it is. */
  createdAtOf(key: FrontendKey, id: ServicePortId): number | undefined {
    const claimed = this.#claimants.get(key);
    if (!claimed) return undefined;
    const owner = ownerOf(claimed);
    if (owner.id === id) return owner.createdAt;
    return 'owner' in claimed ? claimed.others.get(id)?.createdAt : undefined;
  }

  /** Who claims the key and does not have it. */
  waitingFor(key: FrontendKey): readonly ServicePortId[] {
    const claimed = this.#claimants.get(key);
    return claimed && 'owner' in claimed ? claimed.others.ids() : [];
  }

  /** Returns whose share of frontends this changed, apart from the claimant's own. */
  claim(key: FrontendKey, claimant: Claimant): ServicePortId | undefined {
    const claimed = this.#claimants.get(key);
    const owner = claimed && ownerOf(claimed);
    if (!claimed || (owner?.id === claimant.id && !('owner' in claimed))) {
      this.#claimants.set(key, claimant);
      return undefined;
    }
    const shared: Claimed = 'owner' in claimed ? claimed : { owner: claimed, others: new Waiting() };
    this.#claimants.set(key, shared);
    const before = shared.owner;
    if (before.id !== claimant.id) {
      shared.others.remove(claimant.id);
      const isElder = bySeniority(claimant, before) < 0;
      shared.others.add(isElder ? before : claimant);
      if (isElder) shared.owner = claimant;
      return isElder ? before.id : undefined;
    }
    shared.owner = claimant;
    const eldest = shared.others.eldest();
    if (!eldest || bySeniority(claimant, eldest) < 0) return undefined;
    shared.others.remove(eldest.id); // an owner that is born again loses to who waited
    shared.others.add(claimant);
    shared.owner = eldest;
    return eldest.id;
  }

  /** Returns who owns the key now, if another service port waited for it. */
  release(key: FrontendKey, id: ServicePortId): ServicePortId | undefined {
    const claimed = this.#claimants.get(key);
    if (!claimed) return undefined;
    if (!('owner' in claimed)) {
      if (claimed.id === id) this.#claimants.delete(key);
      return undefined;
    }
    const { owner, others } = claimed;
    if (owner.id !== id) {
      others.remove(id);
      if (others.size === 0) this.#claimants.set(key, owner);
      return undefined;
    }
    const eldest = others.eldest();
    if (!eldest) {
      this.#claimants.delete(key);
      return undefined;
    }
    others.remove(eldest.id);
    claimed.owner = eldest;
    if (others.size === 0) this.#claimants.set(key, eldest);
    return eldest.id;
  }
}

function ownerOf(claimed: Claimant | Claimed): Claimant {
  return 'owner' in claimed ? claimed.owner : claimed;
}

function bySeniority(a: Claimant, b: Claimant): number {
  if (a.isClusterIP !== b.isClusterIP) return a.isClusterIP ? -1 : 1;
  const age = (a.createdAt ?? Number.POSITIVE_INFINITY) - (b.createdAt ?? Number.POSITIVE_INFINITY);
  if (age < 0 || age > 0) return age; // both unknown: Infinity - Infinity is NaN, so fall through
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
}

/** Finding one frontend among many: a Service may have thousands of addresses, and each of its flows asks for one. */
const FEW = 8;

type Index = ReadonlyMap<string, Frontend>;
const indexes = new WeakMap<readonly Frontend[], Index>();

export function frontendAt(
  { frontends }: Pick<ServicePortPlan, 'frontends'>,
  address: Ip | undefined,
  port: number,
): Frontend | undefined {
  if (frontends.length <= FEW)
    return frontends.find((other) => other.address === address && other.port === port);
  let index = indexes.get(frontends);
  if (!index) indexes.set(frontends, (index = indexOf(frontends)));
  return index.get(keyOf(address, port));
}

/** The first of several, like a search from the beginning. */
function indexOf(frontends: readonly Frontend[]): Index {
  const index = new Map<string, Frontend>();
  for (const frontend of frontends) {
    const key = keyOf(frontend.address, frontend.port);
    if (!index.has(key)) index.set(key, frontend);
  }
  return index;
}

function keyOf(address: Ip | undefined, port: number): string {
  return `${address ?? '*'} ${port}`;
}

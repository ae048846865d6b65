/** The kernel as the IPVS mode needs it: to read it, and to change many objects in one call. */
import type { Ip } from '../../../model/ip.ts';
import type { Destination, ServerKey, VirtualServer } from './compile.ts';
import type { SetEntry, SetType } from './sets.ts';

/** The dummy device that has every address of a service. */
export const DEVICE = 'kube-ipvs0';

export type ServerAttributes = Omit<VirtualServer, 'destinations' | 'rank' | 'dropEntry' | 'servicePort'>;

/** `was`: what there is now; the weight of an endpoint that is not there is `undefined`. */
export type IpvsEdit =
  | { readonly kind: 'createSet'; readonly set: string; readonly type: SetType; readonly capacity: number }
  | { readonly kind: 'destroySet'; readonly set: string }
  | { readonly kind: 'swapSets'; readonly set: string; readonly other: string }
  | { readonly kind: 'addEntry' | 'deleteEntry'; readonly set: string; readonly entry: SetEntry }
  | { readonly kind: 'newServer' | 'deleteServer'; readonly server: ServerAttributes }
  | { readonly kind: 'setServer'; readonly server: ServerAttributes; readonly was: ServerAttributes }
  | DestinationEdit
  | { readonly kind: 'makeDevice' | 'dropDevice' }
  | { readonly kind: 'bind' | 'unbind'; readonly ip: Ip };

/** Deleting one is a weight of 0, too. */
export interface DestinationEdit {
  readonly kind: 'newDestination' | 'setDestination' | 'deleteDestination';
  readonly server: ServerKey;
  readonly destination: Destination;
  readonly weight: number;
  readonly was: number | undefined;
}

export type EditOutcome =
  | { readonly state: 'done' | 'exists' | 'absent' }
  /** The kernel's word for it: `ENOENT`, `IPSET_ERR_HASH_FULL`. */
  | { readonly state: 'refused'; readonly name: string };

export interface KernelIpset {
  /** Also types that are not ours: another program's set of the same name. */
  readonly type: string;
  /** How many entries it can have; a set of ports has no limit. */
  readonly capacity: number;
  /** By `entryKey`. */
  readonly entries: ReadonlyMap<string, SetEntry>;
}

export type KernelDevice =
  | { readonly state: 'absent' }
  /** A link of that name that is no dummy: not ours to change. */
  | { readonly state: 'foreign'; readonly type: string }
  /** `broken`: the kernel has its addresses but no longer calls them this node's own. */
  | { readonly state: 'present'; readonly addresses: readonly Ip[]; readonly broken: boolean };

/** `packets`: that clients sent since it was made; unset where nothing counts. */
export interface KernelServer extends ServerAttributes {
  readonly packets?: number | undefined;
}

export interface KernelDestination extends Destination {
  readonly weight: number;
  readonly activeConnections: number;
  readonly inactiveConnections: number;
  /** Connections to it and packets of clients since it was made; unset where nothing counts. */
  readonly connections?: number | undefined;
  readonly packets?: number | undefined;
}

export function openConnections(states: readonly KernelDestination[]): number {
  return states.reduce((sum, each) => sum + each.activeConnections + each.inactiveConnections, 0);
}

/** Reads one family. */
export interface IpvsSource {
  /** `undefined`: there is none of that name. */
  readSet(name: string): Promise<KernelIpset | undefined>;
  readDevice(): Promise<KernelDevice>;
  /** Everybody's. */
  readServers(): Promise<readonly KernelServer[]>;
  /** The destinations of each server; one that is not there has none. */
  readDestinations(servers: readonly ServerKey[]): Promise<readonly (readonly KernelDestination[])[]>;
}

export interface IpvsClient extends IpvsSource {
  /** In order; one that is refused stops none of the others. */
  apply(edits: readonly IpvsEdit[]): Promise<readonly EditOutcome[]>;
}

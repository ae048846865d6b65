/** Names of the table's parts. */
import type { Protocol } from '../../../model/objects.ts';

/** A rebuild writes one while the other is in force. */
export const TABLE_NAMES = ['junction-a', 'junction-b'] as const;
/** The first one, for people. */
export const [TABLE] = TABLE_NAMES;
export const TABLE_COMMENT = 'Junction: services as data';
/** Behind ours, and not to be changed by others. */
export const BACKSTOP_TABLE = 'junction-backstop';
/** Every table that Junction may have written, `junction` by 0.2.0. */
export const OUR_TABLES: readonly string[] = [...TABLE_NAMES, 'junction', BACKSTOP_TABLE];

export function isOurTable(name: string): boolean {
  return OUR_TABLES.includes(name);
}

export const BACKSTOP_COMMENT = 'Junction: holds connections while its rules are gone';

/** More than this, nft refuses to read. */
const LONGEST_COMMENT = 128;

/** What an element says of whose it is. */
export function ownerComment(servicePort: string): string {
  return servicePort.replaceAll(/[^ !#-~]/g, '?').slice(0, LONGEST_COMMENT);
}

/** Pools of more endpoints than this are found by one more lookup, instead of one for each size. */
export const LARGEST_DIRECT_POOL = 16;

/** What is dialled: an address of a service, or a port of the node. */
export type Scope = 'address' | 'nodePort';
export const SCOPE_LIST: readonly Scope[] = ['address', 'nodePort'];
/** Who dials: anybody, or who is neither a pod nor this node. */
export type View = 'any' | 'outside';

function scopeNames(prefix: string) {
  return {
    restricted: `${prefix}restricted`,
    masqueradeAlways: `${prefix}masquerade-always`,
    masqueradeOthers: `${prefix}masquerade-others`,
    masqueradeNode: `${prefix}masquerade-node`,
    remembering: `${prefix}remembering`,
    refused: `${prefix}refused`,
    dropped: `${prefix}dropped`,
    droppedOutside: `${prefix}dropped-outside`,
  };
}

const PREFIX: Readonly<Record<Scope, string>> = { address: '', nodePort: 'ports-' };

export const SCOPES = {
  address: scopeNames(PREFIX.address),
  nodePort: scopeNames(PREFIX.nodePort),
} as const;

export const NFT_SETS = {
  serviceIPs: 'service-ips',
  clusterIPs: 'cluster-ips',
  nodePortIPs: 'node-port-ips',
  serviceCidrs: 'service-cidrs',
  allowed: 'allowed',
  hairpin: 'hairpin',
} as const;

export const NFT_CHAINS = {
  prerouting: 'prerouting',
  output: 'output',
  input: 'input',
  postrouting: 'postrouting',
  services: 'services',
  serviceAddresses: 'service-addresses',
  nodePorts: 'node-ports',
  unserved: 'unserved',
  remember: 'remember',
  remembered: 'remembered',
} as const;

/** `any-3`, `ports-outside-1`: the endpoints of all pools of that size. */
export function poolMap(scope: Scope, view: View, size: number): string {
  return `${PREFIX[scope]}${view}-${size}`;
}

/** The chain that tries each size in turn; also the beginning of the names of its maps. */
export function poolChain(scope: Scope, view: View): string {
  return `${PREFIX[scope]}${view}`;
}

/** Which frontends have a pool that is too large to be tried in turn. */
export function largeMap(scope: Scope, view: View): string {
  return `${PREFIX[scope]}${view}-large`;
}

export function largeChain(scope: Scope, view: View, size: number): string {
  return `${PREFIX[scope]}${view}-large-${size}`;
}

export function affinityMap(protocol: Protocol): string {
  return `affinity-${protocol.toLowerCase()}`;
}

/** The frontends with affinity; each leads to the chain of its time-out. */
export function stickyMap(protocol: Protocol): string {
  return `sticky-${protocol.toLowerCase()}`;
}

/** Adds affinity entries for so long. */
export function stickyChain(protocol: Protocol, seconds: number): string {
  return `${stickyMap(protocol)}-${seconds}`;
}

/** What was dialled and where that was sent, counted for frontends with affinity. */
export function connectionsSet(scope: Scope, protocol: Protocol): string {
  return `${PREFIX[scope]}connections-${protocol.toLowerCase()}`;
}

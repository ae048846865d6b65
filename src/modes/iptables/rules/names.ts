/** Names of chains: the fixed ones, and those made from a service port or an endpoint. */
import type { Protocol } from '../../../model/objects.ts';
import type { ServicePortPlan } from '../../../plan/types.ts';
import { sha256 } from './sha256.ts';

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
const HASH_LENGTH = 16;

/** The first 16 base32 characters of a SHA-256: 80 bits, which fit into a chain name with any prefix. */
export function hash16(text: string): string {
  const words = sha256(text);
  let hash = '';
  for (let bit = 0; bit < HASH_LENGTH * 5; bit += 5) {
    const word = (words[bit >> 5] ?? 0) >>> 0;
    const next = (words[(bit >> 5) + 1] ?? 0) >>> 0;
    const offset = bit & 31;
    const value = offset <= 27 ? word >>> (27 - offset) : (word << (offset - 27)) | (next >>> (59 - offset));
    hash += BASE32[value & 31];
  }
  return hash;
}

export const PREFIXES = {
  service: 'KUBE-SVC-',
  local: 'KUBE-SVL-',
  external: 'KUBE-EXT-',
  firewall: 'KUBE-FW-',
  endpoint: 'KUBE-SEP-',
  /** Layout `classic` only. */
  externalLocal: 'KUBE-XLB-',
} as const;

const SERVICE_CHAIN = new RegExp(`^(?:${Object.values(PREFIXES).join('|')})[A-Z2-7]{${HASH_LENGTH}}$`);

/** Whether a chain was made for a service or an endpoint: how a restarted process knows that it is ours. */
export function isServiceChain(chain: string): boolean {
  return SERVICE_CHAIN.test(chain);
}

export const CHAINS = {
  services: 'KUBE-SERVICES',
  externalServices: 'KUBE-EXTERNAL-SERVICES',
  nodePorts: 'KUBE-NODEPORTS',
  postrouting: 'KUBE-POSTROUTING',
  markMasquerade: 'KUBE-MARK-MASQ',
  forward: 'KUBE-FORWARD',
  proxyFirewall: 'KUBE-PROXY-FIREWALL',
  /** Shared with kubelet, which has the same rule in it. */
  firewall: 'KUBE-FIREWALL',
  canary: 'KUBE-PROXY-CANARY',
  /** Layout `classic` only. */
  markDrop: 'KUBE-MARK-DROP',
} as const;

/** Of the IPVS mode, beside the names that it shares with the others. */
export const IPVS_CHAINS = {
  nodePort: 'KUBE-NODE-PORT',
  loadBalancer: 'KUBE-LOAD-BALANCER',
  sourceRanges: 'KUBE-SOURCE-RANGES-FIREWALL',
  ipvsFilter: 'KUBE-IPVS-FILTER',
  ipvsOutFilter: 'KUBE-IPVS-OUT-FILTER',
} as const;

export type ServiceHash = string & { readonly __serviceHash?: true };

export function serviceHash(port: Pick<ServicePortPlan, 'name' | 'protocol'>): ServiceHash {
  return hash16(port.name + ruleProtocol(port.protocol));
}

/** What was asked for last. A change compiles a service port as it was and as it is, so most names are asked for twice. */
const endpointChains = new Map<string, string>();
const MOST_KEPT = 20_000;

export function endpointChain(port: Pick<ServicePortPlan, 'name' | 'protocol'>, endpointKey: string): string {
  const text = port.name + ruleProtocol(port.protocol) + endpointKey;
  const known = endpointChains.get(text);
  if (known !== undefined) return known;
  const name = PREFIXES.endpoint + hash16(text);
  if (endpointChains.size >= MOST_KEPT) endpointChains.clear();
  endpointChains.set(text, name);
  return name;
}

const RULE_PROTOCOLS = { TCP: 'tcp', UDP: 'udp', SCTP: 'sctp' } as const;

export function ruleProtocol(protocol: Protocol): 'tcp' | 'udp' | 'sctp' {
  return RULE_PROTOCOLS[protocol];
}

export const NFACCT = {
  invalidDropped: 'ct_state_invalid_dropped_pkts',
  localhostNodePorts: 'localhost_nps_accepted_pkts',
} as const;

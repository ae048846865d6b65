/** Names of chains: the fixed ones, and those made from a service port or an endpoint. */
import { hash as sha256 } from 'node:crypto';
import type { Protocol } from '../../../model/objects.ts';
import type { ServicePortPlan } from '../../../plan/types.ts';

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
const HASH_LENGTH = 16;

/** The first 16 base32 characters of a SHA-256: 80 bits, which fit into a chain name with any prefix. */
export function hash16(text: string): string {
  const digest = sha256('sha256', text, 'buffer');
  let name = '';
  for (let at = 0; at < (HASH_LENGTH * 5) / 8; at += 5) {
    // Two numbers of 20 bits: five bytes are eight characters.
    const [head, tail] = [digest.readUIntBE(at, 3) >>> 4, digest.readUIntBE(at + 2, 3) & 0xfffff];
    for (const bits of [head, tail])
      for (let shift = 15; shift >= 0; shift -= 5) name += BASE32[(bits >>> shift) & 31];
  }
  return name;
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

/** A chain that is written, and deleted, to find out whether the kernel takes its rules. */
export const TRIAL_CHAIN = 'KUBE-JUNCTION-TRIAL';

/** The chains of each table, without their rules. */
export type ChainNames = ReadonlyMap<string, ReadonlySet<string>>;

/** kubelet has chains and rules of the same names and words; where it runs they may be its own. */
export function isKubeletHere(names: ChainNames): boolean {
  return [...names.values()].some((chains) => chains.has('KUBE-KUBELET-CANARY'));
}

/** An iptables mode was here, ours or kube-proxy's. */
export function hasServiceChains(names: ChainNames): boolean {
  for (const chain of names.get('nat') ?? []) if (isServiceChain(chain)) return true;
  return false;
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

export function serviceHash(port: Pick<ServicePortPlan, 'name' | 'protocol'>): string {
  return hash16(port.name + ruleProtocol(port.protocol));
}

export function endpointChain(port: Pick<ServicePortPlan, 'name' | 'protocol'>, endpointKey: string): string {
  return PREFIXES.endpoint + hash16(port.name + ruleProtocol(port.protocol) + endpointKey);
}

const RULE_PROTOCOLS = { TCP: 'tcp', UDP: 'udp', SCTP: 'sctp' } as const;

export function ruleProtocol(protocol: Protocol): 'tcp' | 'udp' | 'sctp' {
  return RULE_PROTOCOLS[protocol];
}

/** Comments of our rules in KUBE-FIREWALL. */
export const FIREWALL_COMMENTS: readonly string[] = [
  'block incoming localnet connections',
  'kubernetes firewall for dropping marked packets',
];

export const NFACCT = {
  invalidDropped: 'ct_state_invalid_dropped_pkts',
  localhostNodePorts: 'localhost_nps_accepted_pkts',
} as const;

/** Names of chains: the fixed ones, and those made from a service port or an endpoint. */
import type { Protocol } from '../../../model/objects.ts';
import type { ServicePortPlan } from '../../../plan/types.ts';

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

/**
 * An empty chain: the mark of a record of what was written, by the record's own letters. Named like the chain of a
 * service, so that kube-proxy and every older version delete it as stale when they write without the record.
 */
const RECORD_CHAIN_PREFIX = `${PREFIXES.service}JUNCTION`;
const RECORD_CHAIN = new RegExp(`^${RECORD_CHAIN_PREFIX}[A-Z2-7]{8}$`);

export function recordChain(mark: string): string {
  return `${RECORD_CHAIN_PREFIX}${mark}`;
}

export function isRecordChain(chain: string): boolean {
  return RECORD_CHAIN.test(chain);
}

/** Chains that a trial at a start writes, and deletes: one by iptables-restore, one by netlink. */
export const TRIAL_CHAIN = 'KUBE-JUNCTION-TRIAL';
export const SENT_TRIAL_CHAIN = `${TRIAL_CHAIN}-NL`;

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

export const NFACCT = {
  invalidDropped: 'ct_state_invalid_dropped_pkts',
  localhostNodePorts: 'localhost_nps_accepted_pkts',
} as const;

/**
 * SHA-256 (FIPS 180-4) of short texts, for chain names.
 *
 * A cold start of 10,000 services hashes 40,000 texts. The usual library for code without `node:crypto` took 65 ms for
 * that, 137 ms before it was compiled; this takes 18 and 28, because it reuses its buffers (measured on Node 20).
 */
const BLOCK = 64;
const PRIMES = firstPrimes(64);
const ROUND_CONSTANTS = Int32Array.from(PRIMES, (prime) => fraction(Math.cbrt(prime)));
const INITIAL = Int32Array.from(PRIMES.slice(0, 8), (prime) => fraction(Math.sqrt(prime)));

const encoder = new TextEncoder();
const schedule = new Int32Array(64);
const hash = new Int32Array(8);
let buffer = new Uint8Array(4 * BLOCK);
let view = new DataView(buffer.buffer);

/** The eight words of the digest. Valid until the next call. */
export function sha256(text: string): Int32Array {
  const end = fill(text);
  hash.set(INITIAL);
  for (let start = 0; start < end; start += BLOCK) compress(start);
  return hash;
}

/** Puts the padded text into the buffer; returns how long it is. */
function fill(text: string): number {
  if (text.length * 3 + BLOCK * 2 > buffer.length) {
    buffer = new Uint8Array(text.length * 3 + BLOCK * 2);
    view = new DataView(buffer.buffer);
  }
  const length = writeAscii(text) ?? encoder.encodeInto(text, buffer).written;
  const end = (Math.floor((length + 8) / BLOCK) + 1) * BLOCK;
  buffer.fill(0, length, end);
  buffer[length] = 0x80;
  view.setUint32(end - 4, length * 8);
  return end;
}

/** Names and addresses are ASCII, and copying that by hand is quicker; `undefined`: it is not ASCII. */
function writeAscii(text: string): number | undefined {
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code > 127) return undefined;
    buffer[index] = code;
  }
  return text.length;
}

function compress(start: number): void {
  expandSchedule(start);
  let a = word(0);
  let b = word(1);
  let c = word(2);
  let d = word(3);
  let e = word(4);
  let f = word(5);
  let g = word(6);
  let h = word(7);
  for (let round = 0; round < 64; round++) {
    const s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
    const choice = (e & f) ^ (~e & g);
    const first = (h + s1 + choice + (ROUND_CONSTANTS[round] ?? 0) + (schedule[round] ?? 0)) | 0;
    const s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
    const majority = (a & b) ^ (a & c) ^ (b & c);
    h = g;
    g = f;
    f = e;
    e = (d + first) | 0;
    d = c;
    c = b;
    b = a;
    a = (first + s0 + majority) | 0;
  }
  hash[0] = word(0) + a;
  hash[1] = word(1) + b;
  hash[2] = word(2) + c;
  hash[3] = word(3) + d;
  hash[4] = word(4) + e;
  hash[5] = word(5) + f;
  hash[6] = word(6) + g;
  hash[7] = word(7) + h;
}

function word(index: number): number {
  return hash[index] ?? 0;
}

function expandSchedule(start: number): void {
  for (let index = 0; index < 16; index++) schedule[index] = view.getInt32(start + index * 4);
  for (let index = 16; index < 64; index++) {
    const near = schedule[index - 2] ?? 0;
    const far = schedule[index - 15] ?? 0;
    const s0 = rotate(far, 7) ^ rotate(far, 18) ^ (far >>> 3);
    const s1 = rotate(near, 17) ^ rotate(near, 19) ^ (near >>> 10);
    schedule[index] = (schedule[index - 16] ?? 0) + s0 + (schedule[index - 7] ?? 0) + s1;
  }
}

function rotate(value: number, by: number): number {
  return (value >>> by) | (value << (32 - by));
}

function fraction(value: number): number {
  return ((value - Math.floor(value)) * 2 ** 32) | 0;
}

function firstPrimes(count: number): readonly number[] {
  const primes: number[] = [];
  for (let candidate = 2; primes.length < count; candidate++) {
    if (primes.every((prime) => candidate % prime !== 0)) primes.push(candidate);
  }
  return primes;
}

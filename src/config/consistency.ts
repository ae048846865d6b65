/** Settings that are valid, and do not fit this node or each other. */
import {
  type Cidr,
  cidrContains,
  type Family,
  familyOf,
  LOOPBACK,
  parseCidr,
  parseIp,
  prefixOf,
} from '../model/ip.ts';
import type { EffectiveConfig } from './effective.ts';
import { splitAddress } from './goFormats.ts';

export interface NodeFacts {
  readonly primaryFamily: Family;
  /** Both families are served. */
  readonly dualStack: boolean;
  readonly podCIDRs: readonly string[];
}

interface Inconsistency {
  readonly message: string;
  readonly fatal: boolean;
}

/** To be logged as `Kube-proxy configuration may be incomplete or incorrect`; the fatal ones end the process. */
export function consistencyWarnings(config: EffectiveConfig, facts: NodeFacts): readonly Inconsistency[] {
  const message = nodePortWarning(config, facts);
  return [...(message === undefined ? [] : [{ message, fatal: false }]), ...familyWarnings(config, facts)];
}

/** Ranges of node ports that the nftables mode serves but for the node's loopback addresses, which it cannot. */
export function localhostRanges({ mode, nodePortAddresses }: EffectiveConfig): readonly Cidr[] {
  if (mode !== 'nftables') return [];
  const ranges = cidrsOf(nodePortAddresses ?? []);
  const isEverywhere = (family: Family): boolean =>
    ranges.some((cidr) => familyOf(cidr) === family && prefixOf(cidr) === 0);
  return ranges.filter((cidr) => includesLocalhost(cidr) && !isEverywhere(familyOf(cidr)));
}

function includesLocalhost(cidr: Cidr): boolean {
  return cidr.startsWith('127.') || Object.values(LOOPBACK).some((ip) => cidrContains(cidr, ip));
}

function nodePortWarning(config: EffectiveConfig, facts: NodeFacts): string | undefined {
  const { primaryFamily: primary } = facts;
  const other: Family = primary === 'IPv4' ? 'IPv6' : 'IPv4';
  const list = config.nodePortAddresses ?? [];
  if (list.includes('primary')) return undefined;
  const ranges = cidrsOf(list);
  const ofPrimary = ranges.filter((cidr) => familyOf(cidr) === primary).length;
  const consequence = (family: Family): string =>
    `NodePort connections will be accepted on all local ${family} IPs`;
  if (ranges.length === 0)
    return 'nodePortAddresses is unset; NodePort connections will be accepted on all local IPs. Consider using `--nodeport-addresses primary`';
  if (ofPrimary === ranges.length && isAnyDualStack(config, facts, ranges))
    return `cluster appears to be dual-stack but nodePortAddresses contains only ${primary} addresses; ${consequence(other)}`;
  return ofPrimary === 0
    ? `cluster appears to be ${primary}-primary but nodePortAddresses contains only ${other} addresses; ${consequence(primary)}`
    : undefined;
}

function isAnyDualStack(config: EffectiveConfig, facts: NodeFacts, ranges: readonly Cidr[]): boolean {
  const lists = [config.clusterCIDRs, ranges, config.ipvs.excludeCIDRs ?? [], facts.podCIDRs];
  return lists.some((list) => new Set(cidrsOf(list).map(familyOf)).size === 2);
}

function* familyWarnings(config: EffectiveConfig, facts: NodeFacts): Iterable<Inconsistency> {
  const { primaryFamily, dualStack, podCIDRs } = facts;
  const wrong: Family = primaryFamily === 'IPv4' ? 'IPv6' : 'IPv4';
  const cluster = `cluster is ${primaryFamily}-${dualStack ? 'primary' : 'only'} but`;
  const checkList = function* (
    name: string,
    list: readonly string[],
    fatal = false,
  ): Iterable<Inconsistency> {
    if (isAllOf(list, wrong)) yield { message: `${cluster} ${name} contains only ${wrong} addresses`, fatal };
  };
  const checkAddress = function* (name: string, address: string): Iterable<Inconsistency> {
    const ip = parseIp(address);
    if (ip !== undefined && familyOf(ip) === wrong && ip !== '::' && ip !== '0.0.0.0')
      yield { message: `${cluster} ${name} is ${wrong}`, fatal: false };
  };
  yield* checkList(
    'clusterCIDRs',
    config.clusterCIDRs,
    config.detectLocalMode === 'ClusterCIDR' && !dualStack,
  );
  yield* checkList('node.spec.podCIDRs', podCIDRs, config.detectLocalMode === 'NodeCIDR');
  yield* checkAddress('winkernel.sourceVip', config.winkernel.sourceVip);
  if (dualStack) return;
  yield* checkList('ipvs.excludeCIDRs', config.ipvs.excludeCIDRs ?? []);
  yield* checkAddress('healthzBindAddress', hostOf(config.healthzBindAddress));
  yield* checkAddress('metricsBindAddress', hostOf(config.metricsBindAddress));
}

function isAllOf(list: readonly string[], family: Family): boolean {
  return list.length > 0 && list.every((text) => cidrsOf([text]).some((cidr) => familyOf(cidr) === family));
}

function cidrsOf(list: readonly string[]): readonly Cidr[] {
  return list.flatMap((text) => parseCidr(text) ?? []);
}

function hostOf(address: string): string {
  const parts = splitAddress(address);
  return 'fault' in parts ? '' : parts.host;
}

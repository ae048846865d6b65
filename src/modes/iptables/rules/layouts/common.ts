/** What both layouts write alike. */
import type { PoolName, Routes, ServicePortPlan } from '../../../../plan/types.ts';
import { accept, comment, destinationPort, jump, podMatch, protocol, rule, state } from '../build.ts';
import type { CompileOptions, JumpRule, OwnChain, SharedRule } from '../fragment.ts';
import { CHAINS, PREFIXES } from '../names.ts';
import type { Match, Rule, Table } from '../rule.ts';

export const isNew = state('NEW');
const PORTALS = 'kubernetes service portals';
const VISIBLE = 'kubernetes externally-visible service portals';

export function jumpTo(table: Table, from: string, chain: string, ...matches: Match[]): JumpRule {
  return { table, from, rule: rule(matches, jump(chain)) };
}

/** From a filter chain to the refusals of cluster IPs. */
export function toServices(from: string): JumpRule {
  return jumpTo('filter', from, CHAINS.services, isNew, comment(PORTALS));
}

/** From a filter chain to the refusals of everything that is visible outside. */
export function toExternalServices(from: string): JumpRule {
  return jumpTo('filter', from, CHAINS.externalServices, isNew, comment(VISIBLE));
}

export const forwardJump = jumpTo(
  'filter',
  'FORWARD',
  CHAINS.forward,
  comment('kubernetes forwarding rules'),
);

export const natJumps: readonly JumpRule[] = [
  jumpTo('nat', 'OUTPUT', CHAINS.services, comment(PORTALS)),
  jumpTo('nat', 'PREROUTING', CHAINS.services, comment(PORTALS)),
  jumpTo('nat', 'POSTROUTING', CHAINS.postrouting, comment('kubernetes postrouting rules')),
];

export function ownChain(table: Table, name: string, rules: readonly Rule[]): OwnChain {
  return { table, name, rules };
}

export function shared(table: Table, chain: string, sharedRule: Rule): SharedRule {
  return { table, chain, rule: sharedRule };
}

/** Lets the load balancer's health checks in, whatever else the firewall does. */
export function healthCheckRules(port: ServicePortPlan, chain: string): readonly SharedRule[] {
  if (port.healthCheckNodePort === 0) return [];
  const matches = [
    comment(`${port.name} health check node port`),
    protocol('TCP'),
    destinationPort(port.healthCheckNodePort),
  ];
  return [shared('filter', chain, rule(matches, accept))];
}

/** Which sources of a frontend are masqueraded: matches for them, or nothing where none is. */
export function masqueradedSources(
  { pod, outside }: Routes,
  options: CompileOptions,
): readonly Match[] | undefined {
  if (outside.verdict !== 'forward' || !outside.masquerade) return undefined;
  if (pod.verdict === 'forward' && pod.masquerade) return [];
  const others = podMatch(options.view.localDetector, 'others');
  return others ? [others] : [];
}

export function poolPrefix(pool: PoolName): string {
  return pool === 'cluster' ? PREFIXES.service : PREFIXES.local;
}

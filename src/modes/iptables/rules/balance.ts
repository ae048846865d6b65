/** Choosing one endpoint of a pool, and sending the packet there. */
import type { Endpoint } from '../../../model/endpoint.ts';
import type { Pool, ServicePortPlan } from '../../../plan/types.ts';
import { comment, jump, protocol, rule, source, toMasquerade } from './build.ts';
import type { OwnChain } from './fragment.ts';
import { endpointChain } from './names.ts';
import type { Match, Rule } from './rule.ts';

export interface BalanceStyle {
  /** Digits behind the decimal point of a probability. */
  readonly decimals: number;
  affinityComment(endpoint: Endpoint): readonly Match[];
  choiceComment(endpoint: Endpoint, index: number): readonly Match[];
}

/** Chain names by endpoint key: hashing is the costly part of compiling, so each is made once. */
export type EndpointChains = ReadonlyMap<string, string>;

export function endpointChainNames(port: ServicePortPlan): EndpointChains {
  const names = new Map<string, string>();
  for (const pool of [port.pools.cluster, port.pools.local]) {
    for (const { key } of pool ?? []) if (!names.has(key)) names.set(key, endpointChain(port, key));
  }
  return names;
}

/** First back to the endpoint that the client had, then a fair draw. */
export function balancingRules(
  port: ServicePortPlan,
  pool: Pool,
  names: EndpointChains,
  style: BalanceStyle,
): readonly Rule[] {
  const chains = pool.map(({ key }) => names.get(key) ?? '');
  const rules: Rule[] = [];
  const seconds = port.affinitySeconds;
  if (seconds !== undefined) {
    for (const [index, endpoint] of pool.entries()) {
      const name = chains[index] ?? '';
      const remembered: Match = { kind: 'recentCheck', name, seconds, reap: true };
      rules.push(rule([...style.affinityComment(endpoint), remembered], jump(name)));
    }
  }
  for (const [index, endpoint] of pool.entries()) {
    const text = style.choiceComment(endpoint, index);
    const remaining = pool.length - index;
    const matches: readonly Match[] =
      remaining === 1
        ? text
        : [...text, { kind: 'statistic', probability: probability(remaining, style.decimals) }];
    rules.push(rule(matches, jump(chains[index] ?? '')));
  }
  return rules;
}

const TEN_DECIMALS = Array.from({ length: 64 }, (_, n) => printProbability(n, 10));

/** `1/n` in decimals. Exact ties go to the even digit, as kube-proxy's runtime rounds them; `toFixed` rounds them up. */
export function probability(n: number, decimals: number): string {
  return (decimals === 10 ? TEN_DECIMALS[n] : undefined) ?? printProbability(n, decimals);
}

function printProbability(n: number, decimals: number): string {
  const scaled = 10 ** decimals;
  const quotient = Math.floor(scaled / n);
  const rest = scaled - quotient * n;
  const roundUp = rest * 2 > n || (rest * 2 === n && quotient % 2 === 1);
  const digits = String(roundUp ? quotient + 1 : quotient).padStart(decimals + 1, '0');
  return `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`;
}

/** One chain per endpoint that some pool has. */
export function endpointChains(
  port: ServicePortPlan,
  names: EndpointChains,
  comments: boolean,
): readonly OwnChain[] {
  const { cluster = [], local = [] } = port.pools;
  const inCluster = new Set(cluster.map((endpoint) => endpoint.key));
  const localOnly = local.filter((endpoint) => !inCluster.has(endpoint.key));
  const text: readonly Match[] = comments ? [comment(port.name)] : [];
  return [...cluster, ...localOnly].map((endpoint) => {
    const name = names.get(endpoint.key) ?? '';
    const remember: readonly Match[] =
      port.affinitySeconds === undefined ? [] : [{ kind: 'recentSet', name }];
    return {
      table: 'nat',
      name,
      rules: [
        rule([...text, source(endpoint.ip)], toMasquerade),
        rule([...text, ...remember, protocol(port.protocol)], { kind: 'dnat', to: endpoint.key }),
      ],
    };
  });
}

/** What the layouts share: constructors of matches and targets, base-chain jumps, choosing one endpoint of a pool. */
import type {
  AllowedSources,
  Frontend,
  LocalTrafficDetector,
  Pool,
  PoolName,
  Routes,
  ServicePortPlan,
} from '../../../../plan/types.ts';
import type { CompileOptions, OwnChain, SharedRule } from '../fragment.ts';
import { CHAINS, endpointChain, PREFIXES, ruleProtocol, serviceHash } from '../names.ts';
import type { ConntrackState, Match, Rule, Table, Target } from '../rule.ts';
import { type Cidr, type Ip, LOOPBACK_RANGE } from '../../../../model/ip.ts';
import type { Protocol } from '../../../../model/objects.ts';
import type { Endpoint } from '../../../../model/endpointTracker.ts';

export function rule(matches: readonly Match[], to?: Target): Rule {
  return { matches, target: to };
}

/** `-m …`, `-s`, `-d`, `-p`. */
export const match = {
  comment: (text: string): Match => ({ kind: 'comment', text }),
  protocol: (name: Protocol): Match => ({ kind: 'protocol', protocol: ruleProtocol(name) }),
  source: (cidr: Cidr | Ip, not = false): Match => ({ kind: 'source', cidr, not }),
  destination: (cidr: Cidr | Ip, not = false): Match => ({ kind: 'destination', cidr, not }),
  destinationPort: (port: number): Match => ({ kind: 'destinationPort', port }),
  state: (...states: ConntrackState[]): Match => ({ kind: 'conntrackState', states, not: false }),
  notState: (...states: ConntrackState[]): Match => ({ kind: 'conntrackState', states, not: true }),
  marked: (mark: number): Match => ({ kind: 'mark', value: mark, mask: mark, not: false }),
  notMarked: (mark: number): Match => ({ kind: 'mark', value: mark, mask: mark, not: true }),
  fromLocal: { kind: 'addressType', side: 'src', type: 'LOCAL', not: false },
  notFromLocal: { kind: 'addressType', side: 'src', type: 'LOCAL', not: true },
  toLocal: { kind: 'addressType', side: 'dst', type: 'LOCAL', not: false },
  isNew: { kind: 'conntrackState', states: ['NEW'], not: false },
} as const satisfies Readonly<Record<string, Match | ((...args: never[]) => Match)>>;

/** `-j …` */
export const target = {
  accept: { kind: 'accept' },
  drop: { kind: 'drop' },
  reject: { kind: 'reject' },
  return: { kind: 'return' },
  jump: (chain: string): Target => ({ kind: 'jump', chain }),
  masquerade: { kind: 'jump', chain: CHAINS.markMasquerade },
} as const satisfies Readonly<Record<string, Target | ((chain: string) => Target)>>;

/** How a rule names what clients dial: `-m comment --comment … -m tcp -p tcp -d ADDRESS --dport PORT`. */
export function dialled(
  { name, protocol }: ServicePortPlan,
  { address, port }: Frontend,
  what: string,
): readonly Match[] {
  const [text, to, toPort] = [
    match.comment(`${name} ${what}`),
    match.protocol(protocol),
    match.destinationPort(port),
  ];
  return address === undefined
    ? [text, match.toLocal, to, toPort]
    : [text, to, match.destination(address), toPort];
}

/** Matches packets from the pod network, or from outside it; `undefined` where that cannot be detected. */
export function podMatch(detector: LocalTrafficDetector, which: 'pods' | 'others'): Match | undefined {
  const not = which === 'others';
  switch (detector.kind) {
    case 'none':
      return undefined;
    case 'cidr':
      return { kind: 'source', cidr: detector.cidr, not };
    case 'interface':
      return { kind: 'inInterface', name: detector.name, not };
    case 'interfacePrefix':
      return { kind: 'inInterface', name: `${detector.prefix}+`, not };
  }
}

const PORTALS = 'kubernetes service portals';
const VISIBLE = 'kubernetes externally-visible service portals';

export function shared(table: Table, chain: string, sharedRule: Rule): SharedRule {
  return { table, chain, rule: sharedRule };
}

export function jumpTo(table: Table, from: string, chain: string, ...matches: Match[]): SharedRule {
  return shared(table, from, rule(matches, target.jump(chain)));
}

/** From a filter chain to the refusals of cluster IPs. */
export function toServices(from: string): SharedRule {
  return jumpTo('filter', from, CHAINS.services, match.isNew, match.comment(PORTALS));
}

/** From a filter chain to the refusals of everything that is visible outside. */
export function toExternalServices(from: string): SharedRule {
  return jumpTo('filter', from, CHAINS.externalServices, match.isNew, match.comment(VISIBLE));
}

const FORWARDING = match.comment('kubernetes forwarding rules');
export const forwardJump = jumpTo('filter', 'FORWARD', CHAINS.forward, FORWARDING);

export const natJumps: readonly SharedRule[] = [
  jumpTo('nat', 'OUTPUT', CHAINS.services, match.comment(PORTALS)),
  jumpTo('nat', 'PREROUTING', CHAINS.services, match.comment(PORTALS)),
  jumpTo('nat', 'POSTROUTING', CHAINS.postrouting, match.comment('kubernetes postrouting rules')),
];

export function ownChain(table: Table, name: string, rules: readonly Rule[]): OwnChain {
  return { table, name, rules };
}

/** Refuses what is dialled, in filter. */
export function refuse(port: ServicePortPlan, frontend: Frontend, why: string, to: Target): SharedRule {
  const chain = frontend.kind === 'clusterIP' ? CHAINS.services : CHAINS.externalServices;
  return shared('filter', chain, rule(dialled(port, frontend, why), to));
}

/** Lets the load balancer's health checks in, whatever else the firewall does. */
export function healthCheckRules(port: ServicePortPlan, chain: string): readonly SharedRule[] {
  if (port.healthCheckNodePort === 0) return [];
  const matches = [
    match.comment(`${port.name} health check node port`),
    match.protocol('TCP'),
    match.destinationPort(port.healthCheckNodePort),
  ];
  return [shared('filter', chain, rule(matches, target.accept))];
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

/** Accepts what the service rules have marked, whatever the firewall's policy. */
export function acceptMarked(mark: number): Rule {
  return rule([FORWARDING, match.marked(mark)], target.accept);
}

export const acceptEstablished = rule(
  [match.comment('kubernetes forwarding conntrack rule'), match.state('RELATED', 'ESTABLISHED')],
  target.accept,
);

/** Clears the mark, so that a packet that passes again inside a tunnel is not masqueraded twice. */
export function masqueradeMarked({ masqueradeMark: mark, randomFully }: CompileOptions): readonly Rule[] {
  return [
    rule([match.notMarked(mark)], target.return),
    rule([], { kind: 'mark', operation: 'xor', value: mark }),
    rule([match.comment('kubernetes service traffic requiring SNAT')], { kind: 'masquerade', randomFully }),
  ];
}

export function markMasquerade(mark: number, operation: 'or' | 'set' = 'or'): OwnChain {
  return ownChain('nat', CHAINS.markMasquerade, [rule([], { kind: 'mark', operation, value: mark })]);
}

/** One rule for each source that may come. */
export function allowRules({ ranges, hosts }: AllowedSources, label: Match, target: Target): readonly Rule[] {
  return [...ranges, ...hosts].map((from) => rule([label, match.source(from)], target));
}

export function poolPrefix(pool: PoolName): string {
  return pool === 'cluster' ? PREFIXES.service : PREFIXES.local;
}

const NODE_PORT_TAIL = 'kubernetes service nodeports; NOTE: this must be the last rule in this chain';

/** The way from KUBE-SERVICES to the node ports: the last rule, or rules, of that chain. */
export function nodePortTail({ nodePortIps, view, family }: CompileOptions): readonly SharedRule[] {
  const text = match.comment(NODE_PORT_TAIL);
  const tail = (...matches: readonly Match[]): SharedRule =>
    shared('nat', CHAINS.services, rule([text, ...matches], target.jump(CHAINS.nodePorts)));
  if (nodePortIps !== 'all') return nodePortIps.map((ip) => tail(match.destination(ip)));
  if (view.nodePorts.loopback) return [tail(match.toLocal)];
  return [tail(match.toLocal, match.destination(LOOPBACK_RANGE[family], true))];
}

/** route_localnet=1 would let neighbours reach what listens on 127.0.0.1 (CVE-2020-8558). */
export function martianRule(): SharedRule {
  const matches = [
    match.comment('block incoming localnet connections'),
    match.destination(LOOPBACK_RANGE.IPv4),
    match.source(LOOPBACK_RANGE.IPv4, true),
    match.notState('RELATED', 'ESTABLISHED', 'DNAT'),
  ];
  return shared('filter', CHAINS.firewall, rule(matches, target.drop));
}

export interface BalanceStyle {
  /** Digits behind the decimal point of a probability. */
  readonly decimals: number;
  affinityComment(endpoint: Endpoint): readonly Match[];
  choiceComment(endpoint: Endpoint, index: number): readonly Match[];
}

/** Chain names by endpoint key: hashing is the costly part of compiling, so each is made once. */
type EndpointChains = ReadonlyMap<string, string>;

/**
 * Of the service port that was compiled last: a change compiles it as it was and as it is, so most names are asked for twice.
 * Those of more service ports would live long, and be thrown away unused when all of them are compiled.
 */
let last: { readonly name: string; readonly protocol: Protocol; readonly names: EndpointChains } | undefined;

export function endpointChainNames(port: ServicePortPlan): EndpointChains {
  const { name, protocol } = port;
  const known = last?.name === name && last.protocol === protocol ? last.names : undefined;
  const names = new Map<string, string>();
  for (const pool of [port.pools.cluster, port.pools.local]) {
    for (const { key } of pool ?? [])
      if (!names.has(key)) names.set(key, known?.get(key) ?? endpointChain(port, key));
  }
  last = { name, protocol, names };
  return names;
}

/** A service port that is compiled. */
export interface Compiled {
  readonly port: ServicePortPlan;
  readonly options: CompileOptions;
  /** In the names of its chains. */
  readonly hash: string;
  readonly names: EndpointChains;
}

export function compiled(port: ServicePortPlan, options: CompileOptions): Compiled {
  return { port, options, hash: serviceHash(port), names: endpointChainNames(port) };
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
      const lookup: Match = { kind: 'recentCheck', name, seconds, reap: true };
      rules.push(rule([...style.affinityComment(endpoint), lookup], target.jump(name)));
    }
  }
  for (const [index, endpoint] of pool.entries()) {
    const text = style.choiceComment(endpoint, index);
    const remaining = pool.length - index;
    const draw: Match = { kind: 'statistic', probability: probability(remaining, style.decimals) };
    rules.push(rule(remaining === 1 ? text : [...text, draw], target.jump(chains[index] ?? '')));
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
export function endpointChains({ port, names, options }: Compiled): readonly OwnChain[] {
  const { cluster = [], local = [] } = port.pools;
  const inCluster = new Set(cluster.map((endpoint) => endpoint.key));
  const localOnly = local.filter((endpoint) => !inCluster.has(endpoint.key));
  const text = options.endpointComments ? [match.comment(port.name)] : [];
  return [...cluster, ...localOnly].map((endpoint) => {
    const name = names.get(endpoint.key) ?? '';
    const learn: readonly Match[] = port.affinitySeconds === undefined ? [] : [{ kind: 'recentSet', name }];
    return ownChain('nat', name, [
      rule([...text, match.source(endpoint.ip)], target.masquerade),
      rule([...text, ...learn, match.protocol(port.protocol)], { kind: 'dnat', to: endpoint.key }),
    ]);
  });
}

/**
 * The chains that kube-proxy wrote from 1.5 to 1.23, for people and tools that know them: KUBE-XLB- for local
 * traffic, a firewall chain in nat for every load balancer, packets to drop marked in nat and dropped in filter.
 *
 * The meaning is the plan's, so a few rules are here that old releases lacked; `docs/iptables.md` lists them.
 */
import type { Frontend, ServicePortPlan } from '../../../../plan/types.ts';
import {
  accept,
  acceptEstablished,
  acceptMarked,
  allowRules,
  type BalanceStyle,
  balancingRules,
  comment,
  destination,
  destinationPort,
  dialled,
  drop,
  endpointChainNames,
  endpointChains,
  type EndpointChains,
  forwardJump,
  fromLocal,
  healthCheckRules,
  jump,
  jumpTo,
  loopbackRange,
  marked,
  markMasquerade,
  martianRule,
  masqueradedSources,
  natJumps,
  nodePortTail,
  notFromLocal,
  ownChain,
  podMatch,
  poolPrefix,
  protocol,
  reject,
  rule,
  shared,
  source,
  state,
  toExternalServices,
  toLocal,
  toMasquerade,
  toServices,
} from './common.ts';
import {
  type BaseFragment,
  type ChainRef,
  type CompileOptions,
  type Fragment,
  type JumpRule,
  type Layout,
  type OwnChain,
  type SharedRule,
} from '../fragment.ts';
import { CHAINS, PREFIXES, type ServiceHash, serviceHash } from '../names.ts';
import type { Match, Rule } from '../rule.ts';

const notFromBridge: Match = { kind: 'physdevIsIn', not: true };

const JUMPS: readonly JumpRule[] = [
  ...['INPUT', 'FORWARD', 'OUTPUT'].map(toExternalServices),
  ...['FORWARD', 'OUTPUT'].map(toServices),
  ...natJumps,
  forwardJump,
  // Ends up before KUBE-FORWARD, which would accept a packet that carries both marks.
  ...['INPUT', 'OUTPUT', 'FORWARD'].map((from) => jumpTo('filter', from, CHAINS.firewall)),
];

const SHARED: readonly ChainRef[] = [
  { table: 'filter', chain: CHAINS.services },
  { table: 'filter', chain: CHAINS.externalServices },
  { table: 'nat', chain: CHAINS.services },
  { table: 'nat', chain: CHAINS.nodePorts },
];

export const classicLayout: Layout = {
  name: 'classic',
  jumps: JUMPS,
  sharedChains: SHARED,
  tailChain: { table: 'nat', chain: CHAINS.services },
  foreignChains: [{ table: 'filter', chain: CHAINS.firewall }],
  base,
  servicePort,
};

const toDrop = jump(CHAINS.markDrop);

/** Bit 15, as kubelet had it, unless masquerading took that one. */
function dropMark(masqueradeMark: number): number {
  return masqueradeMark === 0x8000 ? 0x4000 : 0x8000;
}

function base(options: CompileOptions): BaseFragment {
  const mark = options.masqueradeMark;
  const unwanted = dropMark(mark);
  return {
    chains: [
      markMasquerade(mark, 'set'),
      ownChain('nat', CHAINS.markDrop, [rule([], { kind: 'mark', operation: 'or', value: unwanted })]),
      ownChain('nat', CHAINS.postrouting, [
        rule([comment('kubernetes service traffic requiring SNAT'), marked(mark)], {
          kind: 'masquerade',
          randomFully: false,
        }),
      ]),
      ownChain('filter', CHAINS.forward, forwardRules(options)),
    ],
    tail: nodePortTail(options),
    foreign: [
      ...(options.view.nodePorts.loopback ? [martianRule()] : []),
      shared(
        'filter',
        CHAINS.firewall,
        rule([comment('kubernetes firewall for dropping marked packets'), marked(unwanted)], drop),
      ),
    ],
  };
}

function forwardRules(options: CompileOptions): readonly Rule[] {
  const established = state('RELATED', 'ESTABLISHED');
  const byMark = acceptMarked(options.masqueradeMark);
  const detector = options.view.localDetector;
  if (detector.kind !== 'cidr') return [byMark, acceptEstablished];
  return [
    byMark,
    rule(
      [source(detector.cidr), comment('kubernetes forwarding conntrack pod source rule'), established],
      accept,
    ),
    rule(
      [
        comment('kubernetes forwarding conntrack pod destination rule'),
        destination(detector.cidr),
        established,
      ],
      accept,
    ),
  ];
}

function servicePort(port: ServicePortPlan, options: CompileOptions): Fragment {
  const hash = serviceHash(port);
  const names = endpointChainNames(port);
  return {
    chains: [
      ...endpointChains(port, names, options.endpointComments),
      ...poolChains(port, hash, names),
      ...externalLocalChain(port, hash, names, options),
      ...firewallChain(port, hash),
    ],
    shared: [
      ...port.frontends.flatMap((frontend) => frontendRules(port, frontend, hash, options)),
      ...healthCheckRules(port, CHAINS.externalServices),
    ],
  };
}

function frontendRules(
  port: ServicePortPlan,
  frontend: Frontend,
  hash: ServiceHash,
  options: CompileOptions,
): readonly SharedRule[] {
  if (frontend.routes.outside.verdict === 'reject') return [rejectRule(port, frontend)];
  switch (frontend.kind) {
    case 'clusterIP':
      return clusterIPRules(port, frontend, hash, options);
    case 'externalIP':
      return externalIPRules(port, frontend, hash);
    case 'loadBalancerIP':
      return inServices([rule(dial(port, frontend, 'loadbalancer IP'), jump(PREFIXES.firewall + hash))]);
    case 'nodePort':
      return nodePortRules(port, frontend, hash, options);
  }
}

function rejectRule(port: ServicePortPlan, frontend: Frontend): SharedRule {
  const text = `${port.name} has no endpoints`;
  if (frontend.address === undefined) {
    const matches = [comment(text), toLocal, protocol(port.protocol), destinationPort(frontend.port)];
    return shared('filter', CHAINS.externalServices, rule(matches, reject));
  }
  const chain = frontend.kind === 'clusterIP' ? CHAINS.services : CHAINS.externalServices;
  return shared('filter', chain, rule(dial(port, frontend, 'has no endpoints'), reject));
}

function clusterIPRules(
  port: ServicePortPlan,
  frontend: Frontend,
  hash: ServiceHash,
  options: CompileOptions,
): readonly SharedRule[] {
  const { outside } = frontend.routes;
  if (outside.verdict !== 'forward') {
    return inServices([rule(dial(port, frontend, 'has no local endpoints'), toDrop)]);
  }
  const matches = dial(port, frontend, 'cluster IP');
  const sources = masqueradedSources(frontend.routes, options);
  return inServices([
    ...(sources ? [rule([...matches, ...sources], toMasquerade)] : []),
    rule(matches, jump(poolPrefix(outside.pool) + hash)),
  ]);
}

/** Traffic from off this machine, traffic to an address of this machine, and the rest, each counted by itself. */
function externalIPRules(
  port: ServicePortPlan,
  frontend: Frontend,
  hash: ServiceHash,
): readonly SharedRule[] {
  const matches = dial(port, frontend, 'external IP');
  const target = jump(entryChain(port, hash));
  return inServices([
    ...(hasLocalView(port) ? [] : [rule(matches, toMasquerade)]),
    rule([...matches, notFromBridge, notFromLocal], target),
    rule([...matches, toLocal], target),
    rule(matches, target),
  ]);
}

function nodePortRules(
  port: ServicePortPlan,
  frontend: Frontend,
  hash: ServiceHash,
  options: CompileOptions,
): readonly SharedRule[] {
  const matches = [comment(port.name), protocol(port.protocol), destinationPort(frontend.port)];
  const whoNeedsIt = hasLocalView(port) ? [...matches, source(loopbackRange(options.family))] : matches;
  return [
    shared('nat', CHAINS.nodePorts, rule(whoNeedsIt, toMasquerade)),
    shared('nat', CHAINS.nodePorts, rule(matches, jump(entryChain(port, hash)))),
  ];
}

/** Clients outside see other endpoints than those inside. */
function hasLocalView(port: ServicePortPlan): boolean {
  const { outside } = port.external;
  return outside.verdict === 'drop' || (outside.verdict === 'forward' && outside.pool === 'local');
}

function entryChain(port: ServicePortPlan, hash: ServiceHash): string {
  return (hasLocalView(port) ? PREFIXES.externalLocal : PREFIXES.service) + hash;
}

function hasOpenFrontend(port: ServicePortPlan, kinds: readonly Frontend['kind'][]): boolean {
  return port.frontends.some(
    ({ kind, routes }) => kinds.includes(kind) && routes.outside.verdict !== 'reject',
  );
}

function externalLocalChain(
  port: ServicePortPlan,
  hash: ServiceHash,
  names: EndpointChains,
  options: CompileOptions,
): readonly OwnChain[] {
  if (!hasLocalView(port) || !hasOpenFrontend(port, ['externalIP', 'loadBalancerIP', 'nodePort'])) return [];
  const toService = jump(PREFIXES.service + hash);
  const fromPod = podMatch(options.view.localDetector, 'pods');
  const local = port.pools.local;
  const rules: Rule[] = [];
  if (fromPod) {
    const text = 'Redirect pods trying to reach external loadbalancer VIP to clusterIP';
    rules.push(rule([comment(text), fromPod], toService));
  }
  rules.push(rule([comment(`masquerade LOCAL traffic for ${port.name} LB IP`), fromLocal], toMasquerade));
  rules.push(
    rule([comment(`route LOCAL traffic for ${port.name} LB IP to service chain`), fromLocal], toService),
  );
  if (local && port.external.outside.verdict === 'forward')
    rules.push(...balancingRules(port, local, names, localStyle(port)));
  else rules.push(rule([comment(`${port.name} has no local endpoints`)], toDrop));
  return [{ table: 'nat', name: PREFIXES.externalLocal + hash, rules }];
}

function firewallChain(port: ServicePortPlan, hash: ServiceHash): readonly OwnChain[] {
  if (!hasOpenFrontend(port, ['loadBalancerIP'])) return [];
  const allowed = port.frontends.find(({ kind }) => kind === 'loadBalancerIP')?.allowedSources;
  const label = comment(`${port.name} loadbalancer IP`);
  const target = jump(entryChain(port, hash));
  const rules = [
    ...(hasLocalView(port) ? [] : [rule([label], toMasquerade)]),
    ...(allowed ? allowRules(allowed, label, target) : [rule([label], target)]),
    rule([label], toDrop),
  ];
  return [{ table: 'nat', name: PREFIXES.firewall + hash, rules }];
}

/** KUBE-SVC- for the cluster; KUBE-SVL- only where the cluster IP itself is local. */
function poolChains(port: ServicePortPlan, hash: ServiceHash, names: EndpointChains): readonly OwnChain[] {
  const { cluster, local } = port.pools;
  const { outside } = port.internal;
  const chains: OwnChain[] = [];
  const add = (prefix: string, pool: NonNullable<typeof cluster>): void => {
    chains.push({
      table: 'nat',
      name: prefix + hash,
      rules: balancingRules(port, pool, names, nameStyle(port)),
    });
  };
  if (cluster) add(PREFIXES.service, cluster);
  if (local && outside.verdict === 'forward' && outside.pool === 'local') add(PREFIXES.local, local);
  return chains;
}

function nameStyle(port: ServicePortPlan): BalanceStyle {
  const label = [comment(port.name)];
  return { decimals: 5, affinityComment: () => label, choiceComment: () => label };
}

function localStyle(port: ServicePortPlan): BalanceStyle {
  return {
    ...nameStyle(port),
    choiceComment: (_, index) => [comment(`Balancing rule ${index} for ${port.name}`)],
  };
}

function dial(port: ServicePortPlan, { address, port: number }: Frontend, what: string): readonly Match[] {
  return address === undefined ? [] : dialled(`${port.name} ${what}`, port.protocol, address, number);
}

function inServices(rules: readonly Rule[]): readonly SharedRule[] {
  return rules.map((each) => shared('nat', CHAINS.services, each));
}

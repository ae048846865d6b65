/**
 * The chains that kube-proxy wrote from 1.5 to 1.23, for people and tools that know them: KUBE-XLB- for local
 * traffic, a firewall chain in nat for every load balancer, packets to drop marked in nat and dropped in filter.
 *
 * The meaning is the plan's, so a few rules are here that old releases lacked; `docs/iptables.md` lists them.
 */
import { LOOPBACK_RANGE } from '../../../../model/ip.ts';
import type { Frontend, ServicePortPlan } from '../../../../plan/types.ts';
import * as common from './common.ts';
import { dialled, match, ownChain, rule, shared, target } from './common.ts';
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
  ...['INPUT', 'FORWARD', 'OUTPUT'].map(common.toExternalServices),
  ...['FORWARD', 'OUTPUT'].map(common.toServices),
  ...common.natJumps,
  common.forwardJump,
  // Ends up before KUBE-FORWARD, which would accept a packet that carries both marks.
  ...['INPUT', 'OUTPUT', 'FORWARD'].map((from) => common.jumpTo('filter', from, CHAINS.firewall)),
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

const toDrop = target.jump(CHAINS.markDrop);

/** Bit 15, as kubelet had it, unless masquerading took that one. */
function dropMark(masqueradeMark: number): number {
  return masqueradeMark === 0x8000 ? 0x4000 : 0x8000;
}

function base(options: CompileOptions): BaseFragment {
  const mark = options.masqueradeMark;
  const unwanted = dropMark(mark);
  return {
    chains: [
      common.markMasquerade(mark, 'set'),
      ownChain('nat', CHAINS.markDrop, [rule([], { kind: 'mark', operation: 'or', value: unwanted })]),
      ownChain('nat', CHAINS.postrouting, [
        rule([match.comment('kubernetes service traffic requiring SNAT'), match.marked(mark)], {
          kind: 'masquerade',
          randomFully: false,
        }),
      ]),
      ownChain('filter', CHAINS.forward, forwardRules(options)),
    ],
    tail: common.nodePortTail(options),
    foreign: [
      ...(options.view.nodePorts.loopback ? [common.martianRule()] : []),
      shared(
        'filter',
        CHAINS.firewall,
        rule(
          [match.comment('kubernetes firewall for dropping marked packets'), match.marked(unwanted)],
          target.drop,
        ),
      ),
    ],
  };
}

function forwardRules(options: CompileOptions): readonly Rule[] {
  const established = match.state('RELATED', 'ESTABLISHED');
  const byMark = common.acceptMarked(options.masqueradeMark);
  const detector = options.view.localDetector;
  if (detector.kind !== 'cidr') return [byMark, common.acceptEstablished];
  return [
    byMark,
    rule(
      [
        match.source(detector.cidr),
        match.comment('kubernetes forwarding conntrack pod source rule'),
        established,
      ],
      target.accept,
    ),
    rule(
      [
        match.comment('kubernetes forwarding conntrack pod destination rule'),
        match.destination(detector.cidr),
        established,
      ],
      target.accept,
    ),
  ];
}

function servicePort(port: ServicePortPlan, options: CompileOptions): Fragment {
  const hash = serviceHash(port);
  const names = common.endpointChainNames(port);
  return {
    chains: [
      ...common.endpointChains(port, names, options.endpointComments),
      ...poolChains(port, hash, names),
      ...externalLocalChain(port, hash, names, options),
      ...firewallChain(port, hash),
    ],
    shared: [
      ...port.frontends.flatMap((frontend) => frontendRules(port, frontend, hash, options)),
      ...common.healthCheckRules(port, CHAINS.externalServices),
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
      return inServices([
        rule(dial(port, frontend, 'loadbalancer IP'), target.jump(PREFIXES.firewall + hash)),
      ]);
    case 'nodePort':
      return nodePortRules(port, frontend, hash, options);
  }
}

function rejectRule(port: ServicePortPlan, frontend: Frontend): SharedRule {
  const text = `${port.name} has no endpoints`;
  if (frontend.address === undefined) {
    const matches = [
      match.comment(text),
      match.toLocal,
      match.protocol(port.protocol),
      match.destinationPort(frontend.port),
    ];
    return shared('filter', CHAINS.externalServices, rule(matches, target.reject));
  }
  const chain = frontend.kind === 'clusterIP' ? CHAINS.services : CHAINS.externalServices;
  return shared('filter', chain, rule(dial(port, frontend, 'has no endpoints'), target.reject));
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
  const sources = common.masqueradedSources(frontend.routes, options);
  return inServices([
    ...(sources ? [rule([...matches, ...sources], target.masquerade)] : []),
    rule(matches, target.jump(common.poolPrefix(outside.pool) + hash)),
  ]);
}

/** Traffic from off this machine, traffic to an address of this machine, and the rest, each counted by itself. */
function externalIPRules(
  port: ServicePortPlan,
  frontend: Frontend,
  hash: ServiceHash,
): readonly SharedRule[] {
  const matches = dial(port, frontend, 'external IP');
  const next = target.jump(entryChain(port, hash));
  return inServices([
    ...(hasLocalView(port) ? [] : [rule(matches, target.masquerade)]),
    rule([...matches, notFromBridge, match.notFromLocal], next),
    rule([...matches, match.toLocal], next),
    rule(matches, next),
  ]);
}

function nodePortRules(
  port: ServicePortPlan,
  frontend: Frontend,
  hash: ServiceHash,
  options: CompileOptions,
): readonly SharedRule[] {
  const matches = [
    match.comment(port.name),
    match.protocol(port.protocol),
    match.destinationPort(frontend.port),
  ];
  const whoNeedsIt = hasLocalView(port)
    ? [...matches, match.source(LOOPBACK_RANGE[options.family])]
    : matches;
  return [
    shared('nat', CHAINS.nodePorts, rule(whoNeedsIt, target.masquerade)),
    shared('nat', CHAINS.nodePorts, rule(matches, target.jump(entryChain(port, hash)))),
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
  names: common.EndpointChains,
  options: CompileOptions,
): readonly OwnChain[] {
  if (!hasLocalView(port) || !hasOpenFrontend(port, ['externalIP', 'loadBalancerIP', 'nodePort'])) return [];
  const toService = target.jump(PREFIXES.service + hash);
  const fromPod = common.podMatch(options.view.localDetector, 'pods');
  const local = port.pools.local;
  const rules: Rule[] = [];
  if (fromPod) {
    const text = 'Redirect pods trying to reach external loadbalancer VIP to clusterIP';
    rules.push(rule([match.comment(text), fromPod], toService));
  }
  rules.push(
    rule(
      [match.comment(`masquerade LOCAL traffic for ${port.name} LB IP`), match.fromLocal],
      target.masquerade,
    ),
  );
  rules.push(
    rule(
      [match.comment(`route LOCAL traffic for ${port.name} LB IP to service chain`), match.fromLocal],
      toService,
    ),
  );
  if (local && port.external.outside.verdict === 'forward')
    rules.push(...common.balancingRules(port, local, names, localStyle(port)));
  else rules.push(rule([match.comment(`${port.name} has no local endpoints`)], toDrop));
  return [{ table: 'nat', name: PREFIXES.externalLocal + hash, rules }];
}

function firewallChain(port: ServicePortPlan, hash: ServiceHash): readonly OwnChain[] {
  if (!hasOpenFrontend(port, ['loadBalancerIP'])) return [];
  const allowed = port.frontends.find(({ kind }) => kind === 'loadBalancerIP')?.allowedSources;
  const label = match.comment(`${port.name} loadbalancer IP`);
  const next = target.jump(entryChain(port, hash));
  const rules = [
    ...(hasLocalView(port) ? [] : [rule([label], target.masquerade)]),
    ...(allowed ? common.allowRules(allowed, label, next) : [rule([label], next)]),
    rule([label], toDrop),
  ];
  return [{ table: 'nat', name: PREFIXES.firewall + hash, rules }];
}

/** KUBE-SVC- for the cluster; KUBE-SVL- only where the cluster IP itself is local. */
function poolChains(
  port: ServicePortPlan,
  hash: ServiceHash,
  names: common.EndpointChains,
): readonly OwnChain[] {
  const { cluster, local } = port.pools;
  const { outside } = port.internal;
  const chains: OwnChain[] = [];
  const add = (prefix: string, pool: NonNullable<typeof cluster>): void => {
    chains.push({
      table: 'nat',
      name: prefix + hash,
      rules: common.balancingRules(port, pool, names, nameStyle(port)),
    });
  };
  if (cluster) add(PREFIXES.service, cluster);
  if (local && outside.verdict === 'forward' && outside.pool === 'local') add(PREFIXES.local, local);
  return chains;
}

function nameStyle(port: ServicePortPlan): common.BalanceStyle {
  const label = [match.comment(port.name)];
  return { decimals: 5, affinityComment: () => label, choiceComment: () => label };
}

function localStyle(port: ServicePortPlan): common.BalanceStyle {
  return {
    ...nameStyle(port),
    choiceComment: (_, index) => [match.comment(`Balancing rule ${index} for ${port.name}`)],
  };
}

function dial(port: ServicePortPlan, { address, port: number }: Frontend, what: string): readonly Match[] {
  return address === undefined ? [] : dialled(`${port.name} ${what}`, port.protocol, address, number);
}

function inServices(rules: readonly Rule[]): readonly SharedRule[] {
  return rules.map((each) => shared('nat', CHAINS.services, each));
}

/**
 * The chains that kube-proxy wrote from 1.5 to 1.23, for people and tools that know them: KUBE-XLB- for local
 * traffic, a firewall chain in nat for every load balancer, packets to drop marked in nat and dropped in filter.
 *
 * The meaning is the plan's, so a few rules are here that old releases lacked; `docs/iptables.md` lists them.
 */
import { LOOPBACK_RANGE } from '../../../../model/ip.ts';
import type { Frontend, ServicePortPlan } from '../../../../plan/types.ts';
import type { BaseFragment, CompileOptions, Fragment, Layout, OwnChain, SharedRule } from '../fragment.ts';
import { CHAINS, PREFIXES } from '../names.ts';
import type { Match, Rule } from '../rule.ts';
import * as common from './common.ts';
import { type Compiled, dialled, match, ownChain, rule, shared, target } from './common.ts';

const notFromBridge: Match = { kind: 'physdevIsIn', not: true };
const toDrop = target.jump(CHAINS.markDrop);

export const classicLayout: Layout = {
  jumps: [
    ...['INPUT', 'FORWARD', 'OUTPUT'].map(common.toExternalServices),
    ...['FORWARD', 'OUTPUT'].map(common.toServices),
    ...common.natJumps,
    common.forwardJump,
    // Ends up before KUBE-FORWARD, which would accept a packet that carries both marks.
    ...['INPUT', 'OUTPUT', 'FORWARD'].map((from) => common.jumpTo('filter', from, CHAINS.firewall)),
  ],
  sharedChains: [
    { table: 'filter', chain: CHAINS.services },
    { table: 'filter', chain: CHAINS.externalServices },
    { table: 'nat', chain: CHAINS.services },
    { table: 'nat', chain: CHAINS.nodePorts },
  ],
  foreignChains: [{ table: 'filter', chain: CHAINS.firewall }],
  base,
  servicePort,
};

function base(options: CompileOptions): BaseFragment {
  const mark = options.masqueradeMark;
  // Bit 15, as kubelet had it, unless masquerading took that one.
  const dropMark = mark === 0x8000 ? 0x4000 : 0x8000;
  const snat = [match.comment('kubernetes service traffic requiring SNAT'), match.marked(mark)];
  const dropped = [match.comment('kubernetes firewall for dropping marked packets'), match.marked(dropMark)];
  return {
    chains: [
      common.markMasquerade(mark, 'set'),
      ownChain('nat', CHAINS.markDrop, [rule([], { kind: 'mark', operation: 'or', value: dropMark })]),
      ownChain('nat', CHAINS.postrouting, [rule(snat, { kind: 'masquerade', randomFully: false })]),
      ownChain('filter', CHAINS.forward, forwardRules(options)),
    ],
    tail: common.nodePortTail(options),
    foreign: [
      ...(options.view.nodePorts.loopback ? [common.martianRule()] : []),
      shared('filter', CHAINS.firewall, rule(dropped, target.drop)),
    ],
  };
}

function forwardRules(options: CompileOptions): readonly Rule[] {
  const byMark = common.acceptMarked(options.masqueradeMark);
  const detector = options.view.localDetector;
  if (detector.kind !== 'cidr') return [byMark, common.acceptEstablished];
  const established = match.state('RELATED', 'ESTABLISHED');
  const text = (what: string): Match => match.comment(`kubernetes forwarding conntrack pod ${what} rule`);
  return [
    byMark,
    rule([match.source(detector.cidr), text('source'), established], target.accept),
    rule([text('destination'), match.destination(detector.cidr), established], target.accept),
  ];
}

function servicePort(port: ServicePortPlan, options: CompileOptions): Fragment {
  const compiled = common.compiled(port, options);
  return {
    chains: [
      ...common.endpointChains(compiled),
      ...poolChains(compiled),
      ...externalLocalChain(compiled),
      ...firewallChain(compiled),
    ],
    shared: [
      ...port.frontends.flatMap((frontend) => frontendRules(compiled, frontend)),
      ...common.healthCheckRules(port, CHAINS.externalServices),
    ],
  };
}

function frontendRules(compiled: Compiled, frontend: Frontend): readonly SharedRule[] {
  const { port, hash } = compiled;
  if (frontend.routes.outside.verdict === 'reject')
    return [common.refuse(port, frontend, 'has no endpoints', target.reject)];
  const inNat = (chain: string, rules: readonly Rule[]): readonly SharedRule[] =>
    rules.map((each) => shared('nat', chain, each));
  switch (frontend.kind) {
    case 'clusterIP':
      return inNat(CHAINS.services, clusterIPRules(compiled, frontend));
    case 'externalIP':
      return inNat(CHAINS.services, externalIPRules(compiled, frontend));
    case 'loadBalancerIP': {
      const next = target.jump(PREFIXES.firewall + hash);
      return inNat(CHAINS.services, [rule(dialled(port, frontend, 'loadbalancer IP'), next)]);
    }
    case 'nodePort':
      return inNat(CHAINS.nodePorts, nodePortRules(compiled, frontend));
  }
}

function clusterIPRules({ port, hash, options }: Compiled, frontend: Frontend): readonly Rule[] {
  const { outside } = frontend.routes;
  if (outside.verdict !== 'forward') return [rule(dialled(port, frontend, 'has no local endpoints'), toDrop)];
  const matches = dialled(port, frontend, 'cluster IP');
  const sources = common.masqueradedSources(frontend.routes, options);
  return [
    ...(sources ? [rule([...matches, ...sources], target.masquerade)] : []),
    rule(matches, target.jump(common.poolPrefix(outside.pool) + hash)),
  ];
}

/** Traffic from off this machine, traffic to an address of this machine, and the rest, each counted by itself. */
function externalIPRules({ port, hash }: Compiled, frontend: Frontend): readonly Rule[] {
  const matches = dialled(port, frontend, 'external IP');
  const next = target.jump(entryChain(port, hash));
  return [
    ...(hasLocalView(port) ? [] : [rule(matches, target.masquerade)]),
    rule([...matches, notFromBridge, match.notFromLocal], next),
    rule([...matches, match.toLocal], next),
    rule(matches, next),
  ];
}

function nodePortRules({ port, hash, options }: Compiled, frontend: Frontend): readonly Rule[] {
  const matches = [
    match.comment(port.name),
    match.protocol(port.protocol),
    match.destinationPort(frontend.port),
  ];
  const masqueraded = hasLocalView(port) ? [match.source(LOOPBACK_RANGE[options.family])] : [];
  return [
    rule([...matches, ...masqueraded], target.masquerade),
    rule(matches, target.jump(entryChain(port, hash))),
  ];
}

/** Clients outside see other endpoints than those inside. */
function hasLocalView(port: ServicePortPlan): boolean {
  const { outside } = port.external;
  return outside.verdict === 'drop' || (outside.verdict === 'forward' && outside.pool === 'local');
}

function entryChain(port: ServicePortPlan, hash: string): string {
  return (hasLocalView(port) ? PREFIXES.externalLocal : PREFIXES.service) + hash;
}

function externalLocalChain({ port, hash, names, options }: Compiled): readonly OwnChain[] {
  const isOpen = port.frontends.some(
    ({ kind, routes }) => kind !== 'clusterIP' && routes.outside.verdict !== 'reject',
  );
  if (!hasLocalView(port) || !isOpen) return [];
  const toService = target.jump(PREFIXES.service + hash);
  const fromPod = common.podMatch(options.view.localDetector, 'pods');
  const { local } = port.pools;
  const text = (what: string): Match => match.comment(what);
  const rules = [
    ...(fromPod
      ? [
          rule(
            [text('Redirect pods trying to reach external loadbalancer VIP to clusterIP'), fromPod],
            toService,
          ),
        ]
      : []),
    rule([text(`masquerade LOCAL traffic for ${port.name} LB IP`), match.fromLocal], target.masquerade),
    rule([text(`route LOCAL traffic for ${port.name} LB IP to service chain`), match.fromLocal], toService),
    ...(local && port.external.outside.verdict === 'forward'
      ? common.balancingRules(port, local, names, localStyle(port))
      : [rule([text(`${port.name} has no local endpoints`)], toDrop)]),
  ];
  return [ownChain('nat', PREFIXES.externalLocal + hash, rules)];
}

function firewallChain({ port, hash }: Compiled): readonly OwnChain[] {
  const frontends = port.frontends.filter(({ kind }) => kind === 'loadBalancerIP');
  if (frontends.every(({ routes }) => routes.outside.verdict === 'reject')) return [];
  const allowed = frontends[0]?.allowedSources;
  const label = match.comment(`${port.name} loadbalancer IP`);
  const next = target.jump(entryChain(port, hash));
  const rules = [
    ...(hasLocalView(port) ? [] : [rule([label], target.masquerade)]),
    ...(allowed ? common.allowRules(allowed, label, next) : [rule([label], next)]),
    rule([label], toDrop),
  ];
  return [ownChain('nat', PREFIXES.firewall + hash, rules)];
}

/** KUBE-SVC- for the cluster; KUBE-SVL- only where the cluster IP itself is local. */
function poolChains({ port, hash, names }: Compiled): readonly OwnChain[] {
  const { outside } = port.internal;
  const isLocalUsed = outside.verdict === 'forward' && outside.pool === 'local';
  return (['cluster', 'local'] as const).flatMap((name) => {
    const pool = port.pools[name];
    if (!pool || (name === 'local' && !isLocalUsed)) return [];
    const rules = common.balancingRules(port, pool, names, nameStyle(port));
    return [ownChain('nat', common.poolPrefix(name) + hash, rules)];
  });
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

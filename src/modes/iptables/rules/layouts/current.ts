/** The chains that kube-proxy writes today, to the letter. `docs/iptables.md` draws them. */
import { LOOPBACK_RANGE } from '../../../../model/ip.ts';
import type { Frontend, PoolName, Route, ServicePortPlan } from '../../../../plan/types.ts';
import type { BaseFragment, CompileOptions, Fragment, Layout, OwnChain, SharedRule } from '../fragment.ts';
import { CHAINS, NFACCT, PREFIXES } from '../names.ts';
import type { Match, Rule } from '../rule.ts';
import * as common from './common.ts';
import { type Compiled, dialled, match, ownChain, rule, shared, target } from './common.ts';

const HEALTH_CHECKS = 'kubernetes health check service ports';
const LB_FIREWALL = 'kubernetes load balancer firewall';

export const currentLayout: Layout = {
  jumps: [
    common.toExternalServices('INPUT'),
    common.toExternalServices('FORWARD'),
    common.jumpTo('filter', 'INPUT', CHAINS.nodePorts, match.comment(HEALTH_CHECKS)),
    common.toServices('FORWARD'),
    common.toServices('OUTPUT'),
    common.forwardJump,
    ...['INPUT', 'OUTPUT', 'FORWARD'].map((from) =>
      common.jumpTo('filter', from, CHAINS.proxyFirewall, match.isNew, match.comment(LB_FIREWALL)),
    ),
    ...common.natJumps,
    common.jumpTo('filter', 'INPUT', CHAINS.firewall),
    common.jumpTo('filter', 'OUTPUT', CHAINS.firewall),
  ],
  sharedChains: [
    { table: 'filter', chain: CHAINS.services },
    { table: 'filter', chain: CHAINS.externalServices },
    { table: 'filter', chain: CHAINS.nodePorts },
    { table: 'filter', chain: CHAINS.proxyFirewall },
    { table: 'nat', chain: CHAINS.services },
    { table: 'nat', chain: CHAINS.nodePorts },
  ],
  foreignChains: [{ table: 'filter', chain: CHAINS.firewall }],
  base,
  servicePort,
};

function base(options: CompileOptions): BaseFragment {
  return {
    chains: [
      common.markMasquerade(options.masqueradeMark),
      ownChain('nat', CHAINS.postrouting, common.masqueradeMarked(options)),
      ownChain('filter', CHAINS.forward, forwardRules(options)),
    ],
    tail: common.nodePortTail(options),
    foreign: options.view.nodePorts.loopback ? [common.martianRule()] : [],
  };
}

function forwardRules(options: CompileOptions): readonly Rule[] {
  const counter: readonly Match[] = options.nfacct.invalidDropped
    ? [{ kind: 'nfacct', name: NFACCT.invalidDropped }]
    : [];
  return [
    ...(options.dropInvalid ? [rule([match.state('INVALID'), ...counter], target.drop)] : []),
    common.acceptMarked(options.masqueradeMark),
    common.acceptEstablished,
  ];
}

function servicePort(port: ServicePortPlan, options: CompileOptions): Fragment {
  const compiled = common.compiled(port, options);
  return {
    chains: [
      ...common.endpointChains(compiled),
      ...poolChains(compiled),
      ...externalChain(compiled),
      ...firewallChain(compiled),
    ],
    shared: [
      ...port.frontends.flatMap((frontend) => [
        ...entryRules(compiled, frontend),
        ...refusals(port, frontend),
      ]),
      ...common.healthCheckRules(port, CHAINS.nodePorts),
    ],
  };
}

function refusals(port: ServicePortPlan, frontend: Frontend): readonly SharedRule[] {
  switch (frontend.routes.outside.verdict) {
    case 'forward':
      return [];
    case 'reject':
      return [common.refuse(port, frontend, 'has no endpoints', target.reject)];
    case 'drop':
      return [common.refuse(port, frontend, 'has no local endpoints', target.drop)];
  }
}

function entryRules(compiled: Compiled, frontend: Frontend): readonly SharedRule[] {
  const { port, hash } = compiled;
  const { outside } = frontend.routes;
  if (frontend.kind === 'clusterIP') {
    if (outside.verdict !== 'forward') return [];
    const next = target.jump(poolChainName(outside, hash));
    return [shared('nat', CHAINS.services, rule(dialled(port, frontend, 'cluster IP'), next))];
  }
  if (!isOpen(frontend)) return [];
  if (frontend.kind === 'nodePort') return nodePortRules(compiled, frontend);
  const what = frontend.kind === 'externalIP' ? 'external IP' : 'loadbalancer IP';
  const firewall = PREFIXES.firewall + hash;
  const next = target.jump(frontend.allowedSources ? firewall : PREFIXES.external + hash);
  const entry = shared('nat', CHAINS.services, rule(dialled(port, frontend, what), next));
  if (!frontend.allowedSources) return [entry];
  const others = dialled(port, frontend, `traffic not accepted by ${firewall}`);
  return [entry, shared('filter', CHAINS.proxyFirewall, rule(others, target.drop))];
}

function nodePortRules({ port, options, hash }: Compiled, frontend: Frontend): readonly SharedRule[] {
  const toPort = match.destinationPort(frontend.port);
  const name = [match.comment(port.name), match.protocol(port.protocol)];
  const inNodePorts = (...matches: readonly Match[]): SharedRule =>
    shared('nat', CHAINS.nodePorts, rule([...name, ...matches], target.jump(PREFIXES.external + hash)));
  if (!options.view.nodePorts.loopback || !options.nfacct.localhostNodePorts) return [inNodePorts(toPort)];
  const counter: Match = { kind: 'nfacct', name: NFACCT.localhostNodePorts };
  return [inNodePorts(match.destination(LOOPBACK_RANGE.IPv4), toPort, counter), inNodePorts(toPort)];
}

/** Some source gets through: there are endpoints somewhere. */
function isOpen(frontend: Frontend): boolean {
  return frontend.routes.node.verdict === 'forward' || frontend.routes.outside.verdict === 'forward';
}

function externalChain(compiled: Compiled): readonly OwnChain[] {
  const { port, hash } = compiled;
  if (!port.frontends.some((frontend) => frontend.kind !== 'clusterIP' && isOpen(frontend))) return [];
  return [ownChain('nat', PREFIXES.external + hash, externalRules(compiled))];
}

function externalRules({ port, hash, options }: Compiled): readonly Rule[] {
  const { pod, node, outside } = port.external;
  const text = (what: string): Match => match.comment(`${what} for ${port.name} external destinations`);
  const rules: Rule[] = [];
  if (outside.verdict === 'forward' && outside.masquerade) {
    rules.push(rule([text('masquerade traffic')], target.masquerade));
  } else {
    const fromPod = common.podMatch(options.view.localDetector, 'pods');
    if (fromPod && pod.verdict === 'forward') {
      rules.push(rule([text('pod traffic'), fromPod], target.jump(poolChainName(pod, hash))));
    }
    if (node.verdict === 'forward') {
      const next = target.jump(poolChainName(node, hash));
      rules.push(rule([text('masquerade LOCAL traffic'), match.fromLocal], target.masquerade));
      rules.push(rule([text('route LOCAL traffic'), match.fromLocal], next));
    }
  }
  if (outside.verdict === 'forward') rules.push(rule([], target.jump(poolChainName(outside, hash))));
  return rules;
}

function firewallChain({ port, hash }: Compiled): readonly OwnChain[] {
  const allowed = port.frontends.find(
    (frontend) => frontend.allowedSources && isOpen(frontend),
  )?.allowedSources;
  if (!allowed) return [];
  const label = match.comment(`${port.name} loadbalancer IP`);
  const next = target.jump(PREFIXES.external + hash);
  return [
    ownChain('nat', PREFIXES.firewall + hash, [
      ...common.allowRules(allowed, label, next),
      rule([match.comment(`other traffic to ${port.name} will be dropped by ${CHAINS.proxyFirewall}`)]),
    ]),
  ];
}

function poolChains(compiled: Compiled): readonly OwnChain[] {
  const { port, hash, names } = compiled;
  const style = balanceStyle(compiled);
  return (['cluster', 'local'] as const).flatMap((name) => {
    const pool = port.pools[name];
    if (!pool) return [];
    const rules = [
      ...clusterIPMasquerade(compiled, name),
      ...common.balancingRules(port, pool, names, style),
    ];
    return [ownChain('nat', common.poolPrefix(name) + hash, rules)];
  });
}

/** Marks who needs it on the way to the cluster IP. Here and not in KUBE-SERVICES, because every packet reads that. */
function clusterIPMasquerade({ port, options }: Compiled, pool: PoolName): readonly Rule[] {
  const frontend = port.frontends.find(({ kind }) => kind === 'clusterIP');
  const { outside } = port.internal;
  if (!frontend || outside.verdict !== 'forward' || outside.pool !== pool) return [];
  const sources = common.masqueradedSources(port.internal, options);
  if (!sources) return [];
  return [rule([...dialled(port, frontend, 'cluster IP'), ...sources], target.masquerade)];
}

function balanceStyle({ port, options }: Compiled): common.BalanceStyle {
  const label = (endpoint: { readonly key: string }): readonly Match[] =>
    options.endpointComments ? [match.comment(`${port.name} -> ${endpoint.key}`)] : [];
  return { decimals: 10, affinityComment: label, choiceComment: label };
}

function poolChainName(route: Extract<Route, { readonly verdict: 'forward' }>, hash: string): string {
  return common.poolPrefix(route.pool) + hash;
}

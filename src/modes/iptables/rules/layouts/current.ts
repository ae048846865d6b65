/** The chains that kube-proxy writes today, to the letter. `docs/iptables.md` draws them. */
import { LOOPBACK_RANGE } from '../../../../model/ip.ts';
import type { Frontend, PoolName, Route, ServicePortPlan } from '../../../../plan/types.ts';
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
import { CHAINS, NFACCT, PREFIXES, type ServiceHash, serviceHash } from '../names.ts';
import type { Match, Rule, Target } from '../rule.ts';

const LB_FIREWALL = 'kubernetes load balancer firewall';

const JUMPS: readonly JumpRule[] = [
  common.toExternalServices('INPUT'),
  common.toExternalServices('FORWARD'),
  common.jumpTo('filter', 'INPUT', CHAINS.nodePorts, match.comment('kubernetes health check service ports')),
  common.toServices('FORWARD'),
  common.toServices('OUTPUT'),
  common.forwardJump,
  ...['INPUT', 'OUTPUT', 'FORWARD'].map((from) =>
    common.jumpTo('filter', from, CHAINS.proxyFirewall, match.isNew, match.comment(LB_FIREWALL)),
  ),
  ...common.natJumps,
  common.jumpTo('filter', 'INPUT', CHAINS.firewall),
  common.jumpTo('filter', 'OUTPUT', CHAINS.firewall),
];

const SHARED: readonly ChainRef[] = [
  { table: 'filter', chain: CHAINS.services },
  { table: 'filter', chain: CHAINS.externalServices },
  { table: 'filter', chain: CHAINS.nodePorts },
  { table: 'filter', chain: CHAINS.proxyFirewall },
  { table: 'nat', chain: CHAINS.services },
  { table: 'nat', chain: CHAINS.nodePorts },
];

export const currentLayout: Layout = {
  name: 'current',
  jumps: JUMPS,
  sharedChains: SHARED,
  tailChain: { table: 'nat', chain: CHAINS.services },
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
  const hash = serviceHash(port);
  const names = common.endpointChainNames(port);
  return {
    chains: [
      ...common.endpointChains(port, names, options.endpointComments),
      ...poolChains(port, hash, names, options),
      ...externalChain(port, hash, options),
      ...firewallChain(port, hash),
    ],
    shared: [
      ...port.frontends.flatMap((frontend) => frontendRules(port, frontend, hash, options)),
      ...common.healthCheckRules(port, CHAINS.nodePorts),
    ],
  };
}

function frontendRules(
  port: ServicePortPlan,
  frontend: Frontend,
  hash: ServiceHash,
  options: CompileOptions,
): readonly SharedRule[] {
  const refusal = refusalOf(port, frontend.routes.outside);
  switch (frontend.kind) {
    case 'clusterIP':
      return clusterIPRules(port, frontend, hash, refusal);
    case 'nodePort':
      return nodePortRules(port, frontend, hash, refusal, options);
    case 'externalIP':
    case 'loadBalancerIP':
      return addressRules(port, frontend, hash, refusal);
  }
}

interface Refusal {
  readonly text: string;
  readonly target: Target;
}

function refusalOf(port: ServicePortPlan, route: Route): Refusal | undefined {
  switch (route.verdict) {
    case 'forward':
      return undefined;
    case 'reject':
      return { text: `${port.name} has no endpoints`, target: target.reject };
    case 'drop':
      return { text: `${port.name} has no local endpoints`, target: target.drop };
  }
}

function clusterIPRules(
  port: ServicePortPlan,
  { address, port: number, routes }: Frontend,
  hash: ServiceHash,
  refusal: Refusal | undefined,
): readonly SharedRule[] {
  if (address === undefined) return [];
  const route = routes.outside;
  if (route.verdict === 'forward') {
    const matches = dialled(`${port.name} cluster IP`, port.protocol, address, number);
    return [shared('nat', CHAINS.services, rule(matches, target.jump(poolChainName(route, hash))))];
  }
  return refusal
    ? [
        shared(
          'filter',
          CHAINS.services,
          rule(dialled(refusal.text, port.protocol, address, number), refusal.target),
        ),
      ]
    : [];
}

/** External and load-balancer addresses. */
function addressRules(
  port: ServicePortPlan,
  frontend: Frontend,
  hash: ServiceHash,
  refusal: Refusal | undefined,
): readonly SharedRule[] {
  const { address, port: number } = frontend;
  if (address === undefined) return [];
  const rules: SharedRule[] = [];
  const dialledAs = (text: string): readonly Match[] => dialled(text, port.protocol, address, number);
  const firewall = PREFIXES.firewall + hash;
  if (isOpen(frontend)) {
    const label = frontend.kind === 'externalIP' ? 'external IP' : 'loadbalancer IP';
    const next = frontend.allowedSources ? firewall : PREFIXES.external + hash;
    rules.push(shared('nat', CHAINS.services, rule(dialledAs(`${port.name} ${label}`), target.jump(next))));
    if (frontend.allowedSources) {
      const text = `${port.name} traffic not accepted by ${firewall}`;
      rules.push(shared('filter', CHAINS.proxyFirewall, rule(dialledAs(text), target.drop)));
    }
  }
  if (refusal)
    rules.push(shared('filter', CHAINS.externalServices, rule(dialledAs(refusal.text), refusal.target)));
  return rules;
}

function nodePortRules(
  port: ServicePortPlan,
  frontend: Frontend,
  hash: ServiceHash,
  refusal: Refusal | undefined,
  options: CompileOptions,
): readonly SharedRule[] {
  const rules: SharedRule[] = [];
  const toPort = match.destinationPort(frontend.port);
  if (isOpen(frontend)) {
    const next = target.jump(PREFIXES.external + hash);
    const name = [match.comment(port.name), match.protocol(port.protocol)];
    if (options.view.nodePorts.loopback && options.nfacct.localhostNodePorts) {
      const counter: Match = { kind: 'nfacct', name: NFACCT.localhostNodePorts };
      const matches = [...name, match.destination(LOOPBACK_RANGE.IPv4), toPort, counter];
      rules.push(shared('nat', CHAINS.nodePorts, rule(matches, next)));
    }
    rules.push(shared('nat', CHAINS.nodePorts, rule([...name, toPort], next)));
  }
  if (refusal) {
    const matches = [match.comment(refusal.text), match.toLocal, match.protocol(port.protocol), toPort];
    rules.push(shared('filter', CHAINS.externalServices, rule(matches, refusal.target)));
  }
  return rules;
}

/** Some source gets through: there are endpoints somewhere. */
function isOpen(frontend: Frontend): boolean {
  return frontend.routes.node.verdict === 'forward' || frontend.routes.outside.verdict === 'forward';
}

function externalChain(
  port: ServicePortPlan,
  hash: ServiceHash,
  options: CompileOptions,
): readonly OwnChain[] {
  if (!port.frontends.some((frontend) => frontend.kind !== 'clusterIP' && isOpen(frontend))) return [];
  return [ownChain('nat', PREFIXES.external + hash, externalRules(port, hash, options))];
}

function externalRules(port: ServicePortPlan, hash: ServiceHash, options: CompileOptions): readonly Rule[] {
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
      rules.push(rule([text('masquerade LOCAL traffic'), match.fromLocal], target.masquerade));
      rules.push(
        rule([text('route LOCAL traffic'), match.fromLocal], target.jump(poolChainName(node, hash))),
      );
    }
  }
  if (outside.verdict === 'forward') rules.push(rule([], target.jump(poolChainName(outside, hash))));
  return rules;
}

function firewallChain(port: ServicePortPlan, hash: ServiceHash): readonly OwnChain[] {
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

function poolChains(
  port: ServicePortPlan,
  hash: ServiceHash,
  names: common.EndpointChains,
  options: CompileOptions,
): readonly OwnChain[] {
  const style = balanceStyle(port, options);
  const chains: OwnChain[] = [];
  for (const name of ['cluster', 'local'] as const) {
    const pool = port.pools[name];
    if (!pool) continue;
    chains.push(
      ownChain('nat', common.poolPrefix(name) + hash, [
        ...clusterIPMasquerade(port, name, options),
        ...common.balancingRules(port, pool, names, style),
      ]),
    );
  }
  return chains;
}

/** Marks who needs it on the way to the cluster IP. Here and not in KUBE-SERVICES, because every packet reads that. */
function clusterIPMasquerade(
  port: ServicePortPlan,
  pool: PoolName,
  options: CompileOptions,
): readonly Rule[] {
  const frontend = port.frontends.find(({ kind }) => kind === 'clusterIP');
  const { outside } = port.internal;
  if (frontend?.address === undefined || outside.verdict !== 'forward' || outside.pool !== pool) return [];
  const sources = common.masqueradedSources(port.internal, options);
  if (!sources) return [];
  const matches = dialled(`${port.name} cluster IP`, port.protocol, frontend.address, frontend.port);
  return [rule([...matches, ...sources], target.masquerade)];
}

function balanceStyle(port: ServicePortPlan, options: CompileOptions): common.BalanceStyle {
  const label = (endpoint: { readonly key: string }): readonly Match[] =>
    options.endpointComments ? [match.comment(`${port.name} -> ${endpoint.key}`)] : [];
  return { decimals: 10, affinityComment: label, choiceComment: label };
}

function poolChainName(route: { readonly pool: PoolName }, hash: ServiceHash): string {
  return common.poolPrefix(route.pool) + hash;
}

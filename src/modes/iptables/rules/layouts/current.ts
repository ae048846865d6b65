/** The chains that kube-proxy writes today, to the letter. `docs/iptables.md` draws them. */
import type { Frontend, PoolName, Route, ServicePortPlan } from '../../../../plan/types.ts';
import {
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
  isNew,
  jump,
  jumpTo,
  loopbackRange,
  markMasquerade,
  martianRule,
  masqueradedSources,
  masqueradeMarked,
  natJumps,
  nodePortTail,
  ownChain,
  podMatch,
  poolPrefix,
  protocol,
  reject,
  rule,
  shared,
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
import { CHAINS, NFACCT, PREFIXES, type ServiceHash, serviceHash } from '../names.ts';
import type { Match, Rule, Target } from '../rule.ts';

const LB_FIREWALL = 'kubernetes load balancer firewall';

const JUMPS: readonly JumpRule[] = [
  toExternalServices('INPUT'),
  toExternalServices('FORWARD'),
  jumpTo('filter', 'INPUT', CHAINS.nodePorts, comment('kubernetes health check service ports')),
  toServices('FORWARD'),
  toServices('OUTPUT'),
  forwardJump,
  ...['INPUT', 'OUTPUT', 'FORWARD'].map((from) =>
    jumpTo('filter', from, CHAINS.proxyFirewall, isNew, comment(LB_FIREWALL)),
  ),
  ...natJumps,
  jumpTo('filter', 'INPUT', CHAINS.firewall),
  jumpTo('filter', 'OUTPUT', CHAINS.firewall),
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
      markMasquerade(options.masqueradeMark),
      ownChain('nat', CHAINS.postrouting, masqueradeMarked(options)),
      ownChain('filter', CHAINS.forward, forwardRules(options)),
    ],
    tail: nodePortTail(options),
    foreign: options.view.nodePorts.loopback ? [martianRule()] : [],
  };
}

function forwardRules(options: CompileOptions): readonly Rule[] {
  const counter: readonly Match[] = options.nfacct.invalidDropped
    ? [{ kind: 'nfacct', name: NFACCT.invalidDropped }]
    : [];
  return [
    ...(options.dropInvalid ? [rule([state('INVALID'), ...counter], drop)] : []),
    acceptMarked(options.masqueradeMark),
    acceptEstablished,
  ];
}

function servicePort(port: ServicePortPlan, options: CompileOptions): Fragment {
  const hash = serviceHash(port);
  const names = endpointChainNames(port);
  return {
    chains: [
      ...endpointChains(port, names, options.endpointComments),
      ...poolChains(port, hash, names, options),
      ...externalChain(port, hash, options),
      ...firewallChain(port, hash),
    ],
    shared: [
      ...port.frontends.flatMap((frontend) => frontendRules(port, frontend, hash, options)),
      ...healthCheckRules(port, CHAINS.nodePorts),
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
      return { text: `${port.name} has no endpoints`, target: reject };
    case 'drop':
      return { text: `${port.name} has no local endpoints`, target: drop };
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
    return [shared('nat', CHAINS.services, rule(matches, jump(poolChainName(route, hash))))];
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
  const match = (text: string): readonly Match[] => dialled(text, port.protocol, address, number);
  const firewall = PREFIXES.firewall + hash;
  if (isOpen(frontend)) {
    const label = frontend.kind === 'externalIP' ? 'external IP' : 'loadbalancer IP';
    const target = frontend.allowedSources ? firewall : PREFIXES.external + hash;
    rules.push(shared('nat', CHAINS.services, rule(match(`${port.name} ${label}`), jump(target))));
    if (frontend.allowedSources) {
      const text = `${port.name} traffic not accepted by ${firewall}`;
      rules.push(shared('filter', CHAINS.proxyFirewall, rule(match(text), drop)));
    }
  }
  if (refusal)
    rules.push(shared('filter', CHAINS.externalServices, rule(match(refusal.text), refusal.target)));
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
  const toPort = destinationPort(frontend.port);
  if (isOpen(frontend)) {
    const target = jump(PREFIXES.external + hash);
    const name = [comment(port.name), protocol(port.protocol)];
    if (options.view.nodePorts.loopback && options.nfacct.localhostNodePorts) {
      const counter: Match = { kind: 'nfacct', name: NFACCT.localhostNodePorts };
      const matches = [...name, destination(loopbackRange('IPv4')), toPort, counter];
      rules.push(shared('nat', CHAINS.nodePorts, rule(matches, target)));
    }
    rules.push(shared('nat', CHAINS.nodePorts, rule([...name, toPort], target)));
  }
  if (refusal) {
    const matches = [comment(refusal.text), toLocal, protocol(port.protocol), toPort];
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
  const text = (what: string): Match => comment(`${what} for ${port.name} external destinations`);
  const rules: Rule[] = [];
  if (outside.verdict === 'forward' && outside.masquerade) {
    rules.push(rule([text('masquerade traffic')], toMasquerade));
  } else {
    const fromPod = podMatch(options.view.localDetector, 'pods');
    if (fromPod && pod.verdict === 'forward') {
      rules.push(rule([text('pod traffic'), fromPod], jump(poolChainName(pod, hash))));
    }
    if (node.verdict === 'forward') {
      rules.push(rule([text('masquerade LOCAL traffic'), fromLocal], toMasquerade));
      rules.push(rule([text('route LOCAL traffic'), fromLocal], jump(poolChainName(node, hash))));
    }
  }
  if (outside.verdict === 'forward') rules.push(rule([], jump(poolChainName(outside, hash))));
  return rules;
}

function firewallChain(port: ServicePortPlan, hash: ServiceHash): readonly OwnChain[] {
  const allowed = port.frontends.find(
    (frontend) => frontend.allowedSources && isOpen(frontend),
  )?.allowedSources;
  if (!allowed) return [];
  const label = comment(`${port.name} loadbalancer IP`);
  const target = jump(PREFIXES.external + hash);
  return [
    ownChain('nat', PREFIXES.firewall + hash, [
      ...allowRules(allowed, label, target),
      rule([comment(`other traffic to ${port.name} will be dropped by ${CHAINS.proxyFirewall}`)]),
    ]),
  ];
}

function poolChains(
  port: ServicePortPlan,
  hash: ServiceHash,
  names: EndpointChains,
  options: CompileOptions,
): readonly OwnChain[] {
  const style = balanceStyle(port, options);
  const chains: OwnChain[] = [];
  for (const name of ['cluster', 'local'] as const) {
    const pool = port.pools[name];
    if (!pool) continue;
    chains.push(
      ownChain('nat', poolPrefix(name) + hash, [
        ...clusterIPMasquerade(port, name, options),
        ...balancingRules(port, pool, names, style),
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
  const sources = masqueradedSources(port.internal, options);
  if (!sources) return [];
  const matches = dialled(`${port.name} cluster IP`, port.protocol, frontend.address, frontend.port);
  return [rule([...matches, ...sources], toMasquerade)];
}

function balanceStyle(port: ServicePortPlan, options: CompileOptions): BalanceStyle {
  const label = (endpoint: { readonly key: string }): readonly Match[] =>
    options.endpointComments ? [comment(`${port.name} -> ${endpoint.key}`)] : [];
  return { decimals: 10, affinityComment: label, choiceComment: label };
}

function poolChainName(route: { readonly pool: PoolName }, hash: ServiceHash): string {
  return poolPrefix(route.pool) + hash;
}

/**
 * The iptables part of the IPVS mode: a few chains that match sets. They masquerade, and keep out what may not come in;
 * where a packet goes is IPVS's business. `docs/ipvs.md` draws them.
 *
 * The rules are kube-proxy's, with three differences. kube-proxy leaves out a rule while its set is empty; here all are
 * always there, so that a Service with the first or last entry of a set changes the set and no rule. KUBE-NO-LOCAL and
 * KUBE-NO-LOCAL-OUTSIDE are added. An external IP is accepted by one rule: addresses of these sets are always local, so
 * kube-proxy's second rule never decides anything, and its match physdev loads br_netfilter.
 */
import { type Family, LOOPBACK_RANGE } from '../../../model/ip.ts';
import { PROTOCOLS } from '../../../model/objects.ts';
import type { Frontend, ServicePortPlan } from '../../../plan/types.ts';
import {
  acceptEstablished,
  acceptMarked,
  forwardJump,
  jumpTo,
  markMasquerade,
  masqueradeMarked,
  match,
  natJumps,
  ownChain,
  podMatch,
  rule,
  shared,
  target,
} from '../../iptables/rules/layouts/common.ts';
import type { BaseFragment, CompileOptions, Fragment, Layout } from '../../iptables/rules/fragment.ts';
import { CHAINS, IPVS_CHAINS, ruleProtocol } from '../../iptables/rules/names.ts';
import type { Match, Rule, Target } from '../../iptables/rules/rule.ts';
import { NODE_PORT_SETS } from './compile.ts';
import { type SetId, IPSETS, setName } from './sets.ts';

/** What the rules depend on besides the plan and the sets. */
export type IpvsRuleOptions = Omit<CompileOptions, 'family' | 'view' | 'endpointComments'>;

export function ruleOptions(masqueradeBit: number, randomFully: boolean): IpvsRuleOptions {
  return {
    nodePortIps: 'all',
    masqueradeMark: (1 << masqueradeBit) >>> 0,
    randomFully,
    dropInvalid: false,
    nfacct: { invalidDropped: false, localhostNodePorts: false },
  };
}

const FIREWALL = 'kube-proxy firewall rules';
const ACCESS = 'kubernetes ipvs access filter';

export const ipvsLayout: Layout = {
  jumps: [
    ...natJumps,
    forwardJump,
    jumpTo('filter', 'INPUT', IPVS_CHAINS.nodePort, match.comment('kubernetes health check rules')),
    jumpTo('filter', 'INPUT', CHAINS.proxyFirewall, match.comment(FIREWALL)),
    jumpTo('filter', 'FORWARD', CHAINS.proxyFirewall, match.comment(FIREWALL)),
    jumpTo('filter', 'INPUT', IPVS_CHAINS.ipvsFilter, match.comment(ACCESS)),
    jumpTo('filter', 'OUTPUT', IPVS_CHAINS.ipvsOutFilter, match.comment(ACCESS)),
  ],
  sharedChains: [{ table: 'filter', chain: IPVS_CHAINS.ipvsOutFilter }],
  foreignChains: [],
  base,
  servicePort,
};

function base(options: CompileOptions): BaseFragment {
  const sets = new Sets(options.family);
  return {
    chains: [
      ownChain('nat', CHAINS.services, servicesRules(options, sets)),
      ownChain('nat', CHAINS.postrouting, [
        sets.commented('KUBE-LOOP-BACK', DIALLED_FROM, { kind: 'masquerade', randomFully: false }),
        ...masqueradeMarked(options),
      ]),
      ownChain('nat', IPVS_CHAINS.nodePort, nodePortRules(sets)),
      ownChain('nat', IPVS_CHAINS.loadBalancer, [
        sets.commented('KUBE-LOAD-BALANCER-LOCAL', DIALLED, target.masquerade, match.fromLocal),
        sets.commented('KUBE-LOAD-BALANCER-LOCAL', DIALLED, target.return),
        rule([], target.masquerade),
      ]),
      markMasquerade(options.masqueradeMark),
      ownChain('filter', CHAINS.forward, [acceptMarked(options.masqueradeMark), acceptEstablished]),
      ownChain('filter', IPVS_CHAINS.nodePort, [
        sets.commented('KUBE-HEALTH-CHECK-NODE-PORT', ['dst'], target.accept),
      ]),
      ownChain('filter', CHAINS.proxyFirewall, [
        ...noLocalRules(options, sets),
        sets.commented('KUBE-LOAD-BALANCER-FW', DIALLED, target.jump(IPVS_CHAINS.sourceRanges)),
      ]),
      ownChain('filter', IPVS_CHAINS.sourceRanges, [
        sets.commented('KUBE-LOAD-BALANCER-SOURCE-CIDR', DIALLED_FROM, target.return),
        sets.commented('KUBE-LOAD-BALANCER-SOURCE-IP', DIALLED_FROM, target.return),
        rule([], target.drop),
      ]),
      ownChain('filter', IPVS_CHAINS.ipvsFilter, accessRules(sets)),
    ],
    tail: [],
    foreign: [],
  };
}

type Side = 'src' | 'dst';
const DIALLED: readonly Side[] = ['dst', 'dst'];
const DIALLED_FROM: readonly Side[] = ['dst', 'dst', 'src'];

/** Rules that match one of the sets. */
class Sets {
  readonly #family: Family;

  constructor(family: Family) {
    this.#family = family;
  }

  match(id: SetId, sides: readonly Side[]): Match {
    return { kind: 'set', name: setName(id, this.#family), sides };
  }

  plain(id: SetId, sides: readonly Side[], to: Target): Rule {
    return rule([this.match(id, sides)], to);
  }

  commented(id: SetId, sides: readonly Side[], to: Target, ...more: readonly Match[]): Rule {
    return rule([match.comment(IPSETS[id].comment), this.match(id, sides), ...more], to);
  }
}

function servicesRules(options: CompileOptions, sets: Sets): readonly Rule[] {
  return [
    rule([match.source(LOOPBACK_RANGE[options.family])], target.return),
    sets.commented('KUBE-LOAD-BALANCER', DIALLED, target.jump(IPVS_CHAINS.loadBalancer)),
    clusterIPRule(options, sets),
    sets.commented('KUBE-EXTERNAL-IP', DIALLED, target.masquerade),
    sets.commented('KUBE-EXTERNAL-IP', DIALLED, target.accept, match.toLocal),
    // What the node dials itself has the dialled address as its source, at which nobody else could answer it.
    sets.commented('KUBE-EXTERNAL-IP-LOCAL', DIALLED, target.masquerade, match.fromLocal),
    sets.commented('KUBE-EXTERNAL-IP-LOCAL', DIALLED, target.accept, match.toLocal),
    rule([match.toLocal], target.jump(IPVS_CHAINS.nodePort)),
    sets.plain('KUBE-CLUSTER-IP', DIALLED, target.accept),
    sets.plain('KUBE-LOAD-BALANCER', DIALLED, target.accept),
  ];
}

function clusterIPRule({ view }: CompileOptions, sets: Sets): Rule {
  if (view.masqueradeAll) return sets.commented('KUBE-CLUSTER-IP', DIALLED, target.masquerade);
  const others = podMatch(view.localDetector, 'others');
  if (others) return sets.commented('KUBE-CLUSTER-IP', DIALLED, target.masquerade, others);
  // Pods cannot be told apart; but what comes from a service address is the node's own.
  return sets.commented('KUBE-CLUSTER-IP', ['src', 'dst'], target.masquerade);
}

function nodePortRules(sets: Sets): readonly Rule[] {
  return PROTOCOLS.flatMap((protocol) => {
    const [all, local] = NODE_PORT_SETS[protocol];
    const sides = protocol === 'SCTP' ? DIALLED : (['dst'] as const);
    const is: Match = { kind: 'protocol', protocol: ruleProtocol(protocol), bare: true };
    const first = ({ matches, target: to }: Rule): Rule => rule([is, ...matches], to);
    return [
      first(sets.commented(local, sides, target.return)),
      first(sets.commented(all, sides, target.masquerade)),
    ];
  });
}

/** IPVS would send these to endpoints elsewhere, or answer with a refusal; the policy says silence. */
function noLocalRules({ view }: CompileOptions, sets: Sets): readonly Rule[] {
  const others = [podMatch(view.localDetector, 'others')].flatMap((one) => one ?? []);
  return [
    sets.commented('KUBE-NO-LOCAL', DIALLED, target.drop),
    sets.commented('KUBE-NO-LOCAL-OUTSIDE', DIALLED, target.drop, ...others, match.notFromLocal),
  ];
}

/** What listens on all of the node's addresses would otherwise be reached by service addresses too. */
function accessRules(sets: Sets): readonly Rule[] {
  const known = [
    'KUBE-LOAD-BALANCER',
    'KUBE-CLUSTER-IP',
    'KUBE-EXTERNAL-IP',
    'KUBE-EXTERNAL-IP-LOCAL',
  ] as const;
  return [
    ...known.map((id) => sets.plain(id, DIALLED, target.return)),
    sets.plain('KUBE-HEALTH-CHECK-NODE-PORT', ['dst'], target.return),
    rule([match.state('NEW'), sets.match('KUBE-IPVS-IPS', ['dst'])], target.reject),
  ];
}

/** The node itself is no allowed source: what it dials has the load balancer's address as its source. */
function servicePort(port: ServicePortPlan): Fragment {
  const isClosed = ({ kind, allowedSources }: Frontend): boolean =>
    kind === 'loadBalancerIP' && allowedSources !== undefined && allowedSources.hosts.length === 0;
  return {
    chains: [],
    shared: port.frontends.filter(isClosed).flatMap(({ address, port: number }) => {
      if (address === undefined) return [];
      const dialled: Match = {
        kind: 'virtualServer',
        protocol: ruleProtocol(port.protocol),
        address,
        port: number,
      };
      return [
        shared('filter', IPVS_CHAINS.ipvsOutFilter, rule([match.source(address), dialled], target.drop)),
      ];
    }),
  };
}

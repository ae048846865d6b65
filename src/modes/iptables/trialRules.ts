/** The rules that a layout writes for the sample services, and the matches and targets that they consist of. */
import type { Family } from '../../model/ip.ts';
import { kernelPiece } from '../prerequisites/pieces.ts';
import { samplePlan } from '../prerequisites/sample.ts';
import { rule } from './rules/layouts/common.ts';
import { compileAll, type CompileOptions, type Layout } from './rules/fragment.ts';
import { printRule } from './rules/print.ts';
import type { Match, Rule, Table, Target } from './rules/rule.ts';
import { TRIAL_CHAIN } from './ruleTrial.ts';

/**
 * Matches (`-m recent`) and targets (`-j DNAT`) by their kind in our rules, and the kernel module that brings each. What
 * every kernel and every program has is not listed.
 */
export const EXTENSIONS = {
  comment: kernelPiece('match comment', 'xt_comment'),
  addressType: kernelPiece('match addrtype', 'xt_addrtype'),
  conntrackState: kernelPiece('match conntrack', 'xt_conntrack'),
  mark: kernelPiece('match mark', 'xt_mark'),
  'to mark': kernelPiece('target MARK', 'xt_mark'),
  /** xt_MASQUERADE since kernel 5.2; before, one for each family, for which kernels since then have an alias. */
  'to masquerade': kernelPiece('target MASQUERADE', 'ipt_MASQUERADE'),
  'to reject': kernelPiece('target REJECT', 'ipt_REJECT'),
  statistic: kernelPiece('match statistic', 'xt_statistic'),
  recent: kernelPiece('match recent', 'xt_recent', 'for Services with sessionAffinity: ClientIP'),
  tcp: kernelPiece('match tcp', 'xt_tcpudp'),
  udp: kernelPiece('match udp', 'xt_tcpudp'),
  sctp: kernelPiece('match sctp', 'xt_sctp', 'for Services of protocol SCTP'),
  'to dnat': kernelPiece('target DNAT', 'xt_nat'),
  set: kernelPiece('match set', 'xt_set'),
  physdevIsIn: kernelPiece('match physdev', 'xt_physdev', 'for Services with external IPs'),
  virtualServer: kernelPiece(
    'match ipvs',
    'xt_ipvs',
    'for load balancers with source ranges that leave the node out',
  ),
  /** Once the kernel has counters, rules count into them: then the match must be there too. */
  nfacct: kernelPiece('match nfacct', 'xt_nfacct'),
} as const;

export type ExtensionKey = keyof typeof EXTENSIONS;

export const TRIAL_COUNTER = 'junction_trial';
export const TRIAL_SETS: Readonly<Record<Family, string>> = {
  IPv4: TRIAL_CHAIN,
  IPv6: 'KUBE-6-JUNCTION-TRIAL',
};
const MARK = 0x4000;
const ACCEPT: Target = { kind: 'accept' };

interface SampleOptions extends Pick<CompileOptions, 'family' | 'randomFully'> {
  readonly layout: Layout;
  readonly localhostNodePorts: boolean;
  readonly filledSets: readonly string[];
  /** What the kernel has no counter or set for, or what must not be tried, is left out of the rules. */
  readonly omitted: ReadonlySet<Match['kind']>;
}

export type TrialRules = Readonly<Record<'nat' | 'filter', readonly Rule[]>>;

/** Each once. No rule jumps, and none names a chain, set or counter but those of the trial. */
export function sampleRules(options: SampleOptions): TrialRules {
  const { layout, family, omitted } = options;
  const plan = samplePlan(family, options.localhostNodePorts);
  const hasCounters = !omitted.has('nfacct');
  const compile: CompileOptions = {
    ...options,
    view: plan.view,
    nodePortIps: 'all',
    masqueradeMark: MARK,
    dropInvalid: true,
    nfacct: { invalidDropped: hasCounters, localhostNodePorts: hasCounters },
    endpointComments: true,
  };
  const base = layout.base(compile);
  const fragments = [...compileAll(layout, plan.servicePorts, compile)].map(([, fragment]) => fragment);
  const chains = [...base.chains, ...fragments.flatMap((fragment) => fragment.chains)];
  const single = [
    ...layout.jumps,
    ...base.tail,
    ...base.foreign,
    ...fragments.flatMap(({ shared }) => shared),
  ];
  const rulesOf = (wanted: Table): readonly Rule[] => {
    const all = [
      ...chains.flatMap(({ table, rules }) => (table === wanted ? rules : [])),
      ...single.flatMap(({ table, rule: one }) => (table === wanted ? [one] : [])),
    ].map((each) => forTrial(each, family, omitted));
    return [...new Map(all.map((each) => [printRule(each), each])).values()];
  };
  return { nat: rulesOf('nat'), filter: rulesOf('filter') };
}

function forTrial({ matches, target }: Rule, family: Family, omitted: ReadonlySet<Match['kind']>): Rule {
  const kept = matches
    .filter(({ kind }) => !omitted.has(kind))
    .map((match): Match => {
      if (match.kind === 'recentSet' || match.kind === 'recentCheck') return { ...match, name: TRIAL_CHAIN };
      if (match.kind === 'nfacct') return { ...match, name: TRIAL_COUNTER };
      return match.kind === 'set' ? { ...match, name: TRIAL_SETS[family] } : match;
    });
  return rule(kept, target?.kind === 'jump' ? ACCEPT : target);
}

export const EXTENSION_KEYS = Object.keys(EXTENSIONS) as readonly ExtensionKey[];

/** The matches and targets of these rules, in the order of the table; each with the first rule that has it, cut down to it. */
export function partsOf(rules: Iterable<Rule>): ReadonlyMap<ExtensionKey, Rule> {
  const parts = new Map<string, Rule>();
  for (const each of rules) {
    for (const [key, part] of cutsOf(each)) if (!parts.has(key)) parts.set(key, part);
  }
  return new Map(
    EXTENSION_KEYS.flatMap((key) => {
      const part = parts.get(key);
      return part ? [[key, part]] : [];
    }),
  );
}

/** What a part cannot be without stays with it. */
function* cutsOf({ matches, target }: Rule): Generator<readonly [key: string, part: Rule]> {
  const bare: Match[] = [];
  for (const match of matches) {
    if (match.kind !== 'protocol') yield [match.kind.replace(/^recent.*/, 'recent'), rule([match], ACCEPT)];
    else {
      const ports = matches.filter(({ kind }) => kind === 'destinationPort');
      if (!match.bare) yield [match.protocol, rule([match, ...ports], ACCEPT)];
      bare.push({ ...match, bare: true });
    }
  }
  if (target) yield [`to ${target.kind}`, rule(target.kind === 'dnat' ? bare : [], target)];
}

/**
 * What a layout makes of a part of the plan: whole chains that belong to that part alone, and rules of its own in
 * chains that it shares with others.
 */
import type { Family, Ip } from '../../../model/ip.ts';
import { answersNodePorts } from '../../../plan/decide.ts';
import type { NodePortAddresses, NodeView, Plan, ServicePortPlan } from '../../../plan/types.ts';
import { CHAINS } from './names.ts';
import type { Rule, Table } from './rule.ts';
import type { ServicePortId } from '../../../model/serviceTracker.ts';

export interface Fragment {
  /** In the order in which they may be written: a chain jumps only to chains before it. */
  readonly chains: readonly OwnChain[];
  readonly shared: readonly SharedRule[];
}

export interface OwnChain {
  readonly table: Table;
  readonly name: string;
  readonly rules: readonly Rule[];
}

export interface ChainRef {
  readonly table: Table;
  readonly chain: string;
}

/** A rule in a chain that others have rules in too. */
export interface SharedRule extends ChainRef {
  readonly rule: Rule;
}

/** The shared chain whose last rule must stay the last. */
export const TAIL_CHAIN: ChainRef = { table: 'nat', chain: CHAINS.services };

export function isSameChain(a: ChainRef, b: ChainRef): boolean {
  return a.table === b.table && a.chain === b.chain;
}

/** Everything besides the plan that the rules depend on. */
export interface CompileOptions {
  readonly family: Family;
  readonly view: NodeView;
  /** The addresses on which node ports answer, where they are restricted. */
  readonly nodePortIps: 'all' | readonly Ip[];
  readonly masqueradeMark: number;
  /** `MASQUERADE --random-fully` is understood. */
  readonly randomFully: boolean;
  /** Drop packets that conntrack calls invalid. */
  readonly dropInvalid: boolean;
  /** Kernel counters that exist and can be counted on. */
  readonly nfacct: { readonly invalidDropped: boolean; readonly localhostNodePorts: boolean };
  /** Name endpoints in comments; large clusters do without. */
  readonly endpointComments: boolean;
}

/** What of them does not depend on the plan. */
export type StaticOptions = Omit<CompileOptions, 'endpointComments' | 'view' | 'family'>;

/** Above this many endpoints, comments on each of them cost more than they tell. */
const LARGE_CLUSTER = 1000;

export function compileOptionsOf(plan: Plan, settings: StaticOptions): CompileOptions {
  const { family, view, endpointCount } = plan;
  return { ...settings, family, view, endpointComments: endpointCount <= LARGE_CLUSTER };
}

/** `addresses`: the node's, in this family. */
export function nodePortIpsOf(
  nodePorts: NodePortAddresses,
  addresses: () => readonly Ip[],
): 'all' | readonly Ip[] {
  if (nodePorts.ranges === 'all') return 'all';
  return addresses()
    .filter((ip) => answersNodePorts(nodePorts, ip))
    .sort();
}

/** The ways to arrange services in chains. The IPVS mode has one of its own. */
export type LayoutName = 'current' | 'classic';

/** A way to arrange the plan in chains. */
export interface Layout {
  /** Inserted at the head of the kernel's chains, in this order, so that the last one ends up first. */
  readonly jumps: readonly SharedRule[];
  /** Chains in which many services have rules. */
  readonly sharedChains: readonly ChainRef[];
  /** Chains that others use too: our rules are added, nothing else is touched. */
  readonly foreignChains: readonly ChainRef[];
  /** What is there without any service. */
  base(options: CompileOptions): BaseFragment;
  servicePort(port: ServicePortPlan, options: CompileOptions): Fragment;
}

export interface BaseFragment {
  readonly chains: readonly OwnChain[];
  /** Rules that must stay the last of their shared chain. */
  readonly tail: readonly SharedRule[];
  /** Rules in foreign chains. */
  readonly foreign: readonly SharedRule[];
}

export const EMPTY_FRAGMENT: Fragment = { chains: [], shared: [] };

/** How many rules are ours, by table. Kept by adding and subtracting, so that no sync has to count them all. */
export type RuleCounts = Record<Table, number>;

/** One by one; `counts` gets what they have. */
export function* compileAll(
  layout: Layout,
  servicePorts: Plan['servicePorts'],
  options: CompileOptions,
  counts?: RuleCounts,
): Generator<readonly [ServicePortId, Fragment]> {
  for (const [id, port] of servicePorts) {
    const fragment = layout.servicePort(port, options);
    if (counts) addFragment(counts, fragment, 1);
    yield [id, fragment];
  }
}

export function addFragment(counts: RuleCounts, { chains, shared }: Fragment, by: 1 | -1): void {
  for (const { table, rules } of chains) counts[table] += by * rules.length;
  for (const { table } of shared) counts[table] += by;
}

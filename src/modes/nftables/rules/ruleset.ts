/**
 * The whole table but for its elements. It does not grow with the cluster: what changes it is a pool size, or a time-out
 * of affinity, that no service had before, and the node's settings. `docs/nftables.md` draws it.
 */
import { type Cidr, type Family, type Ip, LOOPBACK_RANGE } from '../../../model/ip.ts';
import { answersNodePorts } from '../../../plan/decide.ts';
import type { NodeView } from '../../../plan/types.ts';
import { affinityChains, affinitySets, type AffinityTimeout } from './affinity.ts';
import { withoutCovered } from './compile.ts';
import {
  largeChain,
  largeMap,
  LARGEST_DIRECT_POOL,
  NFT_CHAINS,
  NFT_SETS,
  poolChain,
  poolMap,
  SCOPE_LIST,
  SCOPES,
} from './names.ts';
import type { Scope, View } from './names.ts';
import { inSet, nftRule, toChain } from './table.ts';
import type {
  ChainSpec,
  Element,
  FieldType,
  HookSpec,
  Key,
  Ruleset,
  RuleSpec,
  Statement,
  TableSet,
} from './table.ts';

/** What of the cluster shapes the table. */
export interface TableShape {
  /** Sizes of pools that exist, in order, by the chain that tries them. */
  readonly sizes: Readonly<Record<Scope, Readonly<Record<View, readonly number[]>>>>;
  /** In order. */
  readonly affinity: readonly AffinityTimeout[];
  readonly hasServiceCidrs: boolean;
}

/** What a table depends on besides the plan: the node's settings and addresses. */
export interface NftSettings {
  readonly masqueradeMark: number;
  readonly counters: boolean;
  /** Where node ports answer, in a fixed order; affinity is kept for each of them. */
  readonly nodePortIps: readonly Ip[];
  /** Where cluster IPs come from, where that is known. */
  readonly serviceCidrs: readonly Cidr[];
  /** All addresses of this node: what an affinity entry means depends on them. */
  readonly nodeIps?: readonly Ip[];
}

/** What the rules depend on besides the plan, as a running proxy, a command or a dump knows it. */
export interface NftFacts {
  readonly masqueradeBit: number;
  readonly counters: boolean;
  /** The node's own addresses in this family, without loopback. */
  readonly nodeIps: readonly Ip[];
  /** Where cluster IPs come from, as far as that is known. */
  readonly serviceCidrs: readonly Cidr[];
}

export function nftSettings(facts: NftFacts, { nodePorts }: NodeView): NftSettings {
  const { masqueradeBit, counters, serviceCidrs } = facts;
  const nodeIps = [...facts.nodeIps].sort();
  return {
    nodeIps,
    masqueradeMark: (1 << masqueradeBit) >>> 0,
    counters,
    nodePortIps: nodeIps.filter((ip) => answersNodePorts(nodePorts, ip)),
    serviceCidrs,
  };
}

/** Whether changes suffice: a mark or counters are part of every service port's rules. */
export function isSameForAll(before: NftSettings, now: NftSettings): boolean {
  return before.masqueradeMark === now.masqueradeMark && before.counters === now.counters;
}

export interface TableOptions extends NftSettings {
  readonly family: Family;
  readonly view: NodeView;
}

export type RulesetOptions = Pick<TableOptions, 'family' | 'view' | 'masqueradeMark' | 'counters'>;

/** Where our chains stand among those of others. The backstop's see what ours did nothing with, before it is refused. */
export const PRIORITIES = {
  destination: -100,
  backstopDestination: -90,
  unserved: -80,
  source: 100,
  backstopSource: 110,
} as const;

export const FRONTEND: Readonly<Record<Scope, Key>> = {
  address: ['destination', 'protocol', 'port'],
  nodePort: ['protocol', 'port'],
};
export const FRONTEND_FIELDS: Readonly<Record<Scope, readonly FieldType[]>> = {
  address: ['address', 'protocol', 'port'],
  nodePort: ['protocol', 'port'],
};
/** An endpoint that dialled itself, as kube-proxy has it: at the port at which it was dialled. */
const HAIRPIN: Key = ['source', 'protocol', 'destination', 'port'];
export const HAIRPIN_SET: TableSet = {
  name: NFT_SETS.hairpin,
  key: ['address', 'protocol', 'address', 'port'],
  comment: 'endpoints of this node, as source and destination',
};
const VIEWS: readonly View[] = ['any', 'outside'];

/** What it has in common with the one before is taken from there, so that telling them apart takes little time. */
export function rulesetOf(shape: TableShape, options: RulesetOptions, before?: Ruleset): Ruleset {
  return { sets: setsOf(shape, options), chains: chainsOf(shape, options, before) };
}

function setsOf(shape: TableShape, { view, counters }: RulesetOptions): readonly TableSet[] {
  return [
    { name: NFT_SETS.serviceIPs, key: ['address'], comment: 'addresses of services' },
    { name: NFT_SETS.clusterIPs, key: ['address'], comment: 'cluster IPs' },
    ...nodePortSets(view),
    ...(shape.hasServiceCidrs ? [SERVICE_CIDR_SET] : []),
    HAIRPIN_SET,
    {
      name: NFT_SETS.allowed,
      key: [...FRONTEND_FIELDS.address, 'address'],
      ranges: true,
      comment: 'frontend and source range',
    },
    ...SCOPE_LIST.flatMap((scope) => scopeSets(scope, shape, counters)),
    ...affinitySets(shape.affinity, counters),
  ];
}

const SERVICE_CIDR_SET: TableSet = {
  name: NFT_SETS.serviceCidrs,
  key: ['address'],
  ranges: true,
  comment: 'service CIDRs',
};

/** Where node ports answer, if that is not at all addresses. */
export function nodePortSets({ nodePorts }: NodeView): readonly TableSet[] {
  if (nodePorts.ranges === 'all') return [];
  return [{ name: NFT_SETS.nodePortIPs, key: ['address'], comment: 'addresses for node ports' }];
}

function scopeSets(scope: Scope, { sizes }: TableShape, counters: boolean): readonly TableSet[] {
  const key = FRONTEND_FIELDS[scope];
  const names = SCOPES[scope];
  const ofAddresses = {
    [names.restricted]: 'only from allowed sources',
    [names.masqueradeOthers]: 'masquerade sources outside the pod network',
  };
  const comments = {
    ...(scope === 'address' && ofAddresses),
    [names.masqueradeAlways]: 'masquerade all sources',
    [names.masqueradeNode]: 'masquerade traffic of this node',
    [names.remembering]: 'frontends with session affinity',
    [names.refused]: 'no endpoints',
    [names.dropped]: 'no local endpoints',
    [names.droppedOutside]: 'no local endpoints for clients outside',
  };
  return [
    ...Object.entries(comments).map(([name, comment]): TableSet => ({ name, key, comment })),
    ...VIEWS.flatMap((view): TableSet[] => [
      ...sizes[scope][view].map(
        (size): TableSet => ({
          name: poolMap(scope, view, size),
          key: size === 1 ? key : [...key, { drawnOf: size }],
          data: 'endpoint',
          ...(counters && { counts: true }),
        }),
      ),
      ...(sizes[scope][view].some(isLarge)
        ? [{ name: largeMap(scope, view), key, data: 'verdict' } as const]
        : []),
    ]),
  ];
}

function isLarge(size: number): boolean {
  return size > LARGEST_DIRECT_POOL;
}

function chainsOf(shape: TableShape, options: RulesetOptions, before?: Ruleset): readonly ChainSpec[] {
  const services = [nftRule(toChain(NFT_CHAINS.services))];
  return [
    ...SCOPE_LIST.flatMap((scope) => VIEWS.flatMap((view) => poolChains(scope, view, shape))),
    ...affinityChains(shape.affinity, options, before),
    {
      name: NFT_CHAINS.serviceAddresses,
      rules: [
        nftRule(
          inSet(FRONTEND.address, SCOPES.address.restricted),
          inSet([...FRONTEND.address, 'source'], NFT_SETS.allowed, true),
          { kind: 'drop' },
        ),
        ...scopeRules('address', shape, options),
      ],
    },
    { name: NFT_CHAINS.nodePorts, rules: scopeRules('nodePort', shape, options) },
    {
      name: NFT_CHAINS.services,
      rules: [
        nftRule(inSet(['destination'], NFT_SETS.serviceIPs), toChain(NFT_CHAINS.serviceAddresses)),
        nftRule(...toNodePorts(options), toChain(NFT_CHAINS.nodePorts)),
      ],
    },
    { name: NFT_CHAINS.unserved, rules: unservedRules(shape) },
    hooked(NFT_CHAINS.prerouting, PRIORITIES.destination, services),
    hooked(NFT_CHAINS.output, PRIORITIES.destination, services),
    unservedAt('prerouting'),
    unservedAt('output'),
    hooked(NFT_CHAINS.input, PRIORITIES.source, [LEARNING]),
    hooked(NFT_CHAINS.postrouting, PRIORITIES.source, [LEARNING, ...masqueradeRules(options)]),
  ];
}

export function hooked(point: HookSpec['point'], priority: number, rules: readonly RuleSpec[]): ChainSpec {
  return { name: point, hook: { point, priority }, rules };
}

/**
 * Apart, and later: while another program has deleted elements or rules, a packet that they would have sent on comes to the
 * backstop before this could refuse it.
 */
function unservedAt(point: 'prerouting' | 'output'): ChainSpec {
  const { unserved } = NFT_CHAINS;
  return {
    ...hooked(point, PRIORITIES.unserved, [nftRule(toChain(unserved))]),
    name: `${unserved}-${point}`,
  };
}

/** Every size in turn, and one lookup for all that are larger. */
function poolChains(scope: Scope, view: View, { sizes }: TableShape): readonly ChainSpec[] {
  const all = sizes[scope][view];
  const key = FRONTEND[scope];
  const dnat = (size: number): RuleSpec =>
    nftRule({
      kind: 'dnatByMap',
      key: size === 1 ? key : [...key, { drawnOf: size }],
      map: poolMap(scope, view, size),
    });
  const large = all.filter(isLarge);
  return [
    ...large.map((size) => ({ name: largeChain(scope, view, size), rules: [dnat(size)] })),
    {
      name: poolChain(scope, view),
      isUnordered: true,
      rules: [
        ...all.filter((size) => !isLarge(size)).map(dnat),
        ...(large.length > 0 ? [nftRule({ kind: 'verdictByMap', key, map: largeMap(scope, view) })] : []),
      ],
    },
  ];
}

/**
 * Ports of a cluster IP that its service does not have, and cluster IPs that no service has. Should one of them be an address
 * of the node too, everything else on the node still answers there.
 */
function unservedRules({ hasServiceCidrs }: TableShape): readonly RuleSpec[] {
  const elsewhere: Statement = { kind: 'addressType', side: 'destination', not: true };
  const rules = [nftRule(inSet(['destination'], NFT_SETS.clusterIPs), elsewhere, { kind: 'reject' })];
  if (hasServiceCidrs)
    rules.push(nftRule(inSet(['destination'], NFT_SETS.serviceCidrs), elsewhere, { kind: 'drop' }));
  return rules;
}

/** Whether node ports answer at the destination. */
export function toNodePorts({ view, family }: RulesetOptions): readonly Statement[] {
  if (view.nodePorts.ranges !== 'all') return [inSet(['destination'], NFT_SETS.nodePortIPs)];
  return [
    { kind: 'addressType', side: 'destination', not: false },
    { kind: 'addressIn', side: 'destination', cidr: LOOPBACK_RANGE[family], not: true },
  ];
}

function scopeRules(
  scope: Scope,
  { affinity }: TableShape,
  { view, masqueradeMark }: RulesetOptions,
): readonly RuleSpec[] {
  const names = SCOPES[scope];
  const key = FRONTEND[scope];
  const mark: Statement = { kind: 'changeMark', operation: 'set', mark: masqueradeMark };
  const others = notPod(view);
  const fromNode: Statement = { kind: 'addressType', side: 'source', not: false };
  const outside: readonly Statement[] = [...others, { ...fromNode, not: true }];
  return [
    nftRule(inSet(key, names.masqueradeAlways), mark),
    ...(scope === 'address' ? [nftRule(...others, inSet(key, names.masqueradeOthers), mark)] : []),
    nftRule(...others, fromNode, inSet(key, names.masqueradeNode), mark),
    // Not for everybody: an address may be a service's and this node's, and have clients of a node port too.
    ...(affinity.length > 0 ? [nftRule(inSet(key, names.remembering), toChain(NFT_CHAINS.remembered))] : []),
    nftRule(...outside, inSet(key, names.droppedOutside), { kind: 'drop' }),
    nftRule(...outside, toChain(poolChain(scope, 'outside'))),
    nftRule(toChain(poolChain(scope, 'any'))),
    nftRule(inSet(key, names.refused), { kind: 'reject' }),
    nftRule(inSet(key, names.dropped), { kind: 'drop' }),
  ];
}

/** Sources outside the pod network. Nothing where that cannot be detected: then all are. */
function notPod({ localDetector }: NodeView): readonly Statement[] {
  switch (localDetector.kind) {
    case 'none':
      return [];
    case 'cidr':
      return [{ kind: 'addressIn', side: 'source', cidr: localDetector.cidr, not: true }];
    case 'interface':
      return [{ kind: 'inInterface', name: localDetector.name, not: true }];
    case 'interfacePrefix':
      return [{ kind: 'inInterface', name: `${localDetector.prefix}*`, not: true }];
  }
}

/**
 * A packet that came by before the chains were hooked in, and goes out after that, was not sent anywhere: its client
 * would be sent to the service's own address from then on.
 */
const LEARNING = nftRule({ kind: 'isRewritten' }, toChain(NFT_CHAINS.remember));

export function masqueradeRules({ masqueradeMark: mark }: RulesetOptions): readonly RuleSpec[] {
  return [
    nftRule({ kind: 'isRewritten' }, inSet(HAIRPIN, NFT_SETS.hairpin), { kind: 'masquerade' }),
    nftRule({ kind: 'hasMark', mark, not: true }, { kind: 'return' }),
    // Cleared, so that a packet that passes again inside a tunnel is not masqueraded twice.
    nftRule({ kind: 'changeMark', operation: 'flip', mark }),
    nftRule({ kind: 'masquerade' }),
  ];
}

/** What comes from the node and its settings, and not from services. */
export function fixedElements({ view, nodePortIps, serviceCidrs }: TableOptions): readonly Element[] {
  return [
    ...(view.nodePorts.ranges === 'all'
      ? []
      : nodePortIps.map((address) => ({ set: NFT_SETS.nodePortIPs, key: { address } }))),
    ...withoutCovered(serviceCidrs).map((range) => ({ set: NFT_SETS.serviceCidrs, key: { range } })),
  ];
}

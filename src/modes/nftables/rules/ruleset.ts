/**
 * The whole table but for its elements. It does not grow with the cluster: what changes it is a pool size, or a time-out
 * of affinity, that no service had before, and the node's settings. `docs/nftables.md` draws it.
 */
import { type Cidr, type Family, type Ip, parseCidr } from '../../../model/ip.ts';
import type { NodeView } from '../../../plan/types.ts';
import { affinityChains, affinitySets, type AffinityTimeout } from './affinity.ts';
import {
  CHAINS,
  largeChain,
  largeMap,
  LARGEST_DIRECT_POOL,
  poolChain,
  poolMap,
  type Scope,
  SCOPE_LIST,
  SCOPES,
  SETS,
  type View,
} from './names.ts';
import {
  type Chain,
  type Element,
  type FieldType,
  type Hook,
  inSet,
  jump,
  type Key,
  rule,
  type Rule,
  type Ruleset,
  type Statement,
  type TableSet,
} from './rule.ts';
import { withoutCovered } from './compile.ts';

/** What of the cluster shapes the table. */
export interface Shape {
  /** Sizes of pools that exist, in order, by the chain that tries them. */
  readonly sizes: Readonly<Record<Scope, Readonly<Record<View, readonly number[]>>>>;
  /** In order. */
  readonly affinity: readonly AffinityTimeout[];
  readonly hasServiceCidrs: boolean;
}

export interface RulesetOptions {
  readonly family: Family;
  readonly view: NodeView;
  readonly masqueradeMark: number;
  readonly counters: boolean;
}

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
export const FIELDS: Readonly<Record<Scope, readonly FieldType[]>> = {
  address: ['address', 'protocol', 'port'],
  nodePort: ['protocol', 'port'],
};
/** An endpoint that dialled itself, as kube-proxy has it: at the port at which it was dialled. */
const HAIRPIN: Key = ['source', 'protocol', 'destination', 'port'];
export const HAIRPIN_SET: TableSet = {
  name: SETS.hairpin,
  key: ['address', 'protocol', 'address', 'port'],
  comment: 'endpoints of this node, as source and destination',
};
const VIEWS: readonly View[] = ['any', 'outside'];

/** What it has in common with the one before is taken from there, so that telling them apart takes little time. */
export function rulesetOf(shape: Shape, options: RulesetOptions, before?: Ruleset): Ruleset {
  return { sets: setsOf(shape, options), chains: chainsOf(shape, options, before) };
}

function setsOf(shape: Shape, { view, counters }: RulesetOptions): readonly TableSet[] {
  return [
    { name: SETS.serviceIPs, key: ['address'], comment: 'addresses of services' },
    { name: SETS.clusterIPs, key: ['address'], comment: 'cluster IPs' },
    ...(view.nodePorts.ranges === 'all'
      ? []
      : [{ name: SETS.nodePortIPs, key: ['address'], comment: 'where node ports answer' } as const]),
    ...(shape.hasServiceCidrs
      ? [
          {
            name: SETS.serviceCidrs,
            key: ['address'],
            ranges: true,
            comment: 'where cluster IPs come from',
          } as const,
        ]
      : []),
    HAIRPIN_SET,
    {
      name: SETS.allowed,
      key: [...FIELDS.address, 'address'],
      ranges: true,
      comment: 'frontend and source range',
    },
    ...SCOPE_LIST.flatMap((scope) => scopeSets(scope, shape, counters)),
    ...affinitySets(shape.affinity, counters),
  ];
}

function scopeSets(scope: Scope, { sizes }: Shape, counters: boolean): readonly TableSet[] {
  const key = FIELDS[scope];
  const names = SCOPES[scope];
  const plain: readonly (readonly [name: string, comment: string])[] = [
    ...(scope === 'address'
      ? ([
          [names.restricted, 'only from allowed sources'],
          [names.masqueradeOthers, 'masquerade who is no pod'],
        ] as const)
      : []),
    [names.masqueradeAlways, 'masquerade everybody'],
    [names.masqueradeNode, 'masquerade what the node itself sends'],
    [names.remembering, 'clients go where they went before'],
    [names.refused, 'no endpoints'],
    [names.dropped, 'no endpoints on this node'],
    [names.droppedOutside, 'no endpoints on this node for clients outside'],
  ];
  return [
    ...plain.map(([name, comment]): TableSet => ({ name, key, comment })),
    ...VIEWS.flatMap((view) => [
      ...sizes[scope][view].map(
        (size): TableSet => ({
          name: poolMap(scope, view, size),
          key: size === 1 ? key : [...key, { drawnOf: size }],
          data: 'endpoint',
          ...(counters && { counts: true }),
        }),
      ),
      ...(hasLarge(sizes[scope][view])
        ? [{ name: largeMap(scope, view), key, data: 'verdict' } as const]
        : []),
    ]),
  ];
}

function hasLarge(sizes: readonly number[]): boolean {
  return sizes.some((size) => size > LARGEST_DIRECT_POOL);
}

function chainsOf(shape: Shape, options: RulesetOptions, before?: Ruleset): readonly Chain[] {
  return [
    ...SCOPE_LIST.flatMap((scope) => VIEWS.flatMap((view) => poolChains(scope, view, shape))),
    ...affinityChains(shape.affinity, options, before),
    { name: CHAINS.serviceAddresses, rules: addressRules(shape, options) },
    { name: CHAINS.nodePorts, rules: scopeRules('nodePort', shape, options) },
    { name: CHAINS.services, rules: servicesRules(options) },
    { name: CHAINS.unserved, rules: unservedRules(shape) },
    hooked(CHAINS.prerouting, PRIORITIES.destination, [jump(CHAINS.services)]),
    hooked(CHAINS.output, PRIORITIES.destination, [jump(CHAINS.services)]),
    unservedAt('prerouting'),
    unservedAt('output'),
    hooked(CHAINS.input, PRIORITIES.source, [REMEMBERING]),
    hooked(CHAINS.postrouting, PRIORITIES.source, [REMEMBERING, ...masqueradeRules(options)]),
  ];
}

export function hooked(point: Hook['point'], priority: number, rules: readonly Rule[]): Chain {
  return { name: point, hook: { point, priority }, rules };
}

/**
 * Apart, and later: while somebody has taken elements or rules away, a packet that they would have sent on comes to the
 * backstop before this could refuse it.
 */
function unservedAt(point: 'prerouting' | 'output'): Chain {
  const hook = { point, priority: PRIORITIES.unserved };
  return { name: `${CHAINS.unserved}-${point}`, hook, rules: [jump(CHAINS.unserved)] };
}

/** Every size in turn, and one lookup for all that are larger. */
function poolChains(scope: Scope, view: View, { sizes }: Shape): readonly Chain[] {
  const all = sizes[scope][view];
  const key = FRONTEND[scope];
  const dnat = (size: number): Rule =>
    rule({
      kind: 'dnatByMap',
      key: size === 1 ? key : [...key, { drawnOf: size }],
      map: poolMap(scope, view, size),
    });
  const large = all.filter((size) => size > LARGEST_DIRECT_POOL);
  return [
    ...large.map((size) => ({ name: largeChain(scope, view, size), rules: [dnat(size)] })),
    {
      name: poolChain(scope, view),
      isUnordered: true,
      rules: [
        ...all.filter((size) => size <= LARGEST_DIRECT_POOL).map(dnat),
        ...(large.length > 0 ? [rule({ kind: 'verdictByMap', key, map: largeMap(scope, view) })] : []),
      ],
    },
  ];
}

function servicesRules(options: RulesetOptions): readonly Rule[] {
  return [
    rule(inSet(['destination'], SETS.serviceIPs), { kind: 'jump', chain: CHAINS.serviceAddresses }),
    rule(...toNodePorts(options), { kind: 'jump', chain: CHAINS.nodePorts }),
  ];
}

/**
 * Ports of a cluster IP that its service does not have, and cluster IPs that nobody has. Should one of them be an address
 * of the node too, everything else on the node still answers there.
 */
function unservedRules({ hasServiceCidrs }: Shape): readonly Rule[] {
  const elsewhere: Statement = { kind: 'addressType', side: 'destination', not: true };
  return [
    rule(inSet(['destination'], SETS.clusterIPs), elsewhere, { kind: 'reject' }),
    ...(hasServiceCidrs
      ? [rule(inSet(['destination'], SETS.serviceCidrs), elsewhere, { kind: 'drop' })]
      : []),
  ];
}

/** Whether node ports answer at the destination. */
export function toNodePorts({ view, family }: RulesetOptions): readonly Statement[] {
  if (view.nodePorts.ranges !== 'all') return [inSet(['destination'], SETS.nodePortIPs)];
  return [
    { kind: 'addressType', side: 'destination', not: false },
    { kind: 'addressIn', side: 'destination', cidr: LOOPBACK[family], not: true },
  ];
}

function addressRules(shape: Shape, options: RulesetOptions): readonly Rule[] {
  const allowedKey: Key = [...FRONTEND.address, 'source'];
  return [
    rule(inSet(FRONTEND.address, SCOPES.address.restricted), inSet(allowedKey, SETS.allowed, true), {
      kind: 'drop',
    }),
    ...scopeRules('address', shape, options),
  ];
}

function scopeRules(
  scope: Scope,
  { affinity }: Shape,
  { view, masqueradeMark }: RulesetOptions,
): readonly Rule[] {
  const names = SCOPES[scope];
  const key = FRONTEND[scope];
  const mark: Statement = { kind: 'changeMark', operation: 'set', mark: masqueradeMark };
  const others = notPod(view);
  const outside: readonly Statement[] = [...others, { kind: 'addressType', side: 'source', not: true }];
  return [
    rule(inSet(key, names.masqueradeAlways), mark),
    ...(scope === 'address' ? [rule(...others, inSet(key, names.masqueradeOthers), mark)] : []),
    rule(
      ...others,
      { kind: 'addressType', side: 'source', not: false },
      inSet(key, names.masqueradeNode),
      mark,
    ),
    // Not for everybody: an address may be a service's and this node's, and have clients of a node port too.
    ...(affinity.length > 0
      ? [rule(inSet(key, names.remembering), { kind: 'jump', chain: CHAINS.remembered })]
      : []),
    rule(...outside, inSet(key, names.droppedOutside), { kind: 'drop' }),
    rule(...outside, { kind: 'jump', chain: poolChain(scope, 'outside') }),
    jump(poolChain(scope, 'any')),
    rule(inSet(key, names.refused), { kind: 'reject' }),
    rule(inSet(key, names.dropped), { kind: 'drop' }),
  ];
}

/** Nothing where pods cannot be told apart: then nobody is one. */
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
const REMEMBERING: Rule = rule({ kind: 'isRewritten' }, { kind: 'jump', chain: CHAINS.remember });

export function masqueradeRules({ masqueradeMark: mark }: RulesetOptions): readonly Rule[] {
  return [
    rule({ kind: 'isRewritten' }, inSet(HAIRPIN, SETS.hairpin), { kind: 'masquerade' }),
    rule({ kind: 'hasMark', mark, not: true }, { kind: 'return' }),
    // Cleared, so that a packet that passes again inside a tunnel is not masqueraded twice.
    rule({ kind: 'changeMark', operation: 'flip', mark }),
    rule({ kind: 'masquerade' }),
  ];
}

const LOOPBACK = {
  IPv4: knownCidr('127.0.0.0/8'),
  IPv6: knownCidr('::1/128'),
} as const;

function knownCidr(text: string) {
  const cidr = parseCidr(text);
  if (cidr === undefined) throw new Error(`not a CIDR: ${text}`);
  return cidr;
}

/* What a table depends on besides the plan: the node's settings and addresses. */

export interface NftSettings {
  readonly masqueradeMark: number;
  readonly counters: boolean;
  /** Where node ports answer, in a fixed order. */
  readonly nodePortIps: readonly Ip[];
  /** Where cluster IPs come from, where that is known. */
  readonly serviceCidrs: readonly Cidr[];
  /** All addresses of this node: what a remembered client is depends on them. */
  readonly nodeIps?: readonly Ip[];
}

export interface TableOptions extends NftSettings, RulesetOptions {}

/** What comes from the node and its settings, and not from services. */
export function fixedElements({ view, nodePortIps, serviceCidrs }: TableOptions): readonly Element[] {
  return [
    ...(view.nodePorts.ranges === 'all'
      ? []
      : nodePortIps.map((address) => ({ set: SETS.nodePortIPs, key: { address } }))),
    ...withoutCovered(serviceCidrs).map((range) => ({ set: SETS.serviceCidrs, key: { range } })),
  ];
}

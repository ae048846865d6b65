/** Random things that happen to a node. */
import fc from 'fast-check';
import { NFT_SETS } from '../../../../src/modes/nftables/rules/names.ts';
import type { Element, ForeignElement } from '../../../../src/modes/nftables/rules/table.ts';
import type { Cidr } from '../../../../src/model/ip.ts';
import { cidr, ip, VIEW } from '../../../plan/given.ts';
import {
  type NodeIpsStep,
  nodeIpsStep,
  type SyncStep,
  syncStep,
  type ZoneStep,
  zoneStep,
} from '../../anySteps.ts';
import type { FakeNftKernel } from './fakeKernel.ts';
import type { Harness } from './harness.ts';

const MORE_LINES: readonly fc.WeightedArbitrary<string>[] = [
  /** Nested ranges, one after the other. */
  {
    weight: 1,
    arbitrary: fc
      .constantFrom('9.9.0.0/16', '9.9.9.0/24', '9.9.9.9/32,9.9.0.0/16', '9.9.9.8/29')
      .map((ranges) => `a/x 10.96.0.1 80 lb=1.1.1.1 ranges=${ranges}`),
  },
  /** Larger than what has a rule of its own. */
  {
    weight: 1,
    arbitrary: fc
      .integer({ min: 15, max: 19 })
      .map(
        (count) =>
          `a/x-1 of x 80 ${Array.from({ length: count }, (_, index) => `| 10.244.3.${index + 1}`).join(' ')}`,
      ),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(60, 90).map((seconds) => `a/x 10.96.0.1 80@30080 affinity=${seconds}`),
  },
];

/** What somebody else does to what is ours. */
const NOTICED = [
  'element',
  'foreign element',
  'value',
  'comment',
  'rules',
  'chain',
  'set',
  'set anew',
  'hook',
  'sleep',
] as const;
type Noticed = (typeof NOTICED)[number];
export const TAMPERINGS = ['table', ...NOTICED] as const;
export type Tampering = (typeof TAMPERINGS)[number];

export type Step =
  | SyncStep
  | { readonly kind: 'full' | 'restart' }
  | ZoneStep
  | NodeIpsStep
  | { readonly kind: 'nodePorts'; readonly ranges: 'all' | readonly Cidr[] }
  | { readonly kind: 'serviceCidrs'; readonly serviceCidrs: readonly Cidr[] }
  | { readonly kind: 'counters'; readonly counters: boolean }
  /** Noticed by a full sync at the latest. */
  | { readonly kind: 'tamper'; readonly what: Tampering; readonly which: number }
  /** Told by the kernel. */
  | { readonly kind: 'noticed'; readonly what: Noticed; readonly which: number };

const RANGES = ['all', [cidr('192.0.2.0/24')], [cidr('192.0.2.10/32')]] as const;
const SERVICE_CIDRS = [
  [],
  [cidr('10.96.0.0/16')],
  [cidr('10.96.0.0/16'), cidr('10.97.0.0/16')],
  [cidr('10.96.0.0/12'), cidr('10.96.0.0/16')],
];

const anyStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 14, arbitrary: syncStep(...MORE_LINES) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('full' as const, 'restart' as const) }) },
  { weight: 1, arbitrary: zoneStep },
  { weight: 1, arbitrary: nodeIpsStep },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('nodePorts' as const), ranges: fc.constantFrom(...RANGES) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('serviceCidrs' as const),
      serviceCidrs: fc.constantFrom(...SERVICE_CIDRS),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('counters' as const), counters: fc.boolean() }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('tamper' as const),
      what: fc.constantFrom(...TAMPERINGS),
      which: fc.nat(50),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('noticed' as const),
      what: fc.constantFrom(...NOTICED),
      which: fc.nat(50),
    }),
  },
);

export const anySteps: fc.Arbitrary<readonly Step[]> = fc.array(anyStep, { minLength: 1, maxLength: 12 });

export async function perform(harness: Harness, step: Step): Promise<void> {
  const { settings, cluster } = harness;
  const { view } = cluster.planner;
  switch (step.kind) {
    case 'zone':
      cluster.setView({ ...view, zone: step.zone });
      break;
    case 'nodePorts':
      cluster.setView({ ...view, nodePorts: { ...VIEW.nodePorts, ranges: step.ranges } });
      break;
    case 'nodeIps':
      harness.settings = { ...settings, nodePortIps: step.nodeIps, nodeIps: step.nodeIps };
      break;
    case 'serviceCidrs':
      harness.settings = { ...settings, serviceCidrs: step.serviceCidrs };
      break;
    case 'counters':
      harness.settings = { ...settings, counters: step.counters };
      break;
    case 'tamper':
      tamper(harness.kernel, step.what, step.which);
      break;
    case 'noticed':
      notice(harness, tamper(harness.kernel, step.what, step.which));
      break;
    case 'sync':
    case 'full':
    case 'restart':
      break;
  }
  if (step.kind === 'full' || step.kind === 'tamper') await harness.syncFull();
  else await harness.sync(...(step.kind === 'sync' ? step.lines : []));
}

/** What the kernel would tell of it. */
interface Told {
  readonly elements?: readonly ForeignElement[];
  /** Something else than elements. */
  readonly isStructural?: true;
  /** Those that came or went. */
  readonly sets?: readonly string[];
}

function notice(harness: Harness, { elements = [], isStructural, sets = [] }: Told): void {
  harness.noteForeign(elements);
  if (isStructural) harness.noteStructure(sets);
}

export function tamper(kernel: FakeNftKernel, what: Tampering, which: number): Told {
  if (!kernel.table) return {};
  const pick = <T>(list: readonly T[]): T | undefined => list[which % Math.max(list.length, 1)];
  const { sets, chains } = kernel.table;
  const element = pick(kernel.elements);
  const set = element && sets.get(element.set)?.set;
  const chain = pick([...chains.keys()]);
  switch (what) {
    case 'table':
      kernel.tamper({ kind: 'deleteTable' });
      break;
    case 'element':
      if (!element || !set) break;
      kernel.tamper({ kind: 'deleteElements', set, elements: [element] });
      return { elements: [{ element, isThere: false }] };
    case 'foreign element': {
      const ips = sets.get(NFT_SETS.serviceIPs)?.set;
      const added: Element = { set: NFT_SETS.serviceIPs, key: { address: ip(`203.0.113.${which}`) } };
      if (!ips) break;
      kernel.tamper({ kind: 'addElements', set: ips, elements: [added] });
      return { elements: [{ element: added, isThere: true }] };
    }
    case 'value': {
      if (!element?.endpoint || !set) break;
      const other = { ...element, endpoint: { ip: ip('10.244.9.9'), port: which + 1 } };
      kernel.tamper(
        { kind: 'deleteElements', set, elements: [element] },
        { kind: 'addElements', set, elements: [other] },
      );
      return {
        elements: [
          { element, isThere: false },
          { element: other, isThere: true },
        ],
      };
    }
    case 'comment': {
      // That of a shared element is whichever of its users' it was.
      if (element?.comment === undefined || !set || set.name.startsWith('sticky-')) break;
      const other = { ...element, comment: 'theirs' };
      kernel.tamper(
        { kind: 'deleteElements', set, elements: [element] },
        { kind: 'addElements', set, elements: [other] },
      );
      return { elements: [{ element: other, isThere: true }] };
    }
    case 'rules':
      if (chain !== undefined) kernel.tamper({ kind: 'flushChain', chain });
      break;
    case 'chain':
      kernel.tamper({ kind: 'addChain', chain: `theirs-${which}` });
      break;
    case 'set':
      kernel.tamper({ kind: 'addSet', set: { name: `theirs-${which}`, key: ['address'] } });
      return { isStructural: true, sets: [`theirs-${which}`] };
    case 'set anew':
      // Where rules ask it, it cannot go without them.
      if (!set) break;
      for (const name of chains.keys()) kernel.tamper({ kind: 'flushChain', chain: name });
      kernel.tamper({ kind: 'deleteSet', set: set.name }, { kind: 'addSet', set });
      return { isStructural: true, sets: [set.name] };
    case 'sleep':
      kernel.table = { ...kernel.table, isDormant: true };
      break;
    case 'hook':
      if (!chains.has('postrouting')) break;
      kernel.tamper(
        { kind: 'deleteChain', chain: 'postrouting' },
        { kind: 'addChain', chain: 'postrouting', hook: { point: 'postrouting', priority: 50 } },
      );
      break;
  }
  return { isStructural: true };
}

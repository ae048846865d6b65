/** Random steps over a few chains and rules, so that they meet: chains in use, rules that are there twice, or not at all. */
import fc from 'fast-check';
import type { Family } from '../../../../../src/model/ip.ts';
import {
  type ChainRule,
  type Piece,
  piece,
  type Step,
} from '../../../../../src/modes/iptables/rules/edit.ts';
import type { ParsedRule } from '../../../../../src/modes/iptables/rules/parse.ts';
import { rule } from '../../../../../src/modes/iptables/rules/layouts/common.ts';
import type { Match, Table, Target } from '../../../../../src/modes/iptables/rules/rule.ts';

const OWN = ['KUBE-T-A', 'KUBE-T-B', 'KUBE-T-C', 'KUBE-T-D'];
const SHARED = ['KUBE-T-SHARED', 'FORWARD', 'OUTPUT'];
const NAT_SHARED = ['KUBE-T-SHARED', 'PREROUTING', 'OUTPUT'];

function matches(family: Family): readonly (readonly Match[])[] {
  const address = family === 'IPv4' ? '10.96.0.1' : 'fd00::1';
  const range = family === 'IPv4' ? '10.244.0.0/17' : 'fd00:244::/59';
  return [
    [],
    [{ kind: 'comment', text: 'shop/web:http cluster IP' }],
    [
      { kind: 'comment', text: 'shop/web' },
      { kind: 'protocol', protocol: 'tcp' },
      { kind: 'destination', cidr: address as never, not: false },
      { kind: 'destinationPort', port: 80 },
    ],
    [{ kind: 'source', cidr: range as never, not: true }],
    [{ kind: 'mark', value: 0x4000, mask: 0x4000, not: true }],
    [{ kind: 'statistic', probability: '0.3333333333' }],
    [{ kind: 'addressType', side: 'dst', type: 'LOCAL', not: false }],
  ];
}

function rules(family: Family): fc.Arbitrary<ParsedRule> {
  const targets: readonly (Target | undefined)[] = [
    undefined,
    { kind: 'accept' },
    { kind: 'return' },
    { kind: 'mark', operation: 'or', value: 0x4000 },
    ...OWN.map((chain): Target => ({ kind: 'jump', chain })),
  ];
  const plain = fc
    .tuple(fc.constantFrom(...matches(family)), fc.constantFrom(...targets))
    .map(([some, target]) => rule([...some], target));
  // ip6tables-nft-restore 1.8.9 loses the counters that it is given.
  if (family === 'IPv6') return plain;
  const counters = fc.record({ packets: fc.integer({ min: 1 }), bytes: fc.integer({ min: 1 }) });
  return fc.oneof(
    plain,
    fc.tuple(plain, counters).map(([each, counted]) => ({ ...each, counters: counted })),
  );
}

function pieces(family: Family, table: Table): fc.Arbitrary<Piece> {
  const shared = table === 'nat' ? NAT_SHARED : SHARED;
  const placed = fc
    .record({ chain: fc.constantFrom(...shared), rule: rules(family), place: fc.constantFrom('head', 'end') })
    .map(({ chain, rule: { matches: some, target }, place }) => ({
      chain,
      rule: { matches: some, target },
      place,
    }));
  return fc
    .record({
      writes: fc.uniqueArray(
        fc.record({ name: fc.constantFrom(...OWN), rules: fc.array(rules(family), { maxLength: 4 }) }),
        { maxLength: 2, selector: ({ name }) => name },
      ),
      // Mostly of a rule that is not there.
      removes: fc.oneof(
        { weight: 7, arbitrary: fc.constant([]) },
        { weight: 1, arbitrary: fc.array(placed.map(withoutPlace), { maxLength: 2 }) },
      ),
      adds: fc.array(placed, { maxLength: 3 }),
      deletes: fc.uniqueArray(fc.constantFrom(...OWN), { maxLength: 1 }),
    })
    .map(({ writes, removes, adds, deletes }) =>
      piece(undefined, {
        writes: writes.filter(({ name }) => !deletes.includes(name)),
        removes,
        adds,
        deletes,
      }),
    );
}

/** Some of the rules that are added are removed by later steps. */
export function randomSteps(family: Family): fc.Arbitrary<readonly Step[]> {
  const step = fc
    .constantFrom<Table>('nat', 'filter')
    .chain((table) =>
      fc
        .array(pieces(family, table), { minLength: 1, maxLength: 2 })
        .map((each): Step => ({ table, pieces: each })),
    );
  return fc
    .tuple(fc.array(step, { minLength: 1, maxLength: 6 }), fc.array(fc.nat({ max: 5 }), { maxLength: 6 }))
    .map(([steps, removed]) => [
      sharedChains('nat'),
      sharedChains('filter'),
      ...steps.flatMap((each, index) => (removed.includes(index) ? [each, ...removalOf(each)] : [each])),
    ]);
}

function sharedChains(table: Table): Step {
  return { table, pieces: [piece(undefined, { writes: [{ name: 'KUBE-T-SHARED', rules: [] }] })] };
}

function withoutPlace({ chain, rule: each }: ChainRule): ChainRule {
  return { chain, rule: each };
}

function removalOf({ table, pieces: added }: Step): readonly Step[] {
  const removes = added.flatMap(({ adds }) => adds.map(withoutPlace));
  return removes.length === 0
    ? []
    : [{ table, pieces: [piece(undefined, { removes: removes.slice(0, 2) })] }];
}

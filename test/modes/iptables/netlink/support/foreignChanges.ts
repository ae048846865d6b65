/**
 * Two sides that change the same tables in turn: Junction by netlink, and others by `iptables`, `iptables-restore --noflush` and
 * `nft`. After each change, what others have is as they left it. Runs inside a namespace.
 */
import * as fc from 'fast-check';
import type { Family } from '../../../../../src/model/ip.ts';
import { NetlinkWriter } from '../../../../../src/modes/iptables/netlink/writer.ts';
import { piece, type Step } from '../../../../../src/modes/iptables/rules/edit.ts';
import { match, rule, target } from '../../../../../src/modes/iptables/rules/layouts/common.ts';
import type { Rule, Table } from '../../../../../src/modes/iptables/rules/rule.ts';
import { directChannel } from '../../../../../src/netlink/channel.ts';
import { NETLINK_NETFILTER, NetlinkSocket } from '../../../../../src/netlink/socket.ts';
import { hex, NFT_FAMILY, PROGRAM, rawRules, runInside } from './kernelRules.ts';

/** Chains that only others have; chains in which both have rules. */
const FOREIGN = ['CNI-A', 'CNI-B', 'KUBE-KUBELET'];
const SHARED = ['INPUT', 'FORWARD', 'KUBE-FORWARD'];
const TABLE: Table = 'filter';
const OWN = ['KUBE-SVC-AAAAAAAAAAAAAAAA', 'KUBE-SEP-BBBBBBBBBBBBBBBB', 'KUBE-SEP-CCCCCCCCCCCCCCCC'];
/** Of ours, so that a rule in a shared chain can be told from another program's. */
const MARK = 'junction ';

type Side = { readonly by: 'junction'; readonly step: Step } | { readonly by: 'other'; readonly act: Act };
type Act = (family: Family) => void;

function ownRule(number: number): Rule {
  return rule(
    [match.comment(`${MARK}${number}`), match.protocol('TCP'), match.destinationPort(8000 + number)],
    target.accept,
  );
}

function step(parts: Parameters<typeof piece>[1]): Side {
  return { by: 'junction', step: { table: TABLE, pieces: [piece(undefined, parts)] } };
}

const number = fc.nat(9);
const own: fc.Arbitrary<Side> = fc.oneof(
  fc
    .record({ name: fc.constantFrom(...OWN), rules: fc.array(number.map(ownRule), { maxLength: 4 }) })
    .map((write) => step({ writes: [write] })),
  fc.constantFrom(...OWN).map((name) => step({ deletes: [name] })),
  fc
    .record({
      chain: fc.constantFrom(...SHARED),
      rule: number.map(ownRule),
      place: fc.constantFrom('head', 'end'),
    })
    .map((add) => step({ adds: [add] })),
  fc
    .record({ chain: fc.constantFrom(...SHARED), rule: number.map(ownRule) })
    .map((remove) => step({ removes: [remove] })),
);

const ARGS = [
  ['-p', 'tcp', '--dport', '22', '-j', 'ACCEPT'],
  ['-m', 'comment', '--comment', 'a neighbour', '-m', 'limit', '--limit', '5/min', '-j', 'RETURN'],
  ['-i', 'cni+', '-m', 'conntrack', '--ctstate', 'NEW', '-j', 'ACCEPT'],
  ['-m', 'mark', '--mark', '0x1/0x1', '-j', 'DROP'],
] as const;
const args = fc.constantFrom(...ARGS);
const anyChain = fc.constantFrom(...FOREIGN, ...SHARED);

const other: fc.Arbitrary<Side> = fc
  .oneof(
    fc.tuple(anyChain, args, fc.constantFrom('-A', '-I')).map(
      ([chain, words, command]): Act =>
        (family) =>
          void runInside([PROGRAM[family], '-t', TABLE, command, chain, ...words]),
    ),
    fc.tuple(anyChain, args).map(
      ([chain, words]): Act =>
        (family) =>
          tryInside([PROGRAM[family], '-t', TABLE, '-D', chain, ...words]),
    ),
    fc.tuple(fc.constantFrom(...FOREIGN), fc.array(args, { maxLength: 4 })).map(
      ([chain, rules]): Act =>
        (family) => {
          const lines = rules.map((words) => `-A ${chain} ${words.map(quoted).join(' ')}`);
          const text = [`*${TABLE}`, `:${chain} - [0:0]`, ...lines, 'COMMIT', ''].join('\n');
          runInside([`${PROGRAM[family]}-restore`, '--noflush'], text);
        },
    ),
    fc.constantFrom(...FOREIGN).map(
      (chain): Act =>
        (family) =>
          void runInside(['nft', 'add', 'rule', NFT_FAMILY[family], TABLE, chain, 'counter', 'accept']),
    ),
  )
  .map((act) => ({ by: 'other', act }));

function quoted(word: string): string {
  return word.includes(' ') ? `"${word}"` : word;
}

/** The rule may not be there. */
function tryInside(argv: readonly [string, ...string[]]): void {
  try {
    runInside(argv);
  } catch {
    // It was not there.
  }
}

/** The bytes of all that is not ours, by chain, in order. */
function foreignRules(family: Family): string {
  const mark = hex(new TextEncoder().encode(MARK));
  return rawRules(family, TABLE)
    .filter(({ chain }) => !OWN.includes(chain))
    .map(({ chain, expressions }) => `${chain} ${hex(expressions)}`)
    .filter((text) => !text.includes(mark))
    .sort((a, b) => {
      const [first = '', second = ''] = [a.split(' ')[0], b.split(' ')[0]];
      return first < second ? -1 : first > second ? 1 : 0;
    })
    .join('\n');
}

export interface ForeignOutcome {
  readonly changes: number;
  readonly refused: number;
  readonly touched: readonly string[];
}

export async function changeInTurns(family: Family, numRuns: number, seed: number): Promise<ForeignOutcome> {
  const chains = [...FOREIGN, 'KUBE-FORWARD'].map((chain) => `:${chain} - [0:0]`);
  runInside([`${PROGRAM[family]}-restore`, '--noflush'], [`*${TABLE}`, ...chains, 'COMMIT', ''].join('\n'));
  const socket = NetlinkSocket.open(NETLINK_NETFILTER);
  const writer = new NetlinkWriter(family, directChannel(socket));
  const touched: string[] = [];
  let refused = 0;
  for (const [index, side] of fc.sample(fc.oneof(own, other), { numRuns, seed }).entries()) {
    if (side.by === 'other') {
      side.act(family);
      continue;
    }
    const before = foreignRules(family);
    try {
      await writer.commit(side.step);
    } catch {
      refused++;
    }
    if (foreignRules(family) !== before) touched.push(`change ${index}: ${JSON.stringify(side.step)}`);
  }
  socket.close();
  return { changes: numRuns, refused, touched };
}

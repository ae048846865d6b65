/** Junction's nftables mode over a table in memory, and what that table makes of a packet. */
import { mostLookups } from '../modes/nftables/rules/bound.ts';
import { type WalkOutcome, type WalkResult } from '../../src/modes/walk.ts';
import { walkNftables } from '../modes/nftables/rules/ruleWalk.ts';
import { type LearnedEntry } from '../modes/nftables/rules/ruleWalk.ts';
import { type WalkTable } from '../modes/nftables/rules/ruleWalk.ts';
import { isLocal, type Packet } from '../../src/plan/decide.ts';
import { NftProxier } from '../../src/modes/nftables/proxier.ts';
import { type Family, isLoopback } from '../../src/model/ip.ts';
import type { FakeNftKernel } from '../modes/nftables/rules/fakeKernel.ts';
import { printRow, printTarget, type Subject, type Target, targetAt } from './packets.ts';
import { NODE1, node1Addresses } from './scenario.ts';

export function nftProxy(family: Family, kernel: FakeNftKernel): NftProxier {
  return new NftProxier({
    client: kernel,
    masqueradeBit: 14,
    counters: true,
    nodeIps: () => node1Addresses(family).filter((ip) => !isLoopback(ip)),
  });
}

const TOLERANCE = 1e-9;

/** A table, and how often it may be asked. */
export interface Walkable {
  readonly table: WalkTable;
  readonly mostLookups: (packet: Packet) => number;
}

export function walkableOf({ walkable, ruleset }: FakeNftKernel): Walkable {
  const most = mostLookups(ruleset);
  const rules = (name: string): number =>
    ruleset.chains.find((chain) => chain.name === name)?.rules.length ?? 0;
  const documented = 12 + rules('any') + rules('outside') + rules('remember');
  // An address may be a service's and the node's: then both may be asked.
  return {
    table: walkable,
    mostLookups: ({ destination }) => (isLocal(destination, NODE1) ? most : Math.min(most, documented)),
  };
}

/** In the words of a row. What cannot be said in them is wrong. */
export function walkedNft({ table, mostLookups: mostOf }: Walkable, row: Subject): string {
  const most = mostOf(row.packet);
  const result = walkNftables(table, row.packet, NODE1, { record: false });
  const excess = result.outcomes.find(({ lookups }) => lookups > most);
  if (excess) return printRow(row, `${excess.lookups} lookups, more than ${most}`);
  return printWalk(row, result, (outcome) => isRemembered(table, row, outcome));
}

/** `isKept`: whether a client that was sent somewhere is sent there again. */
export function printWalk<Learned>(
  row: Subject,
  { outcomes, notes }: WalkResult<Learned>,
  isKept: (outcome: WalkOutcome<Learned>) => boolean = () => true,
): string {
  const [note] = notes;
  if (note !== undefined) return printRow(row, note);
  const verdicts = new Set(outcomes.map(({ kind }) => kind));
  const [verdict = 'pass'] = verdicts;
  if (verdicts.size > 1) return printRow(row, [...verdicts].join(' or '));
  if (verdict !== 'forward') return printRow(row, { verdict });
  const targets = outcomes.map((outcome) => target(row, outcome));
  const unfair = outcomes.find(({ probability }) => Math.abs(probability * outcomes.length - 1) > TOLERANCE);
  if (unfair) return printRow(row, `${printTarget(target(row, unfair))} with ${unfair.probability}`);
  const sticky = outcomes.filter(({ learned }) => learned.length > 0);
  if (!sticky.every(isKept)) return printRow(row, 'forgets its client');
  return printRow(row, { verdict, targets, sticky: sticky.length > 0 && sticky.length === outcomes.length });
}

function target(row: Subject, outcome: WalkOutcome<unknown>): Target {
  if (outcome.kind !== 'forward') throw new Error('not forwarded');
  return targetAt(row, outcome.to, outcome.port, outcome.masqueraded);
}

/** Whether a client that was sent to an endpoint once is sent there again, and nowhere else, and still remembered. */
function isRemembered(table: WalkTable, row: Subject, first: WalkOutcome<LearnedEntry>): boolean {
  const clients = (map: string): readonly LearnedEntry[] => first.learned.filter((each) => each.map === map);
  const { outcomes } = walkNftables(table, row.packet, NODE1, { record: false, affinity: clients });
  const [only] = outcomes;
  return (
    outcomes.length === 1 &&
    only !== undefined &&
    only.learned.length === 1 &&
    printTarget(target(row, only)) === printTarget(target(row, first))
  );
}

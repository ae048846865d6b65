/**
 * Sends the first packet of a connection through the table, and says everything that can become of it.
 *
 * ```
 *  from elsewhere:  prerouting ─┬─ here:  input
 *                               └─ on:    postrouting
 *  from the node:   output ─ postrouting
 * ```
 * All chains are of the type nat, which see a connection once for its destination and once for its source: what the
 * node sends to itself has been through postrouting, so input does not see it again.
 */
import type { WalkOutcome } from '../../walkOutcome.ts';
import type { Family, Ip } from '../../../model/ip.ts';
import { familyOf } from '../../../model/ip.ts';
import type { Protocol } from '../../../model/objects.ts';
import { printElement, printNftRule, WORDS } from './print.ts';
import type { NftHook } from './rule.ts';
import type { AffinityEntry } from './transaction.ts';
import { type Decided, type Ground, type Trail, type Way, walkChain } from './walkChain.ts';
import type { WalkTable } from './walkElements.ts';
import { localAddresses, type NewlyRemembered } from './walkStatement.ts';

export interface Packet {
  readonly source: Ip;
  readonly destination: Ip;
  readonly protocol: Protocol;
  readonly port: number;
  /** Undefined when the node itself sends the packet. */
  readonly inInterface: string | undefined;
}

export interface Host {
  /** The node's own addresses. Loopback addresses need not be named. */
  readonly addresses: readonly Ip[];
}

export interface WalkOptions {
  /** Whom a map of affinity holds; by default nobody. */
  readonly remembered?: (map: string) => readonly AffinityEntry[];
  /** Leave out the paths, for speed. */
  readonly record?: boolean;
}

/** A rule that matched, and what it found. */
export interface Step {
  readonly chain: string;
  readonly ruleIndex: number;
  readonly text: string;
  /** `any-1 { 10.96.0.1 . tcp . 80 : 10.244.0.1 . 8080 }` */
  readonly found: readonly string[];
}

interface Ending {
  readonly probability: number;
  readonly path: readonly Step[];
  /** Sets that were asked or changed on the way. */
  readonly lookups: number;
  readonly remembers: readonly NewlyRemembered[];
}

export type Outcome = WalkOutcome<Ending>;

export interface WalkResult {
  /** Their probabilities add up to 1. */
  readonly outcomes: readonly Outcome[];
  /** What is missing from the table. */
  readonly notes: readonly string[];
}

export function walk(table: WalkTable, packet: Packet, host: Host, options: WalkOptions = {}): WalkResult {
  const notes = new Set<string>();
  const ground: Ground = {
    table,
    record: options.record ?? true,
    isLocal: localAddresses(host.addresses),
    remembered: options.remembered ?? (() => []),
    note: (text) => notes.add(text),
  };
  const points = packet.inInterface === undefined ? FROM_NODE : FROM_ELSEWHERE;
  return { outcomes: travel(ground, start(packet), points), notes: [...notes] };
}

interface Point {
  readonly at: NftHook['point'];
  /** Asked with the destination as it is by then. */
  readonly applies: 'always' | 'here' | 'onward';
}

const FROM_ELSEWHERE: readonly Point[] = [
  { at: 'prerouting', applies: 'always' },
  { at: 'input', applies: 'here' },
  { at: 'postrouting', applies: 'onward' },
];

const FROM_NODE: readonly Point[] = [
  { at: 'output', applies: 'always' },
  { at: 'postrouting', applies: 'always' },
];

function start({ source, destination, protocol, port, inInterface }: Packet): Way {
  return {
    source,
    destination,
    protocol,
    port,
    original: { source, destination, port },
    inInterface: inInterface ?? '',
    mark: 0,
    isRewritten: false,
    probability: 1,
    masqueraded: false,
    lookups: 0,
    remembers: [],
    trail: undefined,
  };
}

function travel(ground: Ground, first: Way, points: readonly Point[]): Outcome[] {
  let ways: readonly Way[] = [first];
  const stopped: Outcome[] = [];
  for (const point of points) {
    const through: Way[] = [];
    for (const way of ways) {
      if (!applies(point, ground.isLocal(way.destination))) {
        through.push(way);
        continue;
      }
      for (const decided of passHook(ground, point, way)) {
        if (decided.verdict === 'accept') through.push(decided.way);
        else stopped.push({ kind: decided.verdict, ...ending(decided.way) });
      }
    }
    ways = through;
  }
  return [...ways.map(arrival), ...stopped];
}

function applies({ applies: when }: Point, isHere: boolean): boolean {
  return when === 'always' || isHere === (when === 'here');
}

/**
 * A hook without a chain lets everything through, and so does the end of a chain. Where there are several, a packet goes
 * on to the next until one has rewritten it.
 */
function passHook(ground: Ground, { at }: Point, way: Way): readonly Decided[] {
  const chains = [...ground.table.chains.values()]
    .filter(({ hook }) => hook?.point === at)
    .sort((a, b) => (a.hook?.priority ?? 0) - (b.hook?.priority ?? 0));
  const isSettled = ({ isRewritten, masqueraded }: Way): boolean =>
    at === 'prerouting' || at === 'output' ? isRewritten : masqueraded;
  let waiting: readonly Way[] = [at === 'postrouting' ? { ...way, inInterface: '' } : way];
  const ended: Decided[] = [];
  for (const { name } of chains) {
    const next: Way[] = [];
    for (const each of waiting) {
      const { decided, returned } = walkChain(ground, name, each);
      for (const one of [...decided, ...returned.map((left): Decided => ({ verdict: 'accept', way: left }))])
        if (one.verdict === 'accept' && !isSettled(one.way)) next.push(one.way);
        else ended.push(one);
    }
    waiting = next;
  }
  return [...ended, ...waiting.map((left): Decided => ({ verdict: 'accept', way: left }))];
}

function arrival(way: Way): Outcome {
  const { masqueraded } = way;
  if (!way.isRewritten) return { kind: 'pass', masqueraded, ...ending(way) };
  return { kind: 'forward', to: way.destination, port: way.port, masqueraded, ...ending(way) };
}

function ending(way: Way): Ending {
  const { probability, lookups, remembers, trail } = way;
  return { probability, lookups, remembers, path: pathOf(trail, familyOf(way.source)) };
}

function pathOf(trail: Trail | undefined, family: Family): Step[] {
  const steps: Step[] = [];
  for (let at = trail; at; at = at.before) {
    const { chain, ruleIndex, rule, found } = at;
    const text = printNftRule(rule, WORDS[family]);
    steps.push({
      chain,
      ruleIndex,
      text,
      found: found.map((element) => `${element.set} { ${printElement(element)} }`),
    });
  }
  return steps.toReversed();
}

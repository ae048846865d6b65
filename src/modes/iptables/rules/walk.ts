/**
 * Sends the first packet of a connection through the rules, and says everything that can become of it.
 *
 * ```
 *  from elsewhere:  nat PREROUTING ─┬─ here:  filter INPUT
 *                                   └─ on:    filter FORWARD ─ nat POSTROUTING
 *  from the node:   nat OUTPUT ─ filter OUTPUT ─ nat POSTROUTING ─┬─ here: filter INPUT, from lo
 *                                                                 └─ on
 * ```
 * A packet that the node sends to itself keeps its connection, so nat PREROUTING does not see it again.
 */
import type { WalkOutcome } from '../../walkOutcome.ts';
import type { Ip } from '../../../model/ip.ts';
import type { Tables } from './parse.ts';
import { printRule } from './print.ts';
import { type Decided, type Ground, type Trail, type Verdict, type Way, walkChain } from './walkChain.ts';
import { localAddresses, type World } from './walkMatch.ts';

export interface Packet {
  readonly source: Ip;
  readonly destination: Ip;
  readonly protocol: 'TCP' | 'UDP' | 'SCTP';
  readonly port: number;
  /** Undefined when the node itself sends the packet. */
  readonly inInterface: string | undefined;
  /** Came in through a port of a bridge. */
  readonly viaBridge?: boolean;
}

export interface Host {
  /** The node's own addresses. Loopback addresses need not be named. */
  readonly addresses: readonly Ip[];
}

export interface WalkOptions {
  /** Which recent-client lists hold the client; by default none. */
  readonly affinity?: (list: string) => boolean;
  /** Leave out the paths, for speed. */
  readonly record?: boolean;
}

/** A rule that matched. */
export interface Step {
  readonly table: string;
  readonly chain: string;
  readonly ruleIndex: number;
  readonly text: string;
}

interface Ending {
  readonly probability: number;
  readonly path: readonly Step[];
  /** The recent-client lists that the client was put on. */
  readonly remembered: readonly string[];
}

export type Outcome = WalkOutcome<Ending>;

export interface WalkResult {
  /** Their probabilities add up to 1. */
  readonly outcomes: readonly Outcome[];
  /** What could not be evaluated. */
  readonly notes: readonly string[];
}

export function walk(tables: Tables, packet: Packet, host: Host, options: WalkOptions = {}): WalkResult {
  const notes = new Set<string>();
  const trip: Trip = {
    tables,
    record: options.record ?? true,
    world: {
      isLocal: localAddresses(host.addresses),
      affinity: options.affinity ?? (() => false),
      note: (text) => notes.add(text),
    },
  };
  const outcomes = travel(trip, start(packet), packet.inInterface === undefined ? FROM_NODE : FROM_ELSEWHERE);
  return { outcomes, notes: [...notes] };
}

interface Trip {
  readonly tables: Tables;
  readonly record: boolean;
  readonly world: World;
}

interface Hook {
  readonly table: 'filter' | 'nat';
  readonly chain: string;
  /** Asked with the destination as it is by then. */
  readonly applies: 'always' | 'here' | 'onward';
  /** The incoming interface, where it is no longer the one that the packet began with. */
  readonly inInterface?: '' | 'lo';
}

const FROM_ELSEWHERE: readonly Hook[] = [
  { table: 'nat', chain: 'PREROUTING', applies: 'always' },
  { table: 'filter', chain: 'INPUT', applies: 'here' },
  { table: 'filter', chain: 'FORWARD', applies: 'onward' },
  { table: 'nat', chain: 'POSTROUTING', applies: 'onward', inInterface: '' },
];

const FROM_NODE: readonly Hook[] = [
  { table: 'nat', chain: 'OUTPUT', applies: 'always' },
  { table: 'filter', chain: 'OUTPUT', applies: 'always' },
  { table: 'nat', chain: 'POSTROUTING', applies: 'always' },
  { table: 'filter', chain: 'INPUT', applies: 'here', inInterface: 'lo' },
];

const PROTOCOLS = { TCP: 'tcp', UDP: 'udp', SCTP: 'sctp' } as const;

function start(packet: Packet): Way {
  return {
    source: packet.source,
    destination: packet.destination,
    protocol: PROTOCOLS[packet.protocol],
    port: packet.port,
    inInterface: packet.inInterface ?? '',
    viaBridge: packet.viaBridge ?? false,
    mark: 0,
    rewritten: false,
    probability: 1,
    masqueraded: false,
    remembered: [],
    trail: undefined,
  };
}

function travel(trip: Trip, first: Way, hooks: readonly Hook[]): Outcome[] {
  let ways: Way[] = [first];
  const stopped: Outcome[] = [];
  for (const hook of hooks) {
    const through: Way[] = [];
    for (const way of ways) {
      if (!applies(hook, trip.world.isLocal(way.destination))) {
        through.push(way);
        continue;
      }
      for (const decided of passHook(trip, hook, way)) {
        if (decided.verdict === 'accept') through.push(decided.way);
        else stopped.push({ kind: decided.verdict, ...ending(decided.way) });
      }
    }
    ways = through;
  }
  return [...ways.map(arrival), ...stopped];
}

function applies(hook: Hook, here: boolean): boolean {
  return hook.applies === 'always' || here === (hook.applies === 'here');
}

/** A table without this chain lets everything through. */
function passHook(trip: Trip, hook: Hook, way: Way): readonly Decided[] {
  const chains = trip.tables.get(hook.table);
  const chain = chains?.get(hook.chain);
  if (!chains || !chain) return [{ verdict: 'accept', way }];
  const ground: Ground = { ...trip.world, table: hook.table, chains, record: trip.record };
  const entering = hook.inInterface === undefined ? way : { ...way, inInterface: hook.inInterface };
  const { decided, returned } = walkChain(ground, hook.chain, entering);
  const policy: Verdict = chain.policy === 'DROP' ? 'drop' : 'accept';
  return [...decided, ...returned.map((left): Decided => ({ verdict: policy, way: left }))];
}

function arrival(way: Way): Outcome {
  const { masqueraded } = way;
  if (!way.rewritten) return { kind: 'pass', masqueraded, ...ending(way) };
  return { kind: 'forward', to: way.destination, port: way.port, masqueraded, ...ending(way) };
}

function ending(way: Way): Ending {
  return { probability: way.probability, path: pathOf(way.trail), remembered: way.remembered };
}

function pathOf(trail: Trail | undefined): Step[] {
  const steps: Step[] = [];
  for (let at = trail; at; at = at.before) {
    const { table, chain, ruleIndex } = at;
    steps.push({ table, chain, ruleIndex, text: printRule(at.rule) });
  }
  return steps.toReversed();
}

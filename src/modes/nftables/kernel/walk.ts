/** Sends a packet through the rules that the kernel has. Only what lies on its way is read: what is asked for is read between two tries. */
import type { Family } from '../../../model/ip.ts';
import type { Host, Packet } from '../../../plan/decide.ts';
import type { SetElement, SetPlace } from '../../../netlink/nftables/elements.ts';
import type { TablePlace } from '../../../netlink/nftables/message.ts';
import { systemClock } from '../../../time/systemClock.ts';
import { runSliced, TimeSlice } from '../../../time/timeSlice.ts';
import { ReadOnDemand } from '../../kernelReader.ts';
import {
  type RuleExit,
  type TraceStep,
  type WalkContext,
  type WalkedChain,
  walkPacket,
  type WalkResult,
  type WalkSteps,
} from '../../walk.ts';
import type { HookPoint } from '../../path.ts';
import { BACKSTOP_TABLE, TABLE } from '../rules/names.ts';
import { NFT_FAMILY } from '../rules/print.ts';
import { lookupsOf } from './loads.ts';
import { type LearnedElement, type MachineWay, runRule } from './machine.ts';
import type { PacketFacts } from './packetBytes.ts';
import { printExpressions } from './ruleText.ts';
import { tableName } from './source.ts';
import type { AskedElement, ListedChain, ListedRule, ListedSet, NftSource, TableContents } from './source.ts';
import { printFound } from './values.ts';

/** A sync waits no longer for a walk. */
const SLICE_MS = 2;
const STEPS_PER_LOOK = 16;
/** As in the kernel. */
const DEEPEST_JUMP = 16;
/** A packet that passes more rules than this is in a loop, or in rules that nobody wrote for packets. */
const MOST_STEPS = 200_000;
/** A chain of another program with more rules than this is not read. */
const MOST_RULES = 1000;
/** Chains of the type nat are called by the kernel's nat, at its own priority: theirs are for their order among themselves. */
const NAT_PRIORITY: Readonly<Record<HookPoint, number>> = {
  prerouting: -100,
  input: 100,
  forward: 0,
  output: -100,
  postrouting: 100,
};

interface WalkedRule extends ListedRule {
  readonly place: ListedChain;
}

const NO_KEY = new Uint8Array();

/** What a walk begins with. */
export interface ReadTables {
  readonly chains: readonly ListedChain[];
  readonly tables: readonly { readonly place: TablePlace; readonly contents: TableContents }[];
}

export class KernelWalk {
  readonly #ownFamily: string;
  readonly #isOurs: (chain: string, rule: ListedRule) => boolean;
  readonly #chains: ReadonlyMap<string, ListedChain>;
  /** Rules and sets of the tables that were read as a whole, by name. */
  readonly #ownRules = new Map<string, readonly WalkedRule[]>();
  readonly #ownSets = new Map<string, ListedSet>();
  #isPrefetched = false;
  readonly #texts = new Map<WalkedRule, string>();
  readonly #details = new Map<WalkedRule, RuleDetails>();
  readonly #asked = new Map<string, AskedElement>();
  readonly #setPlaces = new Map<string, SetPlace>();
  readonly #rules: ReadOnDemand<string, readonly WalkedRule[]>;
  readonly #sets: ReadOnDemand<string, ListedSet>;
  readonly #elements: ReadOnDemand<string, SetElement>;

  constructor(
    family: Family,
    source: NftSource,
    { chains, tables }: ReadTables,
    isOurs: (chain: string, rule: ListedRule) => boolean,
  ) {
    this.#ownFamily = NFT_FAMILY[family];
    this.#isOurs = isOurs;
    this.#chains = new Map(chains.map((each) => [nameOf(tableName(each), each.chain), each]));
    for (const { place, contents } of tables) this.#know(place, contents);
    this.#rules = readOnDemand(this.#chains, async (places) =>
      (await source.rules(places)).map((rules, index) => {
        const place = places[index];
        return place && rules.map((rule) => ({ ...rule, place }));
      }),
    );
    this.#sets = readOnDemand(this.#setPlaces, (places) => source.sets(places));
    this.#elements = readOnDemand(this.#asked, (asked) => source.elements(asked));
  }

  #know(place: TablePlace, { rules: byChain, sets }: TableContents): void {
    const table = tableName(place);
    for (const [name, rules] of byChain) {
      const chain = this.#chains.get(nameOf(table, name));
      if (chain)
        this.#ownRules.set(
          nameOf(table, name),
          rules.map((rule) => ({ ...rule, place: chain })),
        );
    }
    for (const set of sets) this.#ownSets.set(nameOf(table, set.name), set);
  }

  async result(packet: Packet, host: Host): Promise<WalkResult<LearnedElement>> {
    const timeSlice = new TimeSlice(systemClock, SLICE_MS);
    for (;;) {
      timeSlice.begin();
      const result = await runSliced(this.#walk(packet, host), timeSlice, STEPS_PER_LOOK);
      if (!(await this.fill())) return result;
    }
  }

  /** Returns whether something was missing, and has been read now. */
  async fill(): Promise<boolean> {
    const read = await Promise.all([this.#rules.fill(), this.#sets.fill(), this.#elements.fill()]);
    return read.includes(true);
  }

  *#walk(packet: Packet, host: Host): WalkSteps<LearnedElement> {
    const hasArrived = packet.inInterface !== undefined;
    const tooLong = new Set<string>();
    let steps = 0;
    const { outcomes, notes } = yield* walkPacket<WalkedRule, LearnedElement>(
      {
        deepestJump: DEEPEST_JUMP,
        baseChains: (point) => this.baseChains(point).map(({ chain }) => chain),
        rulesOf: (table, chain) => (steps > MOST_STEPS ? [] : this.rulesOf(table, chain, tooLong)),
        leave: (rule, way, context) => {
          if (steps++ <= MOST_STEPS) return this.leave(rule, way, hasArrived, context);
          context.note(`not evaluated: what comes after ${MOST_STEPS} rules`);
          return [{ way, isMatch: false }];
        },
        print: (rule) => this.#print(rule),
        detailsOf: (rule) => this.detailsOf(rule),
      },
      packet,
      host,
    );
    return { outcomes, notes: [...notes, ...tooLong] };
  }

  /** In their order; `at`: the priority by which a packet comes to it. */
  baseChains(point: HookPoint): readonly { readonly chain: WalkedChain; readonly at: number }[] {
    const found: { readonly chain: WalkedChain; readonly at: number; readonly priority: number }[] = [];
    for (const place of this.#chains.values()) {
      const { base, chain } = place;
      if (base?.hook !== point) continue;
      const { type, priority, policy } = base;
      const at = type === 'nat' ? NAT_PRIORITY[point] : priority;
      const isForeign = !this.#isOurTable(place);
      const walked = { type, table: tableName(place), chain, policy, ...(isForeign && { isForeign }) };
      found.push({ chain: walked, at, priority });
    }
    return found.sort((a, b) => a.at - b.at || a.priority - b.priority);
  }

  #isOurTable({ family, table }: ListedChain): boolean {
    return family === this.#ownFamily && (table === TABLE || table === BACKSTOP_TABLE);
  }

  /** `undefined`: there is no such chain. */
  rulesOf(table: string, chain: string, tooLong: Set<string>): readonly WalkedRule[] | undefined {
    const name = nameOf(table, chain);
    const place = this.#chains.get(name);
    if (!place) return undefined;
    if (place.references > MOST_RULES && !this.#isOurTable(place)) {
      tooLong.add(`not evaluated: chain ${chain} of table ${table}, which has more than ${MOST_RULES} rules`);
      return [];
    }
    const rules = this.#ownRules.get(name) ?? this.#rules.get(name) ?? [];
    for (const { expressions } of rules)
      for (const each of expressions)
        if (each.kind === 'lookup' || each.kind === 'dynset') this.#setOf(place, each.set);
    return rules;
  }

  leave(
    rule: WalkedRule,
    way: MachineWay,
    hasArrived: boolean,
    { isLocal, note }: WalkContext,
  ): Generator<void, readonly RuleExit<LearnedElement>[]> {
    const { place, expressions } = rule;
    const table = tableName(place);
    if (!this.#isPrefetched) {
      this.#isPrefetched = true;
      this.#prefetch({ way, isLocal, hasArrived });
    }
    return runRule(expressions, way, {
      facts: { isLocal, hasArrived },
      print: printFound,
      note,
      onUncertain: () =>
        note(`not evaluated, taken as no match: ${table} ${place.chain}: ${printExpressions(expressions)}`),
      sets: {
        setOf: (name) => this.#setOf(place, name),
        find: ({ name: set }, key) => this.#find(place, set, key),
      },
    });
  }

  /** What our rules look up of a packet as it arrives is asked for at once, and not one lookup after the other. */
  #prefetch(facts: PacketFacts): void {
    const first = facts.hasArrived ? 'prerouting' : 'output';
    const names = [...this.#chains].filter(([, { base }]) => base?.hook === first).map(([name]) => name);
    const seen = new Set<string>();
    for (const name of names)
      for (const { place, expressions } of this.#ownRules.get(name) ?? []) {
        for (const { set, key } of lookupsOf(expressions, facts, (each) => this.#setOf(place, each)))
          this.#find(place, set.name, key);
        for (const each of expressions) {
          const next =
            each.kind === 'verdict' && each.chain !== undefined ? nameOf(tableName(place), each.chain) : name;
          if (next === name || seen.has(next)) continue;
          seen.add(next);
          names.push(next);
        }
      }
  }

  /** Ours have no element that stands for all others. */
  #find(place: ListedChain, set: string, key: Uint8Array): SetElement | undefined {
    const found = this.#findExact(place, set, key);
    return found || this.#isOurTable(place) ? found : this.#findExact(place, set, NO_KEY);
  }

  #findExact({ family, table }: ListedChain, set: string, key: Uint8Array): SetElement | undefined {
    const name = `${nameOf(tableName({ family, table }), set)} ${Buffer.from(key).toString('hex')}`;
    if (!this.#asked.has(name)) this.#asked.set(name, { family, table, set, key });
    return this.#elements.get(name);
  }

  #setOf({ family, table }: ListedChain, set: string): ListedSet | undefined {
    const name = nameOf(tableName({ family, table }), set);
    const own = this.#ownSets.get(name);
    if (own) return own;
    if (!this.#setPlaces.has(name)) this.#setPlaces.set(name, { family, table, set });
    return this.#sets.get(name);
  }

  /** Every endpoint of a pool is reached by the same rules: their texts and details are made once. */
  #print(rule: WalkedRule): string {
    let text = this.#texts.get(rule);
    if (text === undefined) this.#texts.set(rule, (text = printExpressions(rule.expressions)));
    return text;
  }

  detailsOf(rule: WalkedRule): RuleDetails {
    let details = this.#details.get(rule);
    if (!details) this.#details.set(rule, (details = this.#newDetails(rule)));
    return details;
  }

  #newDetails({ place, ...rule }: WalkedRule): RuleDetails {
    const counter = rule.expressions.find((each) => each.kind === 'counter');
    const isForeign = !this.#isOurTable(place) || (place.table === TABLE && !this.#isOurs(place.chain, rule));
    return {
      ...(counter && { packets: Number(counter.packets) }),
      ...(isForeign && { isForeign }),
    };
  }
}

type RuleDetails = Pick<TraceStep, 'packets' | 'isForeign'>;

function nameOf(table: string, name: string): string {
  return `${table} ${name}`;
}

/** By name; `places` says where each is. */
function readOnDemand<Place, Value>(
  places: ReadonlyMap<string, Place>,
  read: (places: readonly Place[]) => Promise<readonly (Value | undefined)[]>,
): ReadOnDemand<string, Value> {
  return new ReadOnDemand(async (names) => {
    const known = names.flatMap((name) => {
      const place = places.get(name);
      return place === undefined ? [] : [{ name, place }];
    });
    const values = await read(known.map(({ place }) => place));
    const found = new Map<string, Value>();
    for (const [index, { name }] of known.entries()) {
      const value = values[index];
      if (value !== undefined) found.set(name, value);
    }
    return found;
  });
}

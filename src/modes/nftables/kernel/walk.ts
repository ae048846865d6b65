/** The rules of nf_tables that the kernel has, ours and other programs', as a walk needs them. It reads what lies on a packet's path. */
import type { SetElement } from '../../../netlink/nftables/elements.ts';
import {
  type BaseChain,
  type HookPoint,
  type KernelRules,
  type PacketState,
  ReadOnce,
  type RuleResult,
  type Steps,
  type WalkContext,
  type WalkRule,
} from '../../kernelRules.ts';
import { type RuleSets, runRule } from './machine.ts';
import { printExpressions } from './ruleText.ts';
import { type ListedChain, type ListedRule, type ListedSet, type NftSource, tableName } from './source.ts';

/** A chain of another program with more rules than this is not read. */
const MAX_RULES = 1000;
/** Chains of the type nat are called by the kernel's nat, at its own priority: theirs are for their order among themselves. */
const NAT_PRIORITY: Readonly<Record<HookPoint, number>> = {
  prerouting: -100,
  input: 100,
  forward: 0,
  output: -100,
  postrouting: 100,
};

const NO_KEY = new Uint8Array();

export class NftRules implements KernelRules {
  readonly #source: NftSource;
  readonly #isOurs: (chain: ListedChain) => boolean;
  /** By `TABLE CHAIN`. */
  readonly #chains: ReadonlyMap<string, ListedChain>;
  readonly #rules = new ReadOnce<readonly NftRule[]>();
  readonly #sets = new ReadOnce<ListedSet>();
  readonly #elements = new ReadOnce<SetElement>();

  constructor(
    source: NftSource,
    chains: readonly ListedChain[],
    isOurs: (chain: ListedChain) => boolean = () => false,
  ) {
    this.#source = source;
    this.#isOurs = isOurs;
    this.#chains = new Map(chains.map((each) => [`${tableName(each)} ${each.chain}`, each]));
  }

  *baseChains(point: HookPoint): Steps<readonly BaseChain[]> {
    const found: { readonly base: BaseChain; readonly order: number }[] = [];
    for (const place of this.#chains.values()) {
      const { base, chain } = place;
      yield;
      if (base?.hook !== point) continue;
      const { type, policy, priority: order } = base;
      const priority = type === 'nat' ? NAT_PRIORITY[point] : order;
      const isForeign = !this.#isOurs(place);
      found.push({ order, base: { type, table: tableName(place), chain, policy, priority, isForeign } });
    }
    return found.sort((a, b) => a.order - b.order).map(({ base }) => base);
  }

  *rulesOf(
    table: string,
    chain: string,
    _: PacketState,
    { note }: WalkContext,
  ): Steps<readonly WalkRule[] | undefined> {
    const name = `${table} ${chain}`;
    const place = this.#chains.get(name);
    if (!place) return undefined;
    const isForeign = !this.#isOurs(place);
    if (place.references > MAX_RULES && isForeign) {
      note(`not evaluated: chain ${chain} of table ${table}, which has more than ${MAX_RULES} rules`);
      return [];
    }
    const sets = this.#setsOf(place, isForeign);
    return yield* this.#rules.get(name, async () =>
      (await this.#source.rules(place)).map((rule) => new NftRule(place, rule, sets, isForeign)),
    );
  }

  #setsOf({ family, table }: ListedChain, isForeign: boolean): RuleSets {
    const source = this.#source;
    const [sets, elements] = [this.#sets, this.#elements];
    const name = tableName({ family, table });
    function* find(set: string, key: Uint8Array): Steps<SetElement | undefined> {
      const id = `${name} ${set} ${Buffer.from(key).toString('hex')}`;
      return yield* elements.get(id, () => source.element({ family, table, set }, key));
    }
    return {
      setOf: (set) => sets.get(`${name} ${set}`, () => source.set({ family, table, set })),
      *find({ name: set }, key) {
        const found = yield* find(set, key);
        // Ours have no element that stands for all others.
        return found ?? (isForeign ? yield* find(set, NO_KEY) : undefined);
      },
    };
  }
}

class NftRule implements WalkRule {
  readonly packets: number | undefined;
  readonly isForeign: boolean;
  readonly #place: ListedChain;
  readonly #rule: ListedRule;
  readonly #sets: RuleSets;
  #text: string | undefined;

  constructor(place: ListedChain, rule: ListedRule, sets: RuleSets, isForeign: boolean) {
    const counter = rule.expressions.find((each) => each.kind === 'counter');
    this.packets = counter && Number(counter.packets);
    this.isForeign = isForeign;
    this.#place = place;
    this.#rule = rule;
    this.#sets = sets;
  }

  evaluate(state: PacketState, context: WalkContext): Steps<readonly RuleResult[]> {
    const { chain } = this.#place;
    return runRule(this.#rule.expressions, state, {
      sets: this.#sets,
      context,
      onUncertain: () =>
        context.note(`not evaluated, taken as no match: ${tableName(this.#place)} ${chain}: ${this.print()}`),
    });
  }

  print(): string {
    return (this.#text ??= printExpressions(this.#rule.expressions));
  }
}

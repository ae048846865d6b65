/** The rules of iptables that the kernel has, and those of nf_tables beside them, as a walk needs them. */
import {
  type BaseChain,
  type HookPoint,
  type KernelRules,
  type PacketState,
  ReadOnce,
  type Steps,
  type WalkContext,
  type WalkRule,
} from '../kernelRules.ts';
import { Chain, type Chains } from './chains.ts';

/** Which tables a packet passes at a hook, and by which priority (linux/netfilter_ipv4.h). */
const TABLE_ORDER: Readonly<Record<HookPoint, readonly (readonly [table: string, priority: number])[]>> = {
  prerouting: [
    ['raw', -300],
    ['mangle', -150],
    ['nat', -100],
  ],
  input: [
    ['mangle', -150],
    ['filter', 0],
    ['security', 50],
    ['nat', 100],
  ],
  forward: [
    ['mangle', -150],
    ['filter', 0],
    ['security', 50],
  ],
  output: [
    ['raw', -300],
    ['mangle', -150],
    ['nat', -100],
    ['filter', 0],
    ['security', 50],
  ],
  postrouting: [
    ['mangle', -150],
    ['nat', 100],
  ],
};

interface IptablesRulesOptions {
  /** Those that packets come to. */
  readonly tables: ReadonlySet<string>;
  /** May bring more chains than were asked for. */
  readonly read: (table: string, chains: readonly string[]) => Promise<Chains> | Chains;
  /** Tables of other programs, whose names have a family before them: `inet firewalld`. */
  readonly others?: KernelRules | undefined;
  /** The tables of iptables as nf_tables has them, for chains that iptables does not print: `ip nat`. */
  readonly byNetlink?: (() => Promise<KernelRules | undefined>) | undefined;
}

export class IptablesRules implements KernelRules {
  readonly #options: IptablesRulesOptions;
  readonly #chains = new Map<string, Chain | 'incompatible' | undefined>();
  readonly #byNetlink = new ReadOnce<KernelRules>();

  constructor(options: IptablesRulesOptions) {
    this.#options = options;
  }

  *baseChains(point: HookPoint): Steps<readonly BaseChain[]> {
    const { others } = this.#options;
    const chain = point.toUpperCase();
    const bases: BaseChain[] = [];
    for (const [table, priority] of TABLE_ORDER[point]) {
      const found = yield* this.#chain(table, chain);
      if (found === 'incompatible') {
        const nft = yield* this.#nft();
        for (const base of nft ? yield* nft.baseChains(point) : [])
          if (base.chain === chain && base.table.endsWith(` ${table}`))
            bases.push({ ...base, table, hookName: table, priority });
      } else if (found) bases.push(baseChain(table, chain, priority, found));
    }
    return others ? [...bases, ...(yield* others.baseChains(point))] : bases;
  }

  *rulesOf(
    table: string,
    chain: string,
    state: PacketState,
    context: WalkContext,
  ): Steps<readonly WalkRule[] | undefined> {
    if (table.includes(' ')) return yield* this.#options.others?.rulesOf(table, chain, state, context) ?? [];
    const found = yield* this.#chain(table, chain);
    if (found !== 'incompatible') return found?.rulesFor(state.destination);
    const family = state.destination.includes(':') ? 'ip6' : 'ip';
    return yield* (yield* this.#nft())?.rulesOf(`${family} ${table}`, chain, state, context) ?? [];
  }

  *#chain(table: string, name: string): Steps<Chain | 'incompatible' | undefined> {
    if (!this.#options.tables.has(table)) return undefined;
    const key = `${table} ${name}`;
    if (!this.#chains.has(key)) {
      const reading = this.#read(table, [name]);
      if (reading) yield reading;
    }
    return this.#chains.get(key);
  }

  /** With the chains of a service's endpoints: all of them are on the path of a packet to the service. */
  #read(table: string, names: readonly string[]): Promise<void> | undefined {
    const take = (chains: Chains): Promise<void> | undefined => {
      for (const name of names) this.#chains.set(`${table} ${name}`, undefined);
      for (const [name, chain] of chains) this.#chains.set(`${table} ${name}`, chain);
      const next = names.flatMap((name) => {
        const chain = chains.get(name);
        const jumps = chain instanceof Chain ? chain.endpointChains : [];
        return jumps.filter((jump) => !this.#chains.has(`${table} ${jump}`));
      });
      return next.length === 0 ? undefined : this.#read(table, [...new Set(next)]);
    };
    const read = this.#options.read(table, names);
    return read instanceof Promise ? read.then(take) : take(read);
  }

  #nft(): Steps<KernelRules | undefined> {
    return this.#byNetlink.get('', async () => this.#options.byNetlink?.());
  }
}

/** A policy other than ACCEPT is another program's. */
function baseChain(table: string, chain: string, priority: number, found: Chain): BaseChain {
  return {
    type: table === 'nat' ? 'nat' : 'filter',
    hookName: table,
    table,
    chain,
    priority,
    policy: found.policy === 'DROP' ? 'drop' : 'accept',
    policyPackets: found.policyPackets,
    isForeign: true,
  };
}

/**
 * Reads what iptables prints of a table, while it prints it, and keeps it as text. KUBE-SERVICES of 30,000 services has as many
 * rules, of which one packet needs three or four: only those that may match are parsed.
 */
import { type Ip, parseIp } from '../../model/ip.ts';
import { systemClock } from '../../time/systemClock.ts';
import { runToEnd } from '../../time/timeSlice.ts';
import type { IptablesClient } from './client.ts';
import { addTo } from './rules/edit.ts';
import { isServiceChain, PREFIXES } from './rules/names.ts';
import { TextRule } from './rules/textRule.ts';

/** The rule is for one address, and for no other. A negation stands before the option. */
const DESTINATION = /^(?:(?:! )?-s \S+ )?-d (\S+?)(?:\/32|\/128)? /;
const ENDPOINT_JUMP = new RegExp(` -j (${PREFIXES.endpoint}\\S+)`);

export class Chain {
  readonly table: string;
  readonly name: string;
  /** Built-in chains only. */
  policy: string | undefined;
  policyPackets: number | undefined;
  /** Its rules were those that are planned, and are not kept. */
  isAsPlanned = false;
  readonly #rules: TextRule[] = [];
  /** Those that may match any packet are at ''. */
  #byDestination: Map<string, TextRule[]> | undefined;

  constructor(table: string, name: string) {
    this.table = table;
    this.name = name;
  }

  add(text: string, packets?: number): void {
    this.#rules.push(new TextRule(text, this, this.#rules.length, packets));
  }

  get rules(): readonly TextRule[] {
    return this.#rules;
  }

  dropRules(): void {
    this.isAsPlanned = true;
    this.#rules.length = 0;
  }

  /** In their order: those that may match a packet to this address. */
  rulesFor(destination: Ip): readonly TextRule[] {
    const rules = ['', destination].flatMap((key) => this.#index.get(key) ?? []);
    return rules.sort((a, b) => a.index - b.index);
  }

  get endpointChains(): readonly string[] {
    return (this.#index.get('') ?? []).flatMap(({ text }) => ENDPOINT_JUMP.exec(text)?.[1] ?? []);
  }

  get #index(): ReadonlyMap<string, readonly TextRule[]> {
    if (this.#byDestination) return this.#byDestination;
    const index = (this.#byDestination = new Map<string, TextRule[]>());
    for (const rule of this.#rules) addTo(index, parseIp(DESTINATION.exec(rule.text)?.[1] ?? '') ?? '', rule);
    return index;
  }
}

/** By name. `incompatible`: there is none, or it has rules of nft, which iptables does not print. */
export type Chains = ReadonlyMap<string, Chain | 'incompatible'>;

/** Before the target, or at the end: `-c 12 3456`. */
const LISTED_COUNTERS = /(?:^| )-c (\d+) \d+(?= -[jg] |$)/g;

interface Counted {
  readonly text: string;
  readonly packets: number | undefined;
}

/** The rule without its counters. What looks like them inside of quotes is text. */
function withoutCounters(args: string): Counted {
  for (const { 0: all, 1: packets, index } of args.matchAll(LISTED_COUNTERS)) {
    const quotes = args.slice(0, index).replaceAll(/\\./g, '').split('"').length - 1;
    if (quotes % 2 === 1) continue;
    return {
      text: (args.slice(0, index) + args.slice(index + all.length)).trimStart(),
      packets: Number(packets),
    };
  }
  return { text: args, packets: undefined };
}

/** Chains that are not wanted, or whose rules need not be kept. */
interface ReadFilter {
  readonly isWanted?: (chain: string) => boolean;
  /** Asked once all of its rules are read. */
  readonly isAsPlanned?: (chain: Chain) => boolean;
}

/**
 * Reads what `iptables-save -c` prints of a table (`:FORWARD DROP [12:3456]`, `[12:3456] -A FORWARD -j ACCEPT`) and what
 * `iptables -v -S` prints of a table or of one chain (`-P FORWARD DROP -c 12 3456`, `-A FORWARD -c 12 3456 -j ACCEPT`).
 */
export class ChainReader {
  readonly chains = new Map<string, Chain>();
  readonly #table: string;
  readonly #filter: ReadFilter;
  /** Whose rules are being read; in a save they stand together. */
  #current: Chain | undefined;
  /** A line that has not ended yet. */
  #rest = '';

  constructor(table: string, filter: ReadFilter = {}) {
    this.#table = table;
    this.#filter = filter;
  }

  take(text: string): void {
    runToEnd(this.takeSliced(text));
  }

  *takeSliced(text: string): Generator<void> {
    const all = this.#rest + text;
    let start = 0;
    for (let end = all.indexOf('\n'); end >= 0; end = all.indexOf('\n', start)) {
      this.#takeLine(all.slice(start, end));
      start = end + 1;
      yield;
    }
    this.#rest = all.slice(start);
  }

  #takeLine(line: string): void {
    const first = line.charAt(0);
    if (first === '[' || line.startsWith('-A ')) this.#takeRule(line);
    else if (line === 'COMMIT') this.#setCurrent(undefined);
    else if (first === ':' || line.startsWith('-P ') || line.startsWith('-N ')) {
      const [name = '', policy = '-', counters = '', packets] = line.replace(/^:|^-[PN] /, '').split(' ');
      const chain = this.#chain(name);
      if (!chain || policy === '-') return;
      chain.policy = policy;
      chain.policyPackets = packets === undefined ? packetsIn(counters) : Number(packets);
    }
  }

  #takeRule(line: string): void {
    const command = line.indexOf('-A ');
    const end = line.indexOf(' ', command + 3);
    const chain = this.#chain(line.slice(command + 3, end < 0 ? undefined : end));
    if (chain !== this.#current) this.#setCurrent(chain);
    if (!chain) return;
    const text = end < 0 ? '' : line.slice(end + 1);
    if (command > 0) return chain.add(text, packetsIn(line));
    const counted = withoutCounters(text);
    chain.add(counted.text, counted.packets);
  }

  #setCurrent(chain: Chain | undefined): void {
    const { isAsPlanned } = this.#filter;
    if (this.#current && isAsPlanned?.(this.#current)) this.#current.dropRules();
    this.#current = chain;
  }

  #chain(name: string): Chain | undefined {
    if (this.#filter.isWanted?.(name) === false) return undefined;
    let chain = this.chains.get(name);
    if (!chain) this.chains.set(name, (chain = new Chain(this.#table, name)));
    return chain;
  }
}

/** `[12:345]` */
function packetsIn(text: string): number | undefined {
  const packets = /^\[(\d+):\d+\]/.exec(text)?.[1];
  return packets === undefined ? undefined : Number(packets);
}

export type ReadingClient = Pick<IptablesClient, 'family' | 'variant' | 'listRules' | 'readTable'>;

/** Processes at a time, of one question. */
const AT_ONCE = 4;
/** So many processes take as long as one that prints the whole table of a large cluster. */
const MAX_SINGLE_READS = 300;
/**
 * KUBE-SERVICES of 30,000 services takes half a second, nearly all of it in the kernel. A question about a service sends
 * several packets there: they share one read, for as long as no rule changes.
 */
const LARGE_CHAIN = 2000;
const LARGE_CHAIN_MS = 2000;

export interface ChainSource {
  /** May bring more than was asked for. `generation` changes with every change of the rules, where that is known. */
  read(table: string, names: readonly string[], generation?: number): Promise<Chains> | Chains;
}

interface LargeChain {
  readonly chain: Chain;
  readonly generation: number;
  readonly until: number;
}

/**
 * The nft variant lists one chain in 5 ms whatever else the table has (iptables 1.8.9, 30,000 services). Legacy's kernel
 * gives whole tables only: there the chains that were asked for are kept, and those that no service owns.
 */
export class KernelChains implements ChainSource {
  readonly #client: ReadingClient;
  readonly #large = new Map<string, LargeChain>();

  constructor(client: ReadingClient) {
    this.#client = client;
  }

  async read(table: string, names: readonly string[], generation?: number): Promise<Chains> {
    if (this.#client.variant === 'legacy' || names.length > MAX_SINGLE_READS)
      return this.#readTable(table, new Set(names));
    const found = new Map<string, Chain | 'incompatible'>();
    for (let from = 0; from < names.length; from += AT_ONCE) {
      const some = names.slice(from, from + AT_ONCE);
      const read = some.map(async (name) => [name, await this.#readOne(table, name, generation)] as const);
      for (const [name, chain] of await Promise.all(read)) if (chain) found.set(name, chain);
    }
    return found;
  }

  async #readOne(table: string, name: string, generation = -1): Promise<Chain | 'incompatible' | undefined> {
    const key = `${table} ${name}`;
    const known = this.#large.get(key);
    if (known?.generation === generation && systemClock.now() < known.until) return known.chain;
    const reader = new ChainReader(table);
    const reason = await this.#client.listRules(table, name, async (text) => reader.take(text));
    this.#large.delete(key);
    // Without a chain it says the same, of iptables 1.8.9.
    if (reason !== undefined) return reason.includes('incompatible') ? 'incompatible' : undefined;
    const chain = reader.chains.get(name);
    if (chain && chain.rules.length > LARGE_CHAIN && generation >= 0)
      this.#large.set(key, { chain, generation, until: systemClock.now() + LARGE_CHAIN_MS });
    return chain;
  }

  async #readTable(table: string, names: ReadonlySet<string>): Promise<Chains> {
    const reader = new ChainReader(table, {
      isWanted: (chain) => names.has(chain) || !isServiceChain(chain),
    });
    await this.#client.readTable(table, async (text) => reader.take(text));
    return reader.chains;
  }
}

/** `tables`: what `iptables-save -c` printed, by table. */
export function chainsIn(tables: Readonly<Record<string, string>>): ChainSource {
  const known = new Map<string, Chains>();
  return {
    read: (table) => {
      let chains = known.get(table);
      if (chains) return chains;
      const reader = new ChainReader(table);
      reader.take(tables[table] ?? '');
      known.set(table, (chains = reader.chains));
      return chains;
    },
  };
}

/**
 * Chains as iptables prints them, kept as text. KUBE-SERVICES of 30,000 services has as many rules, of which one packet
 * needs three or four: rules are kept by their destination, and only those that may match are parsed.
 */
import { type Ip, parseIp } from '../../model/ip.ts';
import { systemClock } from '../../time/systemClock.ts';
import type { IptablesClient } from './client.ts';
import { isServiceChain, PREFIXES } from './rules/names.ts';
import { parseCounters } from './rules/parse.ts';
import { TextRule } from './rules/textRule.ts';

/** The rule is for one address, and for no other. A negation stands before the option. */
const DESTINATION = /^(?:(?:! )?-s \S+ )?-d (\S+?)(?:\/32|\/128)? /;
const ENDPOINT_JUMP = new RegExp(` -j (${PREFIXES.endpoint}\\S+)`);

interface Line {
  readonly index: number;
  readonly text: string;
  readonly packets: number | undefined;
  rule?: TextRule;
}

export class Chain {
  readonly #table: string;
  readonly #name: string;
  policy: string | undefined;
  policyPackets: number | undefined;
  length = 0;
  /** Those that may match any packet are at ''. */
  readonly #byDestination = new Map<string, Line[]>();

  constructor(table: string, name: string) {
    this.#table = table;
    this.#name = name;
  }

  add(text: string, packets?: number): void {
    const [, destination = ''] = DESTINATION.exec(text) ?? [];
    const key = parseIp(destination) ?? '';
    const line = { index: this.length++, text, packets };
    const lines = this.#byDestination.get(key);
    if (lines) lines.push(line);
    else this.#byDestination.set(key, [line]);
  }

  /** In their order: those that may match a packet to this address. */
  rulesFor(destination: Ip): readonly TextRule[] {
    const lines = ['', destination].flatMap((key) => this.#byDestination.get(key) ?? []);
    const place = { table: this.#table, chain: this.#name };
    return lines
      .sort((a, b) => a.index - b.index)
      .map((line) => (line.rule ??= new TextRule(line.text, { ...line, ...place })));
  }

  get endpointChains(): readonly string[] {
    const lines = this.#byDestination.get('') ?? [];
    return lines.flatMap(({ text }) => ENDPOINT_JUMP.exec(text)?.[1] ?? []);
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

/**
 * Reads what `iptables-save -c` prints of a table (`:FORWARD DROP [12:3456]`, `[12:3456] -A FORWARD -j ACCEPT`) and what
 * `iptables -v -S` prints of a table or of one chain (`-P FORWARD DROP -c 12 3456`, `-A FORWARD -c 12 3456 -j ACCEPT`).
 */
export class ChainReader {
  readonly chains = new Map<string, Chain>();
  readonly #table: string;
  readonly #isWanted: (chain: string) => boolean;
  /** A line that has not ended yet. */
  #rest = '';

  constructor(table: string, isWanted: (chain: string) => boolean = () => true) {
    this.#table = table;
    this.#isWanted = isWanted;
  }

  take(text: string): void {
    const all = this.#rest + text;
    let start = 0;
    for (let end = all.indexOf('\n'); end >= 0; end = all.indexOf('\n', start)) {
      this.#takeLine(all.slice(start, end));
      start = end + 1;
    }
    this.#rest = all.slice(start);
  }

  #takeLine(line: string): void {
    const first = line.charAt(0);
    if (first === '[' || line.startsWith('-A ')) this.#takeRule(line);
    else if (first === ':' || line.startsWith('-P ') || line.startsWith('-N ')) {
      const [name = '', policy = '-', counters = '', packets] = line.replace(/^:|^-[PN] /, '').split(' ');
      const chain = this.#chain(name);
      if (!chain || policy === '-') return;
      chain.policy = policy;
      chain.policyPackets = packets === undefined ? parseCounters(counters)?.packets : Number(packets);
    }
  }

  #takeRule(line: string): void {
    const command = line.indexOf('-A ');
    const end = line.indexOf(' ', command + 3);
    const chain = this.#chain(line.slice(command + 3, end < 0 ? undefined : end));
    if (!chain) return;
    const text = end < 0 ? '' : line.slice(end + 1);
    if (command > 0) return chain.add(text, parseCounters(line.slice(0, command - 1))?.packets);
    const counted = withoutCounters(text);
    chain.add(counted.text, counted.packets);
  }

  #chain(name: string): Chain | undefined {
    if (!this.#isWanted(name)) return undefined;
    let chain = this.chains.get(name);
    if (!chain) this.chains.set(name, (chain = new Chain(this.#table, name)));
    return chain;
  }
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

interface ReadOptions {
  readonly table: string;
  readonly names: readonly string[];
  /** One process lists all of the table as quickly as one chain. */
  readonly isSmall: boolean;
  /** Changes with every change of the rules, where that is known. */
  readonly generation: number | undefined;
}

export interface ChainSource {
  /** May bring more than was asked for. */
  read(options: ReadOptions): Promise<Chains> | Chains;
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

  async read({ table, names, isSmall, generation }: ReadOptions): Promise<Chains> {
    if (this.#client.variant === 'legacy' || names.length > MAX_SINGLE_READS)
      return this.#readTable(table, new Set(names));
    const whole = isSmall ? await this.#list(table, undefined) : undefined;
    if (whole && whole !== 'incompatible') return whole;
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
    const listed = await this.#list(table, name);
    const chain = listed instanceof Map ? listed.get(name) : listed;
    this.#large.delete(key);
    if (chain instanceof Chain && chain.length > LARGE_CHAIN && generation >= 0)
      this.#large.set(key, { chain, generation, until: systemClock.now() + LARGE_CHAIN_MS });
    return chain;
  }

  /** `undefined`: there is no such chain. */
  async #list(
    table: string,
    chain: string | undefined,
  ): Promise<Map<string, Chain> | 'incompatible' | undefined> {
    const reader = new ChainReader(table);
    const reason = await this.#client.listRules(table, chain, async (text) => reader.take(text));
    if (reason === undefined) return reader.chains;
    return reason.includes('incompatible') ? 'incompatible' : undefined;
  }

  async #readTable(table: string, names: ReadonlySet<string>): Promise<Chains> {
    const reader = new ChainReader(table, (chain) => names.has(chain) || !isServiceChain(chain));
    await this.#client.readTable(table, async (text) => reader.take(text));
    return reader.chains;
  }
}

/** `tables`: what `iptables-save -c` printed, by table. */
export function chainsIn(tables: Readonly<Record<string, string>>): ChainSource {
  const known = new Map<string, Chains>();
  return {
    read: ({ table }) => {
      let chains = known.get(table);
      if (chains) return chains;
      const reader = new ChainReader(table);
      reader.take(tables[table] ?? '');
      known.set(table, (chains = reader.chains));
      return chains;
    },
  };
}

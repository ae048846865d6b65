/**
 * Chains as iptables lists them, kept as text and parsed as a packet comes to them. KUBE-SERVICES of 30,000 services has
 * as many rules, of which one packet needs three or four: lines are put by their destination, or port, and only those that
 * may match are parsed.
 */
import { type Ip, parseIp } from '../../../model/ip.ts';
import { type Counters, parseCounters, tokenize } from './parse.ts';
import { parseRule } from './parseRule.ts';
import type { Rule } from './rule.ts';
import type { BuiltInChain, WalkedRule } from './walk.ts';

interface Line {
  readonly index: number;
  /** The rule's arguments. */
  readonly text: string;
  readonly counters: Counters | undefined;
}

/** The rule is for one address, and for no other. A negation stands before the option. */
const DESTINATION = /^(?:(?:! )?-s \S+ )?-d (\S+?)(?:\/32|\/128)? /;
/** Behind every quote, so that no comment can be taken for it. */
const PORT = / (!? ?)--dport (\d+)(?: [^"]*)?$/;

export class ChainListing implements BuiltInChain {
  policy: string | undefined;
  policyPackets: number | undefined;
  #length = 0;
  /** May match any packet. */
  readonly #any: Line[] = [];
  readonly #byDestination = new Map<string, Line[]>();
  readonly #byPort = new Map<number, Line[]>();
  readonly #parsed = new Map<number, WalkedRule>();

  get length(): number {
    return this.#length;
  }

  add(text: string, counters: Counters | undefined): void {
    const line = { index: this.#length++, text, counters };
    const [, destination] = DESTINATION.exec(text) ?? [];
    const ip = destination === undefined ? undefined : parseIp(destination);
    if (ip !== undefined) {
      addLine(this.#byDestination, ip, line);
      return;
    }
    const [, negation, port] = PORT.exec(text) ?? [];
    if (port !== undefined && negation === '') addLine(this.#byPort, Number(port), line);
    else this.#any.push(line);
  }

  /** In their order: those that may match a packet to this address and port. */
  rulesFor(destination: Ip, port: number): readonly WalkedRule[] {
    const [to, at] = [this.#byDestination.get(destination) ?? [], this.#byPort.get(port) ?? []];
    return [...this.#any, ...to, ...at].sort((a, b) => a.index - b.index).map((line) => this.#rule(line));
  }

  #rule(line: Line): WalkedRule {
    let rule = this.#parsed.get(line.index);
    if (!rule) this.#parsed.set(line.index, (rule = parseLine(line)));
    return rule;
  }
}

function addLine<Key>(lines: Map<Key, Line[]>, key: Key, line: Line): void {
  const list = lines.get(key);
  if (list) list.push(line);
  else lines.set(key, [line]);
}

function parseLine({ index, text, counters }: Line): WalkedRule {
  return { ...readable(text), text, index, ...(counters && { counters }) };
}

/** What we cannot read as a rule is noted when a packet comes to it. */
function readable(text: string): Rule {
  const unreadable: Rule = { matches: [], target: { kind: 'other', args: [text] } };
  const words = tokenize(text);
  if (!words) return unreadable;
  try {
    return parseRule(words);
  } catch {
    return unreadable;
  }
}

/** Reads lines while they arrive. */
abstract class LineReader {
  /** A line that has not ended yet. */
  #rest = '';

  take(text: string): void {
    const all = this.#rest + text;
    let start = 0;
    for (let end = all.indexOf('\n'); end >= 0; end = all.indexOf('\n', start)) {
      this.takeLine(all.slice(start, end));
      start = end + 1;
    }
    this.#rest = all.slice(start);
  }

  protected abstract takeLine(line: string): void;
}

/** Before the target, or at the end: `-c 12 3456`. */
const LISTED_COUNTERS = /(?:^| )-c (\d+) (\d+)(?= -[jg] |$)/g;

interface Counted {
  readonly text: string;
  readonly counters: Counters | undefined;
}

/** The rule without its counters. What looks like them inside of quotes is text. */
function withoutCounters(args: string): Counted {
  for (const found of args.matchAll(LISTED_COUNTERS)) {
    if (isQuoted(args, found.index)) continue;
    const text = args.slice(0, found.index) + args.slice(found.index + found[0].length);
    return { text: text.trimStart(), counters: { packets: Number(found[1]), bytes: Number(found[2]) } };
  }
  return { text: args, counters: undefined };
}

function isQuoted(text: string, at: number): boolean {
  const first = text.indexOf('"');
  if (first < 0 || first > at) return false;
  return (text.slice(0, at).replaceAll(/\\./g, '').split('"').length - 1) % 2 === 1;
}

/**
 * What `iptables -v -S` prints, of one chain or of all of a table:
 *
 *     -P FORWARD DROP -c 0 0
 *     -N CHAIN
 *     -A FORWARD -p tcp -c 1 60 -j ACCEPT
 */
export class ListReader extends LineReader {
  readonly chains = new Map<string, ChainListing>();

  protected takeLine(line: string): void {
    const end = line.indexOf(' ', 3);
    const name = line.slice(3, end < 0 ? undefined : end);
    const rest = end < 0 ? '' : line.slice(end + 1);
    if (line.startsWith('-P ')) {
      const [policy, , packets] = rest.split(' ');
      const chain = this.#chain(name);
      chain.policy = policy;
      chain.policyPackets = packets === undefined ? undefined : Number(packets);
    } else if (line.startsWith('-N ')) this.#chain(name);
    else if (line.startsWith('-A ')) {
      const { text, counters } = withoutCounters(rest);
      this.#chain(name).add(text, counters);
    }
  }

  #chain(name: string): ChainListing {
    let chain = this.chains.get(name);
    if (!chain) this.chains.set(name, (chain = new ChainListing()));
    return chain;
  }
}

/** Chains of one table, as `iptables-save -c -t TABLE` prints them. */
export class TableReader extends LineReader {
  readonly chains = new Map<string, ChainListing>();
  #isWanted: (chain: string) => boolean = () => true;
  /** The chain that the last line was of. */
  #name = '';
  #chain: ChainListing | undefined;

  /** From now on, and of those that were read. */
  keepOnly(isWanted: (chain: string) => boolean): void {
    this.#isWanted = isWanted;
    for (const name of this.chains.keys()) if (!isWanted(name)) this.chains.delete(name);
    this.#chain = this.chains.get(this.#name);
  }

  protected takeLine(line: string): void {
    const first = line.charAt(0);
    if (first === ':') this.#declare(line);
    else if (first === '[' || first === '-') this.#append(line);
  }

  /** `:FORWARD DROP [12:3456]` */
  #declare(line: string): void {
    const [name = '', policy = '-', counters = ''] = line.slice(1).split(' ');
    if (!this.#isWanted(name)) return;
    const chain = new ChainListing();
    if (policy !== '-') {
      chain.policy = policy;
      chain.policyPackets = parseCounters(counters)?.packets;
    }
    this.chains.set(name, chain);
  }

  /** `[12:3456] -A FORWARD -p tcp -j ACCEPT` */
  #append(line: string): void {
    const command = line.indexOf('-A ');
    const end = line.indexOf(' ', command + 3);
    const name = line.slice(command + 3, end < 0 ? undefined : end);
    if (name !== this.#name) {
      this.#name = name;
      this.#chain = this.chains.get(name);
    }
    const counters = command > 0 ? parseCounters(line.slice(0, command - 1)) : undefined;
    this.#chain?.add(end < 0 ? '' : line.slice(end + 1), counters);
  }
}

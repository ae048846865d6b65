/**
 * Reads the tables of the nft variant by netlink: names of chains, then the rules of each chain by itself. A dump of a whole
 * table looks at every rule before the next again for each 32 KiB, in 2.4 s of 110,000 rules; 40,000 dumps of a chain each
 * take 0.6 s. Rules are digested in the netlink thread, and decoded here only where a digest is not the wanted one.
 */
import type { Family } from '../../../model/ip.ts';
import { messagesOf, type RulesChannel } from '../../../netlink/channel.ts';
import { JunctionError } from '../../../errors.ts';
import type { DumpedChain } from '../../../netlink/nftables/chainReducer.ts';
import {
  decodeRule,
  decodeTable,
  getChain,
  getChains,
  getRules,
  getTable,
} from '../../../netlink/nftables/objects.ts';
import { ChainDigester, digestNumber, RuleDigester } from '../../../netlink/nftables/ruleDigest.ts';
import { WORDS_PER_RULE } from '../../../netlink/nftables/ruleReducer.ts';
import { forEachSliced, type TimeSlice } from '../../../time/timeSlice.ts';
import type { ChainComparison, Chains, ChainReader, TableDigests } from '../rules/chainReader.ts';
import { isServiceChain } from '../rules/names.ts';
import {
  type Counters,
  IN_PLACE,
  type ParsedChain,
  type ParsedRule,
  type WantedChains,
} from '../rules/parse.ts';
import type { Rule, Table } from '../rules/rule.ts';
import type { ChainLook } from '../client.ts';
import { NetlinkComparison } from './comparison.ts';
import { decodeIptablesRule } from './decodeRule.ts';
import { dialectOf } from './dialect.ts';
import { RuleEncoder } from './encodeRule.ts';

const NFT_FAMILY = { IPv4: 'ip', IPv6: 'ip6' } as const;
const NO_COUNTERS: Counters = { packets: 0, bytes: 0 };
/** So many chains are asked for at a time: their messages are in memory until they are decoded. */
const CHAINS_PER_PIECE = 256;
const RULES_PER_LOOK = 16;
/** Of which four pieces are under way at a time. */
const CHAINS_PER_READING = 2048;
const READINGS = 4;
/** Only a runaway program changes chains faster than they can be listed. */
const EXACT_READINGS = 10;

interface ReaderOptions {
  readonly timeSlice?: TimeSlice;
  /** Of the iptables that rules are written with. */
  readonly version?: string;
}

export class NetlinkChainReader implements ChainReader {
  readonly #family: Family;
  readonly #channel: RulesChannel;
  readonly #timeSlice: TimeSlice | undefined;
  readonly #encoder: RuleEncoder;
  readonly #rules = new RuleDigester();
  readonly #chain = new ChainDigester();

  constructor(family: Family, channel: RulesChannel, { timeSlice, version }: ReaderOptions = {}) {
    this.#family = family;
    this.#channel = channel;
    this.#timeSlice = timeSlice;
    this.#encoder = new RuleEncoder({
      family,
      ...(version !== undefined && { dialect: dialectOf(version) }),
    });
  }

  digest(chain: string, rules: readonly Rule[]): number | undefined {
    this.#chain.begin(chain);
    for (const rule of rules) {
      const digest = this.#encoder.digest(rule, this.#rules);
      if (!digest) return undefined;
      this.#chain.take(digest.high, digest.low);
    }
    return this.#chain.end();
  }

  digestRule(rule: Rule): number | undefined {
    const digest = this.#encoder.digest(rule, this.#rules);
    return digest && digestNumber(digest.high, digest.low);
  }

  async readTable(table: Table, wanted: () => Promise<WantedChains>): Promise<Chains | undefined> {
    const listed = await this.#list(table);
    if (listed.length === 0) return undefined;
    const names = listed.map(({ name }) => name).filter(isServiceChain);
    const inPlace = new Set<string>();
    if (names.length > 0) {
      // Both at the same time: one thread compiles, the other reads.
      const [digests, set] = await Promise.all([this.#digests(table, names), wanted()]);
      for (const [name, digest] of digests) if (set.has(digest)) inPlace.add(name);
    }
    const chains = new Map<string, ParsedChain>();
    const left = listed.filter(({ name }) => !inPlace.has(name));
    for (const { name } of listed) chains.set(name, IN_PLACE);
    for (let from = 0; from < left.length; from += CHAINS_PER_PIECE)
      await this.#readRules(table, left.slice(from, from + CHAINS_PER_PIECE), chains);
    return chains;
  }

  /** Whether there is such a chain, for a canary. */
  async lookForChain(table: Table, chain: string): Promise<ChainLook> {
    const reply = await this.#channel.request(getChain({ ...this.#place(table), chain }));
    if (reply.kind === 'answered') return { state: 'present' };
    if (reply.name === 'ENOENT') return { state: 'absent', reason: 'the kernel has no such chain' };
    const message = `netlink: cannot ask for chain ${chain}: ${reply.name}`;
    return { state: 'unknown', error: new JunctionError('NETLINK_FAILED', message) };
  }

  async readChain(table: Table, chain: string): Promise<ParsedChain | undefined> {
    const look = await this.lookForChain(table, chain);
    if (look.state === 'absent') return undefined;
    if (look.state === 'unknown') throw look.error;
    const chains = new Map<string, ParsedChain>();
    await this.#readRules(table, [{ table, name: chain, policy: undefined }], chains);
    return chains.get(chain);
  }

  async digestTable(
    table: Table,
    whole: ReadonlySet<string>,
    byRule: ReadonlySet<string>,
  ): Promise<TableDigests> {
    const names = await this.#present(table, [...whole, ...byRule]);
    const chains = new Map<string, number>();
    const rules = new Map<string, readonly number[]>();
    await this.#digestAll(table, names, (name, words) => {
      if (byRule.has(name)) rules.set(name, ruleDigests(words));
      else chains.set(name, this.#digestOf(name, words));
    });
    return { isDormant: await this.#isDormant(table), chains, rules };
  }

  compareChains(): ChainComparison {
    return new NetlinkComparison(NFT_FAMILY[this.#family], this.#channel, this.#encoder);
  }

  /** Those that are there. */
  async #present(table: Table, names: readonly string[]): Promise<readonly string[]> {
    const place = this.#place(table);
    const replies = await this.#channel.requestAll(names.map((chain) => getChain({ ...place, chain })));
    return names.filter((_, index) => replies[index]?.kind === 'answered');
  }

  #place(table: Table): { readonly family: 'ip' | 'ip6'; readonly table: Table } {
    return { family: NFT_FAMILY[this.#family], table };
  }

  async #list(table: Table): Promise<readonly DumpedChain[]> {
    for (let reading = 1; ; reading++) {
      const reply = await this.#channel.listChains(getChains(NFT_FAMILY[this.#family]));
      if (reply.kind === 'refused')
        throw new JunctionError('NETLINK_FAILED', `netlink: cannot list chains: ${reply.name}`);
      if (!reply.interrupted) return reply.chains.filter((chain) => chain.table === table);
      if (reading >= EXACT_READINGS)
        throw new JunctionError(
          'NETLINK_FAILED',
          `netlink: chains changed during each of ${reading} readings`,
        );
    }
  }

  async #digests(table: Table, names: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const digests = new Map<string, number>();
    await this.#digestAll(table, names, (name, words) => digests.set(name, this.#digestOf(name, words)));
    return digests;
  }

  /**
   * A piece at a time, so that this thread has others, too. What changes during each of some readings is taken as it was last
   * read: it differs then, and is read again by whoever repairs it.
   */
  async #digestAll(
    table: Table,
    names: readonly string[],
    take: (name: string, words: Uint32Array) => void,
  ): Promise<void> {
    const place = this.#place(table);
    let left = names;
    for (let reading = 1; left.length > 0; reading++) {
      const interrupted: string[] = [];
      for (let from = 0; from < left.length; from += CHAINS_PER_READING) {
        const piece = left.slice(from, from + CHAINS_PER_READING);
        const replies = await this.#channel.digestRules(piece.map((name) => getRules(place, name)));
        for (const [index, reply] of replies.entries()) {
          const name = piece[index] ?? '';
          if (reply.kind === 'refused')
            throw new JunctionError('NETLINK_FAILED', `netlink: cannot list rules: ${reply.name}`);
          if (reply.interrupted && reading < READINGS) interrupted.push(name);
          else take(name, reply.words);
        }
      }
      left = interrupted;
    }
  }

  async #isDormant(table: Table): Promise<boolean> {
    const reply = await this.#channel.request(getTable(this.#place(table)));
    const [message] = reply.kind === 'answered' ? reply.messages : [];
    return message !== undefined && decodeTable(message.payload).isDormant;
  }

  #digestOf(name: string, words: Uint32Array): number {
    this.#chain.begin(name);
    for (let at = 0; at < words.length; at += WORDS_PER_RULE)
      this.#chain.take((words[at] ?? 0) | 0, (words[at + 1] ?? 0) | 0);
    return this.#chain.end();
  }

  /** Adds what the chains hold. */
  async #readRules(
    table: Table,
    listed: readonly DumpedChain[],
    chains: Map<string, ParsedChain>,
  ): Promise<void> {
    const place = this.#place(table);
    const replies = await this.#channel.dumpAll(listed.map(({ name }) => getRules(place, name)));
    for (const [index, { name, policy }] of listed.entries()) {
      const rules: ParsedRule[] = [];
      chains.set(name, policy === undefined ? { rules } : { policy: policy, rules });
      await forEachSliced(
        messagesOf(replies[index], `the rules of ${name}`),
        ({ payload }) => void rules.push(this.#decode(payload)),
        this.#timeSlice,
        RULES_PER_LOOK,
      );
    }
  }

  #decode(payload: Uint8Array): ParsedRule {
    const { expressions } = decodeRule(payload);
    const { rule, counters = NO_COUNTERS } = decodeIptablesRule(expressions, { family: this.#family });
    // Not `{ ...rule, counters }`: see `countedRule`.
    return Object.assign(rule, { counters, ...(isOpaque(rule) && { isOpaque: true as const }) });
  }
}

function ruleDigests(words: Uint32Array): readonly number[] {
  const digests: number[] = [];
  for (let at = 0; at < words.length; at += WORDS_PER_RULE)
    digests.push(digestNumber(words[at] ?? 0, words[at + 1] ?? 0));
  return digests;
}

function isOpaque({ matches, target }: Rule): boolean {
  return target?.kind === 'other' || matches.some(({ kind }) => kind === 'other');
}

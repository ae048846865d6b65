/** Compares chains of services with the kernel while they are compiled: the netlink thread has one piece of them, and this one the next. */
import { constants } from 'node:os';
import { JunctionError } from '../../../errors.ts';
import type { RulesChannel } from '../../../netlink/channel.ts';
import { decodeChain, getChain, getChains } from '../../../netlink/nftables/objects.ts';
import { ChainDigester, RuleDigester } from '../../../netlink/nftables/ruleDigest.ts';
import { errnoName } from '../../../system/libc.ts';
import { ChainNameList } from '../../../netlink/worker/chainFilter.ts';
import { ChainQuestionList } from '../../../netlink/worker/compareRules.ts';
import type { ChainComparison } from '../rules/chainReader.ts';
import type { ChainRef, OwnChain } from '../rules/fragment.ts';
import { isServiceChain } from '../rules/names.ts';
import { type Rule, type Table, TABLES } from '../rules/rule.ts';
import type { RuleEncoder } from './encodeRule.ts';

/** So many chains are asked for at a time, of which some pieces are under way: the thread always has the next one. */
const CHAINS_PER_PIECE = 512;
const PIECES_UNDER_WAY = 8;
/** What changes during each of these is taken to differ: whoever repairs it reads it again. */
const READINGS = 4;

interface Asked {
  readonly name: string;
  readonly digest: number;
}

export class NetlinkComparison implements ChainComparison {
  readonly #family: 'ip' | 'ip6';
  readonly #channel: RulesChannel;
  readonly #encoder: RuleEncoder;
  readonly #rules = new RuleDigester();
  readonly #chain = new ChainDigester();
  readonly #names = new ChainNameList();
  readonly #pieces = new Map<Table, Asked[]>();
  readonly #underWay: Promise<void>[] = [];
  readonly #differing: ChainRef[] = [];
  readonly #undigested: ChainRef[] = [];

  constructor(family: 'ip' | 'ip6', channel: RulesChannel, encoder: RuleEncoder) {
    this.#family = family;
    this.#channel = channel;
    this.#encoder = encoder;
  }

  add({ table, name, rules }: OwnChain): Promise<void> | undefined {
    this.#names.add(table, name);
    const digest = rules.length === 0 ? undefined : this.#digest(rules);
    if (digest === undefined) {
      // To the kernel, a chain that is not there has no rules either.
      this.#undigested.push({ table, chain: name });
      return undefined;
    }
    let piece = this.#pieces.get(table);
    if (!piece) this.#pieces.set(table, (piece = []));
    piece.push({ name, digest });
    if (piece.length < CHAINS_PER_PIECE) return undefined;
    this.#pieces.delete(table);
    this.#begin(this.#compare(table, piece));
    return this.#underWay[this.#underWay.length - PIECES_UNDER_WAY];
  }

  async end(): Promise<{ readonly differing: readonly ChainRef[]; readonly others: readonly ChainRef[] }> {
    for (const [table, piece] of this.#pieces) this.#begin(this.#compare(table, piece));
    try {
      await Promise.all(this.#underWay);
      await this.#lookForUndigested();
      return { differing: this.#differing, others: await this.#others() };
    } finally {
      await Promise.allSettled(this.#underWay);
    }
  }

  #begin(work: Promise<void>): void {
    work.catch(() => undefined); // thrown to who waits for it
    this.#underWay.push(work);
  }

  #digest(rules: readonly Rule[]): number | undefined {
    this.#chain.begin('');
    for (const rule of rules) {
      const digest = this.#encoder.digest(rule, this.#rules);
      if (!digest) return undefined;
      this.#chain.take(digest.high, digest.low);
    }
    return this.#chain.end();
  }

  async #compare(table: Table, piece: readonly Asked[]): Promise<void> {
    let left = piece;
    for (let reading = 1; left.length > 0; reading++) {
      const questions = new ChainQuestionList({ family: this.#family, table }, left.length);
      for (const { name, digest } of left) questions.add(name, digest);
      const again: Asked[] = [];
      for (const { place, errno, isInterrupted } of await this.#channel.compareChains(questions)) {
        const asked = left[place];
        if (errno !== 0)
          throw new JunctionError('NETLINK_FAILED', `netlink: cannot list rules: ${errnoName(errno)}`);
        if (!asked) continue;
        if (isInterrupted && reading < READINGS) again.push(asked);
        else this.#differing.push({ table, chain: asked.name });
      }
      left = again;
    }
  }

  async #lookForUndigested(): Promise<void> {
    const replies = await this.#channel.requestAll(
      this.#undigested.map(({ table, chain }) => getChain({ family: this.#family, table, chain })),
    );
    for (const [index, reply] of replies.entries()) {
      const chain = this.#undigested[index];
      if (chain && reply.kind === 'refused' && reply.errno === constants.errno.ENOENT)
        this.#differing.push(chain);
    }
  }

  async #others(): Promise<readonly ChainRef[]> {
    const others: ChainRef[] = [];
    const end = await this.#channel.scan(
      getChains(this.#family),
      { kind: 'chains', known: this.#names.finish() },
      (messages) => {
        for (const { payload } of messages) {
          const chain = decodeChain(payload);
          const table = TABLES.find((each) => each === chain.table);
          if (table !== undefined && isServiceChain(chain.name)) others.push({ table, chain: chain.name });
        }
      },
    );
    if (end.kind === 'refused')
      throw new JunctionError('NETLINK_FAILED', `netlink: cannot list chains: ${end.name}`);
    return others;
  }
}

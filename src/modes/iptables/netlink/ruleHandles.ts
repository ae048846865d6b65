/**
 * Handles of the rules in chains that many services share: the kernel deletes a rule by its handle, and a chain is read for
 * them when the first of its rules is to be deleted. From then on the kernel's answers to our own changes keep them.
 *
 * A handle is never used again within a table. A table that another program deleted and made again begins again, so whoever
 * deletes by handle makes sure that the table is the same, and binds the transaction to the generation of that look. A rule
 * that another program deleted is refused with ENOENT, and the chain is read again.
 */
import { constants } from 'node:os';
import { JunctionError } from '../../../errors.ts';
import { readUntilStable, type RulesChannel } from '../../../netlink/channel.ts';
import { decodeGeneration, getGeneration, type TablePlace } from '../../../netlink/nftables/message.ts';
import { decodeTable, getRules, getTable } from '../../../netlink/nftables/objects.ts';
import { digestNumber, RuleDigester } from '../../../netlink/nftables/ruleDigest.ts';
import { WORDS_PER_RULE } from '../../../netlink/nftables/ruleReducer.ts';
import type { Rule } from '../rules/rule.ts';
import type { RuleEncoder } from './encodeRule.ts';
import type { RuleOperation, StepOperation } from './operations.ts';

/** For a transaction that deletes rules. */
export interface FoundRules {
  readonly generation: number;
  readonly handles: ReadonlyMap<StepOperation, number>;
  /** The first that is not there. */
  readonly missing: RuleOperation | undefined;
}

const WORD = 2 ** 32;
/** Beyond these, it is cheaper to read the chain again: each answer has the whole rule. */
const MOST_ECHOES = 512;

export class RuleHandles {
  readonly #channel: RulesChannel;
  readonly #place: TablePlace;
  readonly #encoder: RuleEncoder;
  /** Of other versions of iptables. */
  #others: readonly RuleEncoder[] | undefined;
  readonly #digester = new RuleDigester();
  /** Of the table that they are of. */
  #table: bigint | undefined;
  readonly #chains = new Map<string, ChainHandles>();

  constructor(channel: RulesChannel, place: TablePlace, encoder: RuleEncoder) {
    this.#channel = channel;
    this.#place = place;
    this.#encoder = encoder;
  }

  /** `undefined`: one of them cannot be encoded. */
  async find(deletions: readonly RuleOperation[]): Promise<FoundRules | undefined> {
    const { generation, table } = await this.#look();
    if (this.#table !== table) this.drop();
    this.#table = table;
    const taken = new Set<number>();
    const handles = new Map<StepOperation, number>();
    for (const operation of deletions) {
      const known = this.#chains.get(operation.chain) ?? (await this.#read(operation.chain));
      const handle = this.#first(known, operation.rule, taken);
      if (handle === 'notEncoded') return undefined;
      if (handle === undefined) return { generation, handles, missing: operation };
      taken.add(handle);
      handles.set(operation, handle);
    }
    return { generation, handles, missing: undefined };
  }

  /** Those of the chains that are known, and whose new rules are few enough. */
  echoedChains(operations: readonly StepOperation[]): ReadonlySet<string> {
    const counts = new Map<string, number>();
    for (const operation of operations)
      if ('chain' in operation && isAddition(operation) && this.#chains.has(operation.chain))
        counts.set(operation.chain, (counts.get(operation.chain) ?? 0) + 1);
    return new Set([...counts].flatMap(([chain, count]) => (count <= MOST_ECHOES ? chain : [])));
  }

  /** What the kernel has done; `added`: handles of rules that were added. */
  applied(
    operations: readonly StepOperation[],
    found: FoundRules | undefined,
    added: ReadonlyMap<StepOperation, number>,
  ): void {
    if (this.#chains.size === 0) return;
    for (const operation of operations) {
      const chain = 'chain' in operation ? this.#chains.get(operation.chain) : undefined;
      if (!chain || !('chain' in operation)) continue;
      const key = 'rule' in operation ? this.#keyOf(operation.rule) : undefined;
      const handle = found?.handles.get(operation) ?? added.get(operation);
      if (operation.kind === 'addChain') continue;
      if (key === undefined || handle === undefined || !('rule' in operation)) this.drop(operation.chain);
      else if (operation.kind === 'deleteRule') {
        if (!chain.delete(key, handle)) this.drop(operation.chain);
      } else chain.add(key, handle, operation.kind === 'insertRule');
    }
  }

  /** Its rules have to be noted when they are written. */
  knows(chain: string): boolean {
    return this.#chains.has(chain);
  }

  drop(chain?: string): void {
    if (chain === undefined) this.#chains.clear();
    else this.#chains.delete(chain);
  }

  #first(known: ChainHandles, rule: Rule, taken: ReadonlySet<number>): number | undefined | 'notEncoded' {
    const key = this.#keyOf(rule);
    if (key === undefined) return 'notEncoded';
    const handle = known.first(key, taken);
    if (handle !== undefined) return handle;
    this.#others ??= this.#encoder.inOtherDialects();
    for (const encoder of this.#others) {
      const other = this.#keyOf(rule, encoder);
      const found = other === undefined ? undefined : known.first(other, taken);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #keyOf(rule: Rule, encoder = this.#encoder): number | undefined {
    const digest = encoder.digest(rule, this.#digester);
    return digest && digestNumber(digest.high, digest.low);
  }

  async #look(): Promise<{ readonly generation: number; readonly table: bigint | undefined }> {
    const [generation, table] = await this.#channel.requestAll([getGeneration(), getTable(this.#place)]);
    const [first] = generation?.kind === 'answered' ? generation.messages : [];
    if (!first) throw new JunctionError('NETLINK_FAILED', 'netlink: cannot ask for the generation');
    const [listed] = table?.kind === 'answered' ? table.messages : [];
    return {
      generation: decodeGeneration(first.payload).id,
      table: listed && decodeTable(listed.payload).handle,
    };
  }

  async #read(chain: string): Promise<ChainHandles> {
    const [words = new Uint32Array()] = await readUntilStable([chain], `the chain ${chain}`, async () => {
      const [reply] = await this.#channel.digestRules([getRules(this.#place, chain)]);
      if (reply?.kind === 'answered') return [reply.interrupted ? undefined : reply.words];
      if (reply?.errno === constants.errno.ENOENT) return [new Uint32Array()];
      const why = reply?.name ?? 'no answer';
      throw new JunctionError('NETLINK_FAILED', `netlink: cannot list the rules of ${chain}: ${why}`);
    });
    const known = new ChainHandles();
    for (let at = 0; at < words.length; at += WORDS_PER_RULE) {
      const [high = 0, low = 0, handleHigh = 0, handleLow = 0] = words.subarray(at, at + WORDS_PER_RULE);
      known.add(digestNumber(high, low), handleHigh * WORD + handleLow, false);
    }
    this.#chains.set(chain, known);
    return known;
  }
}

function isAddition({ kind }: StepOperation): boolean {
  return kind === 'appendRule' || kind === 'insertRule';
}

/** Of one chain, by digest. Nearly all rules are there once. */
class ChainHandles {
  readonly #handles = new Map<number, number | readonly number[]>();

  add(key: number, handle: number, isFirst: boolean): void {
    const known = this.#handles.get(key);
    if (known === undefined) this.#handles.set(key, handle);
    else this.#handles.set(key, isFirst ? [handle, listed(known)].flat() : [listed(known), handle].flat());
  }

  /** The one that `iptables -D` would delete. */
  first(key: number, taken: ReadonlySet<number>): number | undefined {
    return listed(this.#handles.get(key) ?? []).find((handle) => !taken.has(handle));
  }

  /** Returns whether it was there. */
  delete(key: number, handle: number): boolean {
    const known = listed(this.#handles.get(key) ?? []);
    const left = known.filter((each) => each !== handle);
    const [only] = left;
    if (only === undefined) this.#handles.delete(key);
    else this.#handles.set(key, left.length === 1 ? only : left);
    return left.length < known.length;
  }
}

function listed(handles: number | readonly number[]): readonly number[] {
  return typeof handles === 'number' ? [handles] : handles;
}

/** Our table in the kernel: a transaction becomes one netlink batch. */
import { constants } from 'node:os';
import { affinityMap, BACKSTOP_COMMENT, TABLE, TABLE_COMMENT } from './rules/names.ts';
import { printKey } from './rules/print.ts';
import type { ChainSpec, Element, Ruleset, TableSet } from './rules/rule.ts';
import type {
  TransactionOutcome,
  NftClient,
  TableOperation,
  AffinityEntry,
  TableState,
  TableTransaction,
} from './rules/transaction.ts';
import { JunctionError } from '../../errors.ts';
import type { Family } from '../../model/ip.ts';
import type { Protocol } from '../../model/objects.ts';
import { type DumpReply, messagesOf, type TransactionChannel } from '../../netlink/channel.ts';
import { type NftOperation, transaction as batchOf } from '../../netlink/nftables/transaction.ts';
import type { Message } from '../../netlink/codec.ts';
import {
  decodeChain,
  getChains,
  decodeTable,
  getTable,
  type KernelTable,
  decodeRule,
  decodeSet,
  getRules,
  getSets,
} from '../../netlink/nftables/objects.ts';
import {
  decodeElements,
  elementList,
  getElements,
  type SetElement,
  readElements,
} from '../../netlink/nftables/elements.ts';
import type { Expression } from '../../netlink/nftables/expressions.ts';
import type { TablePlace } from '../../netlink/nftables/message.ts';
import { propertiesOf } from '../../netlink/nftables/setSpec.ts';
import { lowerRule } from './lower.ts';
import { elementsOf, endpointOf, keyOf, listOf, specOf } from './sets.ts';
import { systemClock } from '../../time/systemClock.ts';
import { wait } from '../../time/wait.ts';

/** The kernel is busy with another program's change. */
const TRANSIENT: ReadonlySet<string> = new Set(['EINTR', 'EAGAIN', 'EBUSY', 'ENOBUFS']);
const TRIES = 4;
const PAUSE_MS = 5;
/** A set or chain that is part of a rule: it is deleted with the rule, and cannot be deleted by itself. */
const ANONYMOUS = /^__(?:set|map|chain)\d/;

/** Elements that we cannot represent, by set. */
type UnknownElements = ReadonlyMap<string, readonly SetElement[]>;

export class NetlinkNftClient implements NftClient {
  readonly #family: Family;
  readonly #channel: TransactionChannel;
  readonly #place: TablePlace;

  constructor(family: Family, channel: TransactionChannel, table = TABLE) {
    this.#family = family;
    this.#channel = channel;
    this.#place = { family: family === 'IPv4' ? 'ip' : 'ip6', table };
  }

  async isThere(): Promise<boolean> {
    return (await this.#table()) !== undefined;
  }

  async inspect(wanted: Ruleset, only?: ReadonlySet<string>): Promise<TableState | undefined> {
    const table = await this.#table();
    if (!table) return undefined;
    const [setsReply, chainsReply, rulesReply] = await this.#channel.dumpAll([
      getSets(this.#place),
      getChains(this.#place.family),
      getRules(this.#place),
    ]);
    if (isAbsent(setsReply)) return undefined; // it went meanwhile
    const sets = this.#compareSets(wanted, messagesOf(setsReply, 'the sets of our table'));
    const chains = this.#compareChains(
      wanted,
      messagesOf(chainsReply, 'the chains of our table'),
      messagesOf(rulesReply, 'the rules of our table'),
    );
    const readable = wanted.sets.filter(
      ({ name, dynamicSize }) => sets.get(name) === 'same' && !dynamicSize && (only?.has(name) ?? true),
    );
    const { elements, unknown } = await this.#readElements(readable);
    return {
      isDormant: table.isDormant,
      sets,
      chains,
      elements,
      ...(unknown.size > 0 && { deleteUnknown: () => this.#deleteUnknown(unknown) }),
    };
  }

  async commit(transaction: TableTransaction): Promise<TransactionOutcome> {
    const handles = await this.#handlesFor(transaction);
    const missing = transaction.find((each) => each.kind === 'deleteRule' && !handles.has(each));
    if (missing) return { state: 'refused', name: 'ENOENT', operation: missing };
    const batch = batchOf(transaction.map((operation) => this.#lower(operation, handles)));
    for (let tries = 1; ; tries++) {
      const outcome = await this.#channel.commit(batch);
      if (outcome.state === 'done') return outcome;
      const [first] = outcome.state === 'refused' ? outcome.refusals : [];
      const name = first?.name ?? 'ERESTART';
      if (tries < TRIES && (TRANSIENT.has(name) || outcome.state === 'outdated')) {
        await wait(systemClock, PAUSE_MS * tries);
        continue;
      }
      const index = first?.operation;
      return { state: 'refused', name, operation: index === undefined ? undefined : transaction[index] };
    }
  }

  async affinityEntries(protocol: Protocol): Promise<readonly AffinityEntry[]> {
    const set: TableSet = {
      name: affinityMap(protocol),
      key: ['address', 'address', 'port'],
      data: 'endpoint',
    };
    const [reply] = await this.#channel.dumpAll([getElements({ ...this.#place, set: set.name })]);
    if (isAbsent(reply)) return [];
    return messagesOf(reply, 'the affinity entries').flatMap(({ payload }) =>
      decodeElements(payload).elements.flatMap((element) => {
        const { address, secondAddress, port } = keyOf(set, element, this.#family) ?? {};
        if (!address || !secondAddress || port === undefined || !element.data) return [];
        const endpoint = endpointOf(element.data, this.#family);
        return [{ client: address, destination: secondAddress, port, endpoint }];
      }),
    );
  }

  /** The kernel deletes a rule by its handle, which nothing but a listing tells. */
  async #handlesFor(transaction: TableTransaction): Promise<ReadonlyMap<TableOperation, bigint>> {
    const handles = new Map<TableOperation, bigint>();
    const deletions = transaction.flatMap((operation) =>
      operation.kind === 'deleteRule' ? [operation] : [],
    );
    if (deletions.length === 0) return handles;
    const chains = [...new Set(deletions.map(({ chain }) => chain))];
    const replies = await this.#channel.dumpAll(chains.map((chain) => getRules(this.#place, chain)));
    for (const [index, chain] of chains.entries()) {
      const reply = replies[index];
      const rules = isAbsent(reply)
        ? []
        : messagesOf(reply, `the rules of ${chain}`).map(({ payload }) => decodeRule(payload));
      for (const operation of deletions) {
        if (operation.chain !== chain) continue;
        const wanted = canonical(lowerRule(operation.rule, this.#family));
        const found = rules.findIndex(({ expressions }) => canonical(expressions) === wanted);
        const [rule] = found < 0 ? [] : rules.splice(found, 1);
        if (rule) handles.set(operation, rule.handle);
      }
    }
    return handles;
  }

  #lower(operation: TableOperation, handles: ReadonlyMap<TableOperation, bigint>): NftOperation {
    const place = this.#place;
    switch (operation.kind) {
      case 'addTable': {
        const { isOwned = false } = operation;
        return { kind: 'addTable', ...place, comment: isOwned ? BACKSTOP_COMMENT : TABLE_COMMENT, isOwned };
      }
      case 'deleteTable':
        return { ...operation, ...place };
      case 'addSet':
        return { kind: 'addSet', ...place, set: specOf(operation.set, this.#family) };
      case 'deleteSet':
        return { kind: 'deleteSet', ...place, set: operation.name };
      case 'addChain': {
        const { hook } = operation;
        const base =
          hook && ({ type: 'nat', hook: hook.point, priority: hook.priority, policy: 'accept' } as const);
        return { kind: 'addChain', ...place, chain: operation.name, ...(base && { base }) };
      }
      case 'flushChain':
      case 'deleteChain':
        return { kind: operation.kind, ...place, chain: operation.name };
      case 'addRule': {
        const { chain, rule } = operation;
        const expressions = lowerRule(rule, this.#family);
        const { comment } = rule;
        return { kind: 'addRule', ...place, chain, expressions, ...(comment !== undefined && { comment }) };
      }
      case 'deleteRule':
        return {
          kind: 'deleteRule',
          ...place,
          chain: operation.chain,
          handle: handles.get(operation) ?? 0n,
        };
      case 'addElements':
      case 'deleteElements': {
        const { kind, set } = operation;
        const elements = listOf(set, operation.elements, kind === 'deleteElements');
        return { kind, ...place, set: set.name, elements };
      }
    }
  }

  #compareSets(wanted: Ruleset, messages: readonly Message[]): Map<string, 'same' | 'different'> {
    const specs = new Map(
      wanted.sets.map((set) => [set.name, canonical(propertiesOf(specOf(set, this.#family)))]),
    );
    const result = new Map<string, 'same' | 'different'>();
    for (const { payload } of messages) {
      const { family: _, table: __, name, handle: ___, comment: ____, ...properties } = decodeSet(payload);
      if (ANONYMOUS.test(name)) continue;
      const spec = specs.get(name);
      result.set(name, spec === undefined || spec === canonical(properties) ? 'same' : 'different');
    }
    return result;
  }

  #compareChains(
    { chains }: Ruleset,
    chainMessages: readonly Message[],
    ruleMessages: readonly Message[],
  ): Map<string, 'same' | 'different'> {
    const rules = new Map<string, (readonly Expression[])[]>();
    for (const { payload } of ruleMessages) {
      const rule = decodeRule(payload);
      const known = rules.get(rule.chain);
      if (known) known.push(rule.expressions);
      else rules.set(rule.chain, [rule.expressions]);
    }
    const wanted = new Map(chains.map((chain) => [chain.name, chain]));
    const result = new Map<string, 'same' | 'different'>();
    for (const { payload } of chainMessages) {
      const { table, name, base } = decodeChain(payload);
      if (table !== this.#place.table || ANONYMOUS.test(name)) continue;
      const chain = wanted.get(name);
      const lowered = chain?.rules.map((rule) => lowerRule(rule, this.#family)) ?? [];
      const isSame =
        chain === undefined ||
        (sameRules(lowered, rules.get(name) ?? [], chain.isUnordered) && sameHook(chain, base));
      result.set(name, isSame ? 'same' : 'different');
    }
    return result;
  }

  async #table(): Promise<KernelTable | undefined> {
    const reply = await this.#channel.request(getTable(this.#place));
    const [message] = reply.kind === 'answered' ? reply.messages : [];
    if (message) return decodeTable(message.payload);
    if (reply.kind === 'refused' && reply.errno === constants.errno.ENOENT) return undefined;
    const why = reply.kind === 'refused' ? reply.name : 'an empty answer';
    throw new JunctionError('NETLINK_FAILED', `netlink: cannot ask for the table: ${why}`);
  }

  /** One set after the other, so that no more of them is in memory than has to be. */
  async #readElements(
    sets: readonly TableSet[],
  ): Promise<{ readonly elements: TableState['elements']; readonly unknown: UnknownElements }> {
    const result = new Map<string, ReadonlyMap<string, Element>>();
    const unknown = new Map<string, readonly SetElement[]>();
    for (const set of sets) {
      const raw = await this.#read(set.name);
      if (!raw) continue;
      const read = elementsOf(set, raw, this.#family);
      result.set(set.name, new Map(read.elements.map((element) => [printKey(element.key), element])));
      if (read.unknown.length > 0) unknown.set(set.name, read.unknown);
    }
    return { elements: result, unknown };
  }

  /** Failure is ignored: they do not affect our rules. */
  async #deleteUnknown(unknown: UnknownElements): Promise<void> {
    for (const [set, elements] of unknown)
      await this.#channel.commit(
        batchOf([{ kind: 'deleteElements', ...this.#place, set, elements: elementList(elements) }]),
      );
  }

  /** `undefined`: there is no such set. */
  async #read(set: string): Promise<readonly SetElement[] | undefined> {
    const [reply] = await readElements(this.#channel, [{ ...this.#place, set }]);
    if (reply?.kind === 'answered') return reply.elements;
    if (reply?.errno === constants.errno.ENOENT) return undefined;
    throw new JunctionError('NETLINK_FAILED', `netlink: cannot list the elements of ${set}: ${reply?.name}`);
  }
}

function sameRules(
  wanted: readonly (readonly Expression[])[],
  found: readonly (readonly Expression[])[],
  isUnordered = false,
): boolean {
  const texts = [wanted.map(canonical), found.map(canonical)];
  if (isUnordered) for (const each of texts) each.sort();
  return canonical(texts[0]) === canonical(texts[1]);
}

function sameHook({ hook }: ChainSpec, base: ReturnType<typeof decodeChain>['base']): boolean {
  if (!hook) return base === undefined;
  return (
    base?.type === 'nat' &&
    base.hook === hook.point &&
    base.priority === hook.priority &&
    base.policy === 'accept'
  );
}

/** Equal text for equal values, bytes and large numbers included, whatever the order of their parts. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) => {
    if (part instanceof Uint8Array) return Buffer.from(part).toString('hex');
    if (typeof part === 'bigint') return part.toString();
    if (typeof part !== 'object' || part === null || Array.isArray(part)) return part;
    return Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}

function isAbsent(reply: DumpReply | undefined): boolean {
  return reply?.kind === 'refused' && reply.errno === constants.errno.ENOENT;
}

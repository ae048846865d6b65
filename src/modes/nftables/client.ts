/** Our table in the kernel: a transaction becomes one netlink batch. */
import { constants } from 'node:os';
import { affinitySet } from './rules/affinity.ts';
import { BACKSTOP_COMMENT, TABLE, TABLE_COMMENT } from './rules/names.ts';
import { NFT_FAMILY, printKey } from './rules/print.ts';
import { byName, groupBy } from './rules/table.ts';
import type {
  AffinityEntry,
  ChainSpec,
  Comparison,
  DifferingElement,
  Element,
  ForeignElement,
  FrontendPlace,
  NftClient,
  Ruleset,
  SetsByName,
  TableOperation,
  TableSet,
  TableState,
  TableTransaction,
  TransactionOutcome,
} from './rules/table.ts';
import { JunctionError } from '../../errors.ts';
import type { Family } from '../../model/ip.ts';
import type { Protocol } from '../../model/objects.ts';
import { messagesOf } from '../../netlink/channel.ts';
import type { DumpReply, NetlinkChannel, ScanEnd, TransactionChannel } from '../../netlink/channel.ts';
import { type NftOperation, transaction as batchOf } from '../../netlink/nftables/transaction.ts';
import type { Message } from '../../netlink/codec.ts';
import {
  decodeChain,
  decodeRule,
  decodeSet,
  decodeTable,
  getChains,
  getRules,
  getSets,
  getTable,
} from '../../netlink/nftables/objects.ts';
import type { KernelTable } from '../../netlink/nftables/objects.ts';
import {
  decodeElements,
  elementList,
  elementsRequest,
  getElements,
  readElements,
} from '../../netlink/nftables/elements.ts';
import type { SetElement, SetPlace } from '../../netlink/nftables/elements.ts';
import type { TablePlace } from '../../netlink/nftables/message.ts';
import { ANONYMOUS, baseOf, canonical, isSameSet } from './comparison.ts';
import { lowerRule } from './lower.ts';
import { affinityFilter, elementReader, elementsOf, KeyBytes, listOf, specOf } from './sets.ts';
import { systemClock } from '../../time/systemClock.ts';
import { wait } from '../../time/wait.ts';

/** What the kernel says, or a message ends with, when it is busy with another program's change. */
export const TRANSIENT = /\b(?:EINTR|EAGAIN|EBUSY|ENOBUFS|ERESTART|EMFILE)\b/;
const TRIES = 4;
const PAUSE_MS = 5;
export class NetlinkNftClient implements NftClient {
  readonly #family: Family;
  readonly #channel: TransactionChannel;
  readonly #place: TablePlace;

  constructor(family: Family, channel: TransactionChannel, table = TABLE) {
    this.#family = family;
    this.#channel = channel;
    this.#place = { family: NFT_FAMILY[family], table };
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
    const elements = new Map<string, ReadonlyMap<string, Element>>();
    const unknown = new Map<string, readonly SetElement[]>();
    // One set after the other, so that no more of them is in memory than has to be.
    for (const set of readable) {
      const raw = await readSet(this.#channel, { ...this.#place, set: set.name });
      if (!raw) continue;
      const read = elementsOf(set, raw, this.#family);
      elements.set(set.name, new Map(read.elements.map((element) => [printKey(element.key), element])));
      if (read.unknown.length > 0) unknown.set(set.name, read.unknown);
    }
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
      if (tries < TRIES && TRANSIENT.test(name)) {
        await wait(systemClock, PAUSE_MS * tries);
        continue;
      }
      const index = first?.operation;
      return { state: 'refused', name, operation: index === undefined ? undefined : transaction[index] };
    }
  }

  async differing(elements: readonly Element[], sets: SetsByName): Promise<readonly DifferingElement[]> {
    const lists = this.#lists(elements, sets);
    const found = await this.#channel.lookUp(
      lists.map(({ set, own }) => ({
        request: getElements({ ...this.#place, set: set.name }),
        elements: listOf(set, own, false),
      })),
    );
    return lists.flatMap(({ own }, index) =>
      (found[index] ?? []).flatMap(({ place, isMissing }) => {
        const element = own[place];
        return element ? [{ element, isMissing }] : [];
      }),
    );
  }

  async lookUp(elements: readonly Element[], sets: SetsByName): Promise<readonly ForeignElement[]> {
    const asked = this.#lists(elements, sets).flatMap(({ set, own }) =>
      own.map((element) => ({ set, element })),
    );
    const replies = await this.#channel.requestAll(
      asked.map(({ set, element }) => {
        const [encoded] = listOf(set, [element], true).messages();
        return elementsRequest('get elements', 0, { ...this.#place, set: set.name }, encoded);
      }),
    );
    return asked.flatMap(({ set, element }, index) => {
      const reply = replies[index];
      const [message] = isAbsent(reply) ? [] : messagesOf(reply, `an element of ${set.name}`);
      const [raw] = message ? decodeElements(message.payload).elements : [];
      const found = raw && elementReader(set, this.#family)(raw);
      const missing = { element, isThere: false };
      if (!found) return [missing];
      const there = { element: found, isThere: true };
      // Of ranges, it is that which holds the address.
      return printKey(found.key) === printKey(element.key) ? [there] : [there, missing];
    });
  }

  #lists(
    elements: readonly Element[],
    sets: SetsByName,
  ): readonly { readonly set: TableSet; readonly own: readonly Element[] }[] {
    return [...groupBy(elements, ({ set }) => set)].flatMap(([name, own]) => {
      const set = sets.get(name);
      return set ? [{ set, own }] : [];
    });
  }

  async sizes(): Promise<ReadonlyMap<string, number | undefined>> {
    const [reply] = await this.#channel.dumpAll([getSets(this.#place)]);
    const messages = isAbsent(reply) ? [] : messagesOf(reply, 'the sets of our table');
    return new Map(
      messages.map(({ payload }) => {
        const { name, count } = decodeSet(payload);
        return [name, count];
      }),
    );
  }

  keyList(set: TableSet): KeyBytes {
    return new KeyBytes(set);
  }

  async others(set: TableSet, keys: KeyBytes): Promise<readonly Element[] | undefined> {
    const part = { offset: 0, width: keys.width, values: keys.finish() };
    const filter = { kind: 'elements', parts: keys.width === 0 ? [] : [part], isExcluding: true } as const;
    const found: Element[] = [];
    let areKnown = true;
    const end = await this.#channel.scan(
      getElements({ ...this.#place, set: set.name }),
      filter,
      (messages) => {
        for (const { payload } of messages) {
          const { elements, unknown } = elementsOf(set, decodeElements(payload).elements, this.#family);
          areKnown &&= unknown.length === 0;
          found.push(...elements);
        }
      },
    );
    return areKnown && end.kind === 'answered' ? found : undefined;
  }

  async affinityEntries(
    protocol: Protocol,
    frontends?: readonly FrontendPlace[],
  ): Promise<readonly AffinityEntry[]> {
    const set = affinitySet(protocol);
    const read = elementReader(set, this.#family);
    const filter = frontends && affinityFilter(frontends, this.#family);
    const entries: AffinityEntry[] = [];
    const take = (messages: readonly Message[]): void => {
      for (const { payload } of messages)
        for (const element of decodeElements(payload).elements) {
          const { key: { address: client, secondAddress: destination, port } = {}, endpoint } =
            read(element) ?? {};
          if (client && destination && port !== undefined && endpoint)
            entries.push({ client, destination, port, endpoint });
        }
    };
    for (let tries = 1; ; tries++) {
      const end = await this.#channel.scan(getElements({ ...this.#place, set: set.name }), filter, take);
      if (isAbsent(end)) return [];
      // What interrupts it are commits to other sets. Packets add entries all the time, and the kernel does not say so.
      if (end.kind === 'answered') return entries;
      if (!TRANSIENT.test(end.name) || tries === TRIES)
        throw new JunctionError('NETLINK_FAILED', `netlink: cannot list the affinity entries: ${end.name}`);
      entries.length = 0;
    }
  }

  /** The kernel deletes a rule by its handle, which is only in a listing. */
  async #handlesFor(transaction: TableTransaction): Promise<ReadonlyMap<TableOperation, bigint>> {
    const handles = new Map<TableOperation, bigint>();
    const deletions = transaction.flatMap((each) => (each.kind === 'deleteRule' ? [each] : []));
    const byChain = [...groupBy(deletions, ({ chain }) => chain)];
    if (byChain.length === 0) return handles;
    const replies = await this.#channel.dumpAll(byChain.map(([chain]) => getRules(this.#place, chain)));
    for (const [index, [chain, operations]] of byChain.entries()) {
      const reply = replies[index];
      const messages = isAbsent(reply) ? [] : messagesOf(reply, `the rules of ${chain}`);
      const rules = messages.map(({ payload }) => decodeRule(payload));
      for (const operation of operations) {
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
      case 'addTable':
        return { ...operation, ...place, comment: operation.isOwned ? BACKSTOP_COMMENT : TABLE_COMMENT };
      case 'addSet':
        return { kind: 'addSet', ...place, set: specOf(operation.set, this.#family) };
      case 'addChain': {
        const { kind, chain, hook } = operation;
        return { kind, ...place, chain, ...(hook && { base: baseOf(hook) }) };
      }
      case 'addRule': {
        const { kind, chain, rule } = operation;
        return { kind, ...place, chain, expressions: lowerRule(rule, this.#family) };
      }
      case 'deleteRule':
        return { ...place, kind: 'deleteRule', chain: operation.chain, handle: handles.get(operation) ?? 0n };
      case 'addElements':
      case 'deleteElements': {
        const { kind, set } = operation;
        const elements = listOf(set, operation.elements, kind === 'deleteElements');
        return { kind, ...place, set: set.name, elements };
      }
      default:
        return { ...operation, ...place };
    }
  }

  #compareSets({ sets }: Ruleset, messages: readonly Message[]): Comparison {
    const wanted = byName(sets);
    const found = messages.map(({ payload }) => {
      const listed = decodeSet(payload);
      const set = wanted.get(listed.name);
      return { name: listed.name, isSame: !set || isSameSet(set, listed, this.#family) };
    });
    return comparisonOf(found);
  }

  #compareChains(
    { chains }: Ruleset,
    chainMessages: readonly Message[],
    ruleMessages: readonly Message[],
  ): Comparison {
    const decoded = ruleMessages.map(({ payload }) => decodeRule(payload));
    const rules = groupBy(decoded, ({ chain }) => chain);
    const wanted = byName(chains);
    const found = chainMessages
      .map(({ payload }) => decodeChain(payload))
      .filter(({ table }) => table === this.#place.table)
      .map(({ name, base }) => {
        const chain = wanted.get(name);
        const texts = (rules.get(name) ?? []).map(({ expressions }) => canonical(expressions));
        const wantedBase = chain?.hook && baseOf(chain.hook);
        const isSame = canonical(base) === canonical(wantedBase);
        return { name, isSame: !chain || (isSame && this.#hasRules(chain, texts)) };
      });
    return comparisonOf(found);
  }

  #hasRules({ rules, isUnordered }: ChainSpec, found: readonly string[]): boolean {
    const texts = [found, rules.map((rule) => canonical(lowerRule(rule, this.#family)))];
    const [one, other] = isUnordered ? texts.map((each) => each.toSorted()) : texts;
    return canonical(one) === canonical(other);
  }

  async #table(): Promise<KernelTable | undefined> {
    const reply = await this.#channel.request(getTable(this.#place));
    const [message] = reply.kind === 'answered' ? reply.messages : [];
    if (message) return decodeTable(message.payload);
    if (reply.kind === 'refused' && reply.errno === constants.errno.ENOENT) return undefined;
    const why = reply.kind === 'refused' ? reply.name : 'an empty answer';
    throw new JunctionError('NETLINK_FAILED', `netlink: cannot ask for the table: ${why}`);
  }

  /** Failure is ignored: they do not affect our rules. */
  async #deleteUnknown(unknown: ReadonlyMap<string, readonly SetElement[]>): Promise<void> {
    for (const [set, elements] of unknown)
      await this.#channel.commit(
        batchOf([{ kind: 'deleteElements', ...this.#place, set, elements: elementList(elements) }]),
      );
  }
}

/** `undefined`: there is no such set. */
export async function readSet(
  channel: NetlinkChannel,
  place: SetPlace,
): Promise<readonly SetElement[] | undefined> {
  const [reply] = await readElements(channel, [place]);
  if (reply?.kind === 'answered') return reply.elements;
  if (reply?.errno === constants.errno.ENOENT) return undefined;
  const why = reply?.name ?? 'no answer';
  throw new JunctionError('NETLINK_FAILED', `netlink: cannot list the elements of ${place.set}: ${why}`);
}

function comparisonOf(found: readonly { readonly name: string; readonly isSame: boolean }[]): Comparison {
  const named = found.filter(({ name }) => !ANONYMOUS.test(name));
  return new Map(named.map(({ name, isSame }) => [name, isSame ? 'same' : 'different']));
}

export function isAbsent(reply: DumpReply | ScanEnd | undefined): boolean {
  return reply?.kind === 'refused' && reply.errno === constants.errno.ENOENT;
}

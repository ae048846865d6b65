/** Our tables in the kernel: a transaction becomes one netlink batch. */
import type { Family } from '../../model/ip.ts';
import type { Protocol } from '../../model/objects.ts';
import { isAbsent, type NetlinkChannel } from '../../netlink/channel.ts';
import { decodeElements, getElements } from '../../netlink/nftables/elements.ts';
import type { SetElement } from '../../netlink/nftables/elements.ts';
import type { TablePlace } from '../../netlink/nftables/message.ts';
import { decodeRule, getRules } from '../../netlink/nftables/objects.ts';
import { type NftOperation, transaction as batchOf } from '../../netlink/nftables/transaction.ts';
import { systemClock } from '../../time/systemClock.ts';
import { wait } from '../../time/wait.ts';
import { baseOf, canonical } from './comparison.ts';
import { lowerRule } from './lower.ts';
import { affinitySet } from './rules/affinity.ts';
import { BACKSTOP_COMMENT, BACKSTOP_TABLE, TABLE_COMMENT } from './rules/names.ts';
import { NFT_FAMILY, printKey } from './rules/print.ts';
import { groupBy } from './rules/table.ts';
import type {
  AffinityEntry,
  FrontendPlace,
  NftClient,
  TableOperation,
  TableTransaction,
  TransactionOutcome,
} from './rules/table.ts';
import { elementReader, listOf, specOf } from './sets.ts';

/** What the kernel says, or a message ends with, when it is busy with another program's change. */
export const TRANSIENT = /\b(?:EINTR|EAGAIN|EBUSY|ENOBUFS|ERESTART|EMFILE)\b/;
const TRIES = 4;
const PAUSE_MS = 5;

export class NetlinkNftClient implements NftClient {
  readonly #family: Family;
  readonly #channel: NetlinkChannel;
  readonly #place: TablePlace;

  constructor(family: Family, channel: NetlinkChannel, table: string) {
    this.#family = family;
    this.#channel = channel;
    this.#place = { family: NFT_FAMILY[family], table };
  }

  async commit(transaction: TableTransaction): Promise<TransactionOutcome> {
    const lowered = await this.lower(transaction);
    return lowered.state === 'lowered'
      ? commitBatch(this.#channel, lowered.operations, transaction)
      : lowered;
  }

  /** In the kernel's terms. Refused where a rule to be deleted is not there. */
  async lower(transaction: TableTransaction): Promise<Lowered> {
    const handles = await this.#handlesFor(transaction);
    const missing = transaction.find((each) => each.kind === 'deleteRule' && !handles.has(each));
    if (missing) return { state: 'refused', name: 'ENOENT', operation: missing };
    return { state: 'lowered', operations: transaction.map((operation) => this.#lower(operation, handles)) };
  }

  async affinityEntries(
    protocol: Protocol,
    frontends?: readonly FrontendPlace[],
  ): Promise<readonly AffinityEntry[]> {
    const set = affinitySet(protocol);
    const read = elementReader(set, this.#family);
    const places = frontends && new Set(frontends.map(({ address, port }) => `${address} ${port}`));
    const request = getElements({ ...this.#place, set: set.name });
    /** While the set grows, some are listed twice. */
    const entries = new Map<string, AffinityEntry>();
    const take = (raw: SetElement): void => {
      const { key, endpoint } = read(raw) ?? {};
      const { address: client, secondAddress: destination, port } = key ?? {};
      if (!key || !client || !destination || port === undefined || !endpoint) return;
      if (places && !places.has(`${destination} ${port}`) && !places.has(`undefined ${port}`)) return;
      const { timeoutMs = 0, expiresMs = timeoutMs } = raw;
      const lifetime = { timeoutMs, leftMs: Math.min(expiresMs, timeoutMs) };
      entries.set(printKey(key), { client, destination, port, endpoint, lifetime });
    };
    // Commits to other sets interrupt it; what packets add meanwhile, the kernel does not say. So it is not read again.
    const end = await this.#channel.scan(request, (messages) => {
      for (const { payload } of messages) decodeElements(payload).elements.forEach(take);
    });
    return isAbsent(end, 'the affinity entries') ? [] : [...entries.values()];
  }

  /** The kernel deletes a rule by its handle, which is only in a listing. */
  async #handlesFor(transaction: TableTransaction): Promise<ReadonlyMap<TableOperation, bigint>> {
    const handles = new Map<TableOperation, bigint>();
    const deletions = transaction.flatMap((each) => (each.kind === 'deleteRule' ? [each] : []));
    const byChain = [...groupBy(deletions, ({ chain }) => chain)];
    for (const [chain, operations] of byChain) {
      const listed = await this.#channel.list(
        getRules(this.#place, chain),
        `the rules of ${chain}`,
        decodeRule,
      );
      const rules = [...listed];
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
        return {
          ...operation,
          ...place,
          comment: place.table === BACKSTOP_TABLE ? BACKSTOP_COMMENT : TABLE_COMMENT,
        };
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
}

export type Lowered =
  | { readonly state: 'lowered'; readonly operations: readonly NftOperation[] }
  | Extract<TransactionOutcome, { state: 'refused' }>;

/** `operations` one for each of `given`, which an outcome names. */
export async function commitBatch(
  channel: NetlinkChannel,
  operations: readonly NftOperation[],
  given: TableTransaction,
): Promise<TransactionOutcome> {
  const batch = batchOf(operations);
  for (let tries = 1; ; tries++) {
    const outcome = await channel.commit(batch);
    if (outcome.state === 'done') return outcome;
    const [first] = outcome.refusals;
    const name = first?.name ?? 'refused';
    if (tries < TRIES && TRANSIENT.test(name)) {
      await wait(systemClock, PAUSE_MS * tries);
      continue;
    }
    const index = first?.operation;
    return { state: 'refused', name, operation: index === undefined ? undefined : given[index] };
  }
}

/**
 * Writes the tables of iptables-nft by netlink: a step is one transaction of nf_tables. The kernel then has what
 * `iptables-nft-restore --noflush --counters` would have left, byte for byte, without a program that reads all chains first.
 */
import { constants } from 'node:os';
import { JunctionError } from '../../../errors.ts';
import type { Family } from '../../../model/ip.ts';
import type { RulesChannel } from '../../../netlink/channel.ts';
import { NLM_F_CREATE, NLM_F_NONREC } from '../../../netlink/codec.ts';
import { nftRequest, type TablePlace } from '../../../netlink/nftables/message.ts';
import {
  CHAIN_ATTRIBUTES,
  getChain,
  getTable,
  RULE_ATTRIBUTES,
  TABLE_ATTRIBUTES,
} from '../../../netlink/nftables/objects.ts';
import { RuleBatch } from '../../../netlink/nftables/ruleBatch.ts';
import type { CommitRefusal } from '../../../netlink/nftables/transaction.ts';
import { systemClock } from '../../../time/systemClock.ts';
import { wait } from '../../../time/wait.ts';
import type { Step } from '../rules/edit.ts';
import type { Table } from '../rules/rule.ts';
import { baseChainOf } from './baseChains.ts';
import { RuleEncoder } from './encodeRule.ts';
import { operationsOf, printOperation, type StepOperation } from './operations.ts';
import { type FoundRules, RuleHandles } from './ruleHandles.ts';

/** Another program may commit between our look and our transaction, or the kernel may be busy with it. */
const TRIES = 8;
const PAUSE_MS = 2;
const TRANSIENT: ReadonlySet<string> = new Set(['EINTR', 'EAGAIN', 'ENOBUFS', 'EMFILE']);
/** Enough for most operations, so that the buffer need not grow. */
const BYTES_PER_OPERATION = 512;
const MOST_FIRST_BYTES = 1 << 22;

interface Attempt {
  readonly operations: readonly StepOperation[];
  readonly found: FoundRules | undefined;
}

/**
 * The kernel takes some 60 ms for so many new chains and their rules. Fewer are no better: with each transaction that adds
 * a rule it walks every rule that packets can come to, 80 ms with 10,000 services.
 */
const CHAINS_PER_COMMIT = 2000;

export class NetlinkWriter {
  readonly chainsPerCommit = CHAINS_PER_COMMIT;
  readonly #family: Family;
  readonly #channel: RulesChannel;
  readonly #encoder: RuleEncoder;
  readonly #handles = new Map<Table, RuleHandles>();

  constructor(family: Family, channel: RulesChannel, encoder = new RuleEncoder({ family })) {
    this.#family = family;
    this.#channel = channel;
    this.#encoder = encoder;
  }

  /** Returns the bytes that were sent. `undefined`: it has a rule that only `iptables-restore` can write; nothing was done. */
  async commit(step: Step): Promise<number | undefined> {
    const { table } = step;
    const wanted = operationsOf(step);
    let operations = wanted;
    for (let tries = 1; ; tries++) {
      const found = await this.#find(table, operations);
      if (found === 'notEncoded') return undefined;
      const isLast = tries === TRIES;
      if (found?.missing) {
        if (isLast || tries > 1) throw refusedError(table, found.missing, 'ENOENT');
        this.#handlesOf(table).drop();
        continue;
      }
      const reply = await this.#attempt(table, { operations, found });
      if (reply === undefined) return undefined;
      if (reply.state === 'done') return reply.bytes;
      const [first] = reply.refusals;
      if (!first) {
        if (isLast) throw changedError(table);
      } else {
        const operation = first.operation === undefined ? undefined : operations[first.operation];
        if (isLast || !(await this.#mayRetry(first, operation, tries)))
          throw refusedError(table, operation, first.name);
        if (operation?.kind === 'deleteRule') this.#handlesOf(table).drop();
        else if (first.errno === constants.errno.ENOENT) {
          const missing = await this.#missingParts(table, wanted);
          // Where nothing is missing any more, another program has made it meanwhile: `iptables -N`, by which the canary comes, makes its table too.
          if (missing.length === 0 && tries > 1) throw refusedError(table, operation, first.name);
          operations = [...missing, ...wanted];
        }
      }
      await wait(systemClock, PAUSE_MS * (tries - 1));
    }
  }

  async #find(
    table: Table,
    operations: readonly StepOperation[],
  ): Promise<FoundRules | undefined | 'notEncoded'> {
    const deletions = operations.flatMap((each) => (each.kind === 'deleteRule' ? [each] : []));
    if (deletions.length === 0) return undefined;
    return (await this.#handlesOf(table).find(deletions)) ?? 'notEncoded';
  }

  async #attempt(
    table: Table,
    { operations, found }: Attempt,
  ): Promise<
    | { readonly state: 'done'; readonly bytes: number }
    | { readonly state: 'refused'; readonly refusals: readonly CommitRefusal[] }
    | undefined
  > {
    const handles = this.#handlesOf(table);
    const capacity = Math.min(operations.length * BYTES_PER_OPERATION + 1024, MOST_FIRST_BYTES);
    const batch = new RuleBatch(this.#placeOf(table), capacity, found?.generation);
    const echoed = handles.echoedChains(operations);
    for (const operation of operations)
      if (!this.#write(batch, table, operation, { found, echoed })) return undefined;
    const added = new Map<StepOperation, number>();
    const transaction = batch.finish((place, handle) => {
      const operation = operations[place];
      if (operation) added.set(operation, Number(handle));
    });
    const bytes = batch.length;
    const reply = await this.#channel.commit(transaction);
    if (reply.state === 'outdated') return { state: 'refused', refusals: [] };
    if (reply.state === 'refused') return reply;
    handles.applied(operations, found, added);
    return { state: 'done', bytes };
  }

  /** Returns false for a rule that cannot be encoded. */
  #write(
    batch: RuleBatch,
    table: Table,
    operation: StepOperation,
    { found, echoed }: { readonly found: FoundRules | undefined; readonly echoed: ReadonlySet<string> },
  ): boolean {
    const { family } = this.#placeOf(table);
    switch (operation.kind) {
      case 'addTable':
        batch.add(nftRequest('new table', NLM_F_CREATE, family, TABLE_ATTRIBUTES, { name: table, flags: 0 }));
        return true;
      case 'addBaseChain': {
        const fields = { table, name: operation.chain, ...baseChainOf(table, operation.chain) };
        batch.add(nftRequest('new chain', NLM_F_CREATE, family, CHAIN_ATTRIBUTES, fields));
        return true;
      }
      case 'addChain':
        batch.addChain(operation.chain);
        return true;
      case 'flushChain':
        batch.flushChain(operation.chain);
        return true;
      case 'deleteChain':
        batch.add(
          nftRequest('delete chain', NLM_F_NONREC, family, CHAIN_ATTRIBUTES, {
            table,
            name: operation.chain,
          }),
        );
        return true;
      case 'deleteRule': {
        const handle = BigInt(found?.handles.get(operation) ?? 0);
        const fields = { table, chain: operation.chain, handle };
        batch.add(nftRequest('delete rule', 0, family, RULE_ATTRIBUTES, fields));
        return true;
      }
      case 'appendRule':
      case 'insertRule': {
        const { chain, rule, kind } = operation;
        const encoded = this.#encoder.encode(rule, rule.counters);
        if (!encoded) return false;
        const place = kind === 'appendRule' ? 'end' : 'head';
        batch.addRule(chain, { place, isEchoed: echoed.has(chain) }, encoded);
        return true;
      }
    }
  }

  /** What can be put right, or passes by itself. */
  async #mayRetry(
    { errno, name }: CommitRefusal,
    operation: StepOperation | undefined,
    tries: number,
  ): Promise<boolean> {
    if (TRANSIENT.has(name)) return true;
    return errno === constants.errno.ENOENT && operation !== undefined && tries <= 2;
  }

  /** The table, and base chains that rules are put into, where the kernel has none: iptables makes them too. */
  async #missingParts(table: Table, operations: readonly StepOperation[]): Promise<readonly StepOperation[]> {
    const place = this.#placeOf(table);
    const named = operations.flatMap((each) =>
      each.kind === 'insertRule' || each.kind === 'appendRule' ? each.chain : [],
    );
    const bases = [...new Set(named)].filter((chain) => baseChainOf(table, chain));
    const [own, ...replies] = await this.#channel.requestAll([
      getTable(place),
      ...bases.map((chain) => getChain({ ...place, chain })),
    ]);
    return [
      ...(own?.kind === 'answered' ? [] : [{ kind: 'addTable' } as const]),
      ...bases
        .filter((_, index) => replies[index]?.kind !== 'answered')
        .map((chain) => ({ kind: 'addBaseChain', chain }) as const),
    ];
  }

  #handlesOf(table: Table): RuleHandles {
    let handles = this.#handles.get(table);
    if (!handles)
      this.#handles.set(
        table,
        (handles = new RuleHandles(this.#channel, this.#placeOf(table), this.#encoder)),
      );
    return handles;
  }

  #placeOf(table: Table): TablePlace {
    return { family: this.#family === 'IPv4' ? 'ip' : 'ip6', table };
  }
}

function refusedError(table: Table, operation: StepOperation | undefined, name: string): JunctionError {
  const what = operation === undefined ? 'the transaction' : printOperation(operation);
  return new JunctionError(
    'IPTABLES_RESTORE_FAILED',
    `the kernel refused a change of the table ${table}: ${name}`,
    {
      detail: `${name}: ${what}`,
    },
  );
}

function changedError(table: Table): JunctionError {
  const message = `netlink: other programs changed nf_tables during each of ${TRIES} changes of the table ${table}`;
  return new JunctionError('NETLINK_FAILED', message);
}

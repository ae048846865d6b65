/**
 * Is notified by the kernel of every change that other programs make to the tables of iptables, in its nft variant, and
 * who made it. What our own programs do, and what we do by netlink, is filtered out inside the kernel.
 *
 * There are two sockets. One gets a notification of each chain and rule; a flush of a large cluster overflows it. The other gets
 * nothing but the message at the end of each transaction, which names the program, so the name is known then, too.
 */
import type { Touch, Touched } from './rules/touched.ts';
import { type Table, TABLE_NAMES } from './rules/rule.ts';
import { isJunctionError } from '../../errors.ts';
import type { Family } from '../../model/ip.ts';
import type { ChangedBy } from '../../proxy/foreignChanges.ts';
import type { Message } from '../../netlink/codec.ts';
import { familyOfNumber } from '../../netlink/inet.ts';
import {
  decodeGeneration,
  getGeneration,
  NFNLGRP_NFTABLES,
  NEW_GENERATION,
  operationOf,
  type OperationName,
} from '../../netlink/nftables/message.ts';
import { namesIn } from '../../netlink/nftables/notifications.ts';
import { decodeTable } from '../../netlink/nftables/objects.ts';
import { NETLINK_NETFILTER } from '../../netlink/socket.ts';
import type { NetlinkThread, Watch } from '../../netlink/thread.ts';
import type { ProcessObserver } from '../../system/processes.ts';
import { systemClock } from '../../time/systemClock.ts';
import { wait } from '../../time/wait.ts';

interface RulesetSubscriber {
  readonly family: Family;
  /** Another program changed this much; of chains only those that may be ours, or may have had a jump of ours. */
  onChange(touched: Touched, changedBy: ChangedBy): void;
  /** It is not known what was changed, if anything. `changedBy`: who made the last change to any table. */
  onLost(changedBy: ChangedBy | undefined): void;
}

interface Noted {
  isGone: boolean;
  isDormant: boolean;
  /** Too many chains to name them. */
  isTooMuch: boolean;
  readonly chains: Map<string, Touch>;
}

/** From so many chains on, their names are not worth the memory: everything is read. */
const MOST_CHAINS = 5000;
/** What they do to a chain. */
const TOUCHES: Readonly<Partial<Record<OperationName, Touch>>> = {
  'new chain': 'added',
  'delete chain': 'deleted',
  'new rule': 'added',
  'delete rule': 'deleted',
};
const OUR_PREFIX = 'KUBE-';
const OUR_PREFIX_BYTES = Buffer.from(OUR_PREFIX);

type Thread = Pick<NetlinkThread, 'channel' | 'watch'>;

export class RulesetWatch {
  readonly #thread: Thread;
  readonly #programs: OwnPrograms;
  readonly #subscribers: RulesetSubscriber[] = [];
  /** Of the transaction whose notifications are arriving. */
  readonly #noted = new Map<Family, Map<Table, Noted>>();
  #watches: readonly Watch[] = [];
  #lastChangedBy: ChangedBy | undefined;

  private constructor(thread: Thread, programs: OwnPrograms) {
    this.#thread = thread;
    this.#programs = programs;
  }

  static async start(thread: Thread, programs: OwnPrograms): Promise<RulesetWatch> {
    const watch = new RulesetWatch(thread, programs);
    const all = await thread.watch(
      NETLINK_NETFILTER,
      [NFNLGRP_NFTABLES],
      {
        messages: (messages) => watch.#receive(messages),
        lost: () => void watch.#lost(),
      },
      { othersOnly: true, filter: { notFrom: [] } },
    );
    watch.#watches = [all];
    programs.subscribe((notFrom) => all.setFilter({ notFrom }));
    return watch;
  }

  subscribe(subscriber: RulesetSubscriber): void {
    this.#subscribers.push(subscriber);
  }

  async close(): Promise<void> {
    this.#programs.subscribe(undefined);
    for (const watch of this.#watches) await watch.close();
  }

  #receive(messages: readonly Message[]): void {
    for (const message of messages) {
      if (this.#programs.has(message.sender)) continue;
      try {
        if (message.type === NEW_GENERATION) this.#ended(message);
        else this.#note(message);
      } catch (error) {
        if (!isJunctionError(error)) throw error;
        void this.#lost(); // what cannot be understood may be anything
      }
    }
  }

  #note(message: Message): void {
    const family = familyOfNumber(message.payload[0] ?? 0);
    const operation = operationOf(message);
    if (!family || operation === undefined) return;
    const touch = TOUCHES[operation];
    if (!touch && operation !== 'new table' && operation !== 'delete table') return;
    const { table: name, chain } = namesIn(message);
    const table = TABLE_NAMES.find((each) => each === name);
    if (!table) return;
    if (operation === 'delete table') this.#tablesOf(family).set(table, nothingNoted(true));
    // Any other is made, or is given what it has already.
    else if (operation === 'new table' && decodeTable(message.payload).isDormant)
      this.#tableOf(family, table).isDormant = true;
    else if (touch && chain !== undefined && concernsUs(operation, chain, message.payload))
      touchChain(this.#tableOf(family, table), chain, touch);
  }

  #tablesOf(family: Family): Map<Table, Noted> {
    const tables = this.#noted.get(family) ?? new Map<Table, Noted>();
    this.#noted.set(family, tables);
    return tables;
  }

  #tableOf(family: Family, table: Table): Noted {
    const tables = this.#tablesOf(family);
    const noted = tables.get(table) ?? nothingNoted(false);
    tables.set(table, noted);
    return noted;
  }

  /** The last message of a transaction says who made it. */
  #ended({ payload }: Message): void {
    const by = changedBy(payload);
    const noted = new Map(this.#noted);
    this.#noted.clear();
    this.#lastChangedBy = by;
    for (const subscriber of this.#subscribers) {
      const touched = noted.get(subscriber.family);
      if (!touched) continue;
      const isTooMuch = [...touched.values()].some((each) => each.isTooMuch);
      if (isTooMuch) subscriber.onLost(by);
      else subscriber.onChange(touched, by);
    }
  }

  /**
   * An exchange with the kernel, after which both sockets have been read. What was noted until then is the beginning of a
   * transaction without its end, and everything is looked at afterwards.
   */
  async #lost(): Promise<void> {
    const asked = this.#thread.channel(NETLINK_NETFILTER).request(getGeneration());
    await asked.catch(() => undefined);
    this.#noted.clear();
    for (const subscriber of this.#subscribers) subscriber.onLost(this.#lastChangedBy);
  }
}

function changedBy(payload: Uint8Array): ChangedBy {
  const { processId, processName } = decodeGeneration(payload);
  return { processId, processName };
}

function nothingNoted(isGone: boolean): Noted {
  return { isGone, isDormant: false, isTooMuch: false, chains: new Map() };
}

function touchChain(noted: Noted, chain: string, touch: Touch): void {
  const { chains } = noted;
  if (noted.isTooMuch) return;
  if (touch === 'deleted' || !chains.has(chain)) chains.set(chain, touch);
  if (chains.size > MOST_CHAINS) noted.isTooMuch = true;
}

/** A rule of another chain matters if it led to one of ours. Its target is somewhere in it, as text. */
function concernsUs(operation: OperationName, chain: string, payload: Uint8Array): boolean {
  if (chain.startsWith(OUR_PREFIX)) return true;
  return operation === 'delete rule' && bytesOf(payload).includes(OUR_PREFIX_BYTES);
}

function bytesOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}

/* The programs that we run ourselves, by the numbers of their processes: what they change is no foreign change. */

/** Gets the numbers of those that run now, and resolves when the kernel no longer sends notifications of their changes. */
type OwnProgramsSubscriber = (processIds: readonly number[]) => Promise<void>;

const MOST_WAIT_MS = 1000;

export class OwnPrograms implements ProcessObserver {
  readonly #running = new Set<number>();
  /** Running, or ended so recently that the kernel's word of what they did may still be on its way. */
  readonly #known = new Set<number>();
  #subscriber: OwnProgramsSubscriber | undefined;

  subscribe(subscriber: OwnProgramsSubscriber | undefined): void {
    this.#subscriber = subscriber;
  }

  has(processId: number | undefined): boolean {
    return processId !== undefined && this.#known.has(processId);
  }

  async started(processId: number): Promise<void> {
    this.#running.add(processId);
    this.#known.add(processId);
    await this.#notify();
  }

  ended(processId: number): void {
    this.#running.delete(processId);
    void this.#notify().then(() => {
      // The number may have been given to another program of ours meanwhile.
      if (!this.#running.has(processId)) this.#known.delete(processId);
    });
  }

  /**
   * A subscriber that fails has lost its socket, and looks at everything when it has another. One that is slow must not
   * hold up a write: what the kernel then reports of it is recognised by its sender.
   */
  async #notify(): Promise<void> {
    const notified = this.#subscriber?.([...this.#running]).catch(() => undefined);
    if (!notified) return;
    const settled = new AbortController();
    await Promise.race([notified, wait(systemClock, MOST_WAIT_MS, settled.signal)]);
    settled.abort();
  }
}

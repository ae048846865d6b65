/**
 * Subscribes to changes of all tables, and reports those of ours that another program made. The kernel says which: it
 * sends the number of the thread and the name of its program.
 */
import { TABLE } from './rules/names.ts';
import { isJunctionError } from '../../errors.ts';
import type { Family } from '../../model/ip.ts';
import type { ChangedBy } from '../../proxy/foreignChanges.ts';
import type { Message } from '../../netlink/codec.ts';
import { familyOfNumber } from '../../netlink/inet.ts';
import {
  decodeGeneration,
  getGeneration,
  NFNLGRP_NFTABLES,
  operationOf,
} from '../../netlink/nftables/message.ts';
import type { ElementsOfSet } from '../../netlink/nftables/elements.ts';
import { decodeNotification, type NftNotification } from '../../netlink/nftables/notifications.ts';
import { NFGENMSG_BYTES } from '../../netlink/generic.ts';
import { NETLINK_NETFILTER } from '../../netlink/socket.ts';
import type { NetlinkThread, Watch } from '../../netlink/thread.ts';

interface TableSubscriber {
  readonly family: Family;
  /**
   * `changedBy` is unknown when some notifications were lost. `changes`: all that was changed, where that was not too much; otherwise
   * the table has to be read.
   */
  onChange(changedBy: ChangedBy | undefined, changes: TableChanges | undefined): void;
}

/** Elements that were added to a set, or deleted. */
interface ForeignElements extends ElementsOfSet {
  readonly isThere: boolean;
}

export interface TableChanges {
  readonly elements: readonly ForeignElements[];
  /** Something else than elements was changed. */
  readonly isStructural: boolean;
  /** Sets that were added or deleted: what is in them is not known any more. */
  readonly sets: ReadonlySet<string>;
  /** All of these, by name, for people: `set any-3`, `chain services`. */
  readonly objects: readonly string[];
}

/** With more notifications than this, reading the table is cheaper. */
const MOST_MESSAGES = 512;

export class TableWatch {
  readonly #thread: Pick<NetlinkThread, 'channel' | 'watch'>;
  readonly #subscribers: TableSubscriber[] = [];
  /** Of the transaction whose notifications are arriving, as far as it is about our tables. */
  readonly #touched = new Map<Family, Message[]>();
  #own: number | undefined;
  #watch: Watch | undefined;

  private constructor(thread: Pick<NetlinkThread, 'channel' | 'watch'>) {
    this.#thread = thread;
  }

  static async start(thread: Pick<NetlinkThread, 'channel' | 'watch'>): Promise<TableWatch> {
    const watch = new TableWatch(thread);
    await watch.#findSelf();
    const handler = {
      messages: (messages: readonly Message[]) => watch.#receive(messages),
      lost: () => watch.#lost(),
    };
    const others = { othersOnly: true };
    watch.#watch = await thread.watch(NETLINK_NETFILTER, [NFNLGRP_NFTABLES], handler, others);
    return watch;
  }

  subscribe(subscriber: TableSubscriber): void {
    this.#subscribers.push(subscriber);
  }

  async close(): Promise<void> {
    await this.#watch?.close();
  }

  /** The reply to a request for the generation has the requester's number and name as notifications have them. */
  async #findSelf(): Promise<void> {
    const reply = await this.#thread.channel(NETLINK_NETFILTER).request(getGeneration());
    const [message] = reply.kind === 'answered' ? reply.messages : [];
    this.#own = message && decodeGeneration(message.payload).processId;
  }

  #receive(messages: readonly Message[]): void {
    for (const message of messages) {
      if (operationOf(message) === 'new generation') {
        this.#ended(message.payload);
      } else if (isOurs(message.payload)) this.#note(message);
    }
  }

  #note(message: Message): void {
    const family = familyOfNumber(message.payload[0] ?? 0);
    // A table of our name in another family, such as inet, is another program's.
    if (!family) return;
    const noted = this.#touched.get(family);
    if (!noted) this.#touched.set(family, [message]);
    else if (noted.length <= MOST_MESSAGES) noted.push(message);
  }

  /** The last message of a transaction says who made it. */
  #ended(payload: Uint8Array): void {
    if (this.#touched.size === 0) return;
    const { processId, processName } = decodeGeneration(payload);
    const touched = new Map(this.#touched);
    this.#touched.clear();
    if (processId !== undefined && processId === this.#own) return;
    this.#notify(touched, { processId, processName });
  }

  /** Also when the thread was replaced, which then has another number. */
  #lost(): void {
    this.#touched.clear();
    const everybody = new Map(this.#subscribers.map(({ family }) => [family, []]));
    void this.#findSelf()
      .catch(() => undefined)
      .then(() => this.#notify(everybody, undefined));
  }

  #notify(touched: ReadonlyMap<Family, readonly Message[]>, changedBy: ChangedBy | undefined): void {
    for (const subscriber of this.#subscribers) {
      const { family } = subscriber;
      const messages = touched.get(family);
      if (!messages) continue;
      subscriber.onChange(changedBy, changedBy && changesOf(messages));
    }
  }
}

/** `undefined` where that is too much or cannot be decoded, or where the table itself was deleted. */
function changesOf(messages: readonly Message[]): TableChanges | undefined {
  if (messages.length > MOST_MESSAGES) return undefined;
  const elements: ForeignElements[] = [];
  const sets = new Set<string>();
  const objects = new Set<string>();
  let isStructural = false;
  try {
    for (const message of messages) {
      const notification = decodeNotification(message);
      if (notification.kind === 'deleted table') return undefined;
      objects.add(objectOf(notification));
      if ('set' in notification) sets.add(notification.set.name);
      if ('elements' in notification)
        elements.push({ ...notification.elements, isThere: notification.kind === 'new elements' });
      else isStructural = true;
    }
  } catch (error) {
    if (isJunctionError(error)) return undefined;
    throw error;
  }
  return { elements, isStructural, sets, objects: [...objects] };
}

function objectOf(notification: NftNotification): string {
  if ('chain' in notification) return `chain ${notification.chain.name}`;
  if ('rule' in notification) return `chain ${notification.rule.chain}`;
  if ('set' in notification) return `set ${notification.set.name}`;
  return 'elements' in notification ? `set ${notification.elements.set}` : `table ${TABLE}`;
}

const NAME = new TextEncoder().encode(`${TABLE}\0`);
const ATTRIBUTE_HEADER_BYTES = 4;

/** Every message begins with the table's name. Compared byte by byte: a start of ours alone makes a great many. */
function isOurs(payload: Uint8Array): boolean {
  const start = NFGENMSG_BYTES + ATTRIBUTE_HEADER_BYTES;
  if (payload[NFGENMSG_BYTES] !== ATTRIBUTE_HEADER_BYTES + NAME.length) return false;
  for (let index = 0; index < NAME.length; index++) if (payload[start + index] !== NAME[index]) return false;
  return true;
}

/**
 * Is notified by the kernel of every change that other programs make to the tables of iptables, in its nft variant, and
 * who made it. What our own programs do is filtered out inside the kernel.
 */
import type { ForeignTouch } from './rules/rewrite.ts';
import { TABLE_NAMES } from './rules/rule.ts';
import { isJunctionError } from '../../errors.ts';
import type { Family } from '../../model/ip.ts';
import type { ChangedBy } from '../../proxy/foreignChanges.ts';
import type { Message } from '../../netlink/codec.ts';
import { familyOfNumber } from '../../netlink/inet.ts';
import {
  decodeGeneration,
  NFNLGRP_NFTABLES,
  NEW_GENERATION,
  namesIn,
  operationOf,
  type OperationName,
} from '../../netlink/nftables/message.ts';
import { NETLINK_NETFILTER } from '../../netlink/socket.ts';
import type { NetlinkSockets, Watch } from '../../netlink/sockets.ts';
import type { ProcessObserver } from '../../system/processes.ts';
import { systemClock } from '../../time/systemClock.ts';
import { wait } from '../../time/wait.ts';

interface RulesetSubscriber {
  readonly family: Family;
  /** Another program changed these; of chains only those that may be ours, or may have had a jump of ours. */
  onChange(touches: readonly ForeignTouch[], changedBy: ChangedBy): void;
  /** It is not known what was changed, if anything. */
  onLost(): void;
}

/** From so many chains on, their names are not worth the memory: everything is written again. */
const MAX_TOUCHES = 5000;
const TOUCHES: ReadonlySet<OperationName> = new Set(['new chain', 'delete chain', 'new rule', 'delete rule']);
const OUR_PREFIX = 'KUBE-';
const OUR_PREFIX_BYTES = Buffer.from(OUR_PREFIX);

export class RulesetWatch {
  readonly #programs: OwnPrograms;
  readonly #subscribers: RulesetSubscriber[] = [];
  /** Of the transaction whose notifications are arriving; by what it says. */
  readonly #touches = new Map<Family, Map<string, ForeignTouch>>();
  #watch: Watch | undefined;

  private constructor(programs: OwnPrograms) {
    this.#programs = programs;
  }

  static async start(sockets: Pick<NetlinkSockets, 'watch'>, programs: OwnPrograms): Promise<RulesetWatch> {
    const rulesets = new RulesetWatch(programs);
    const watch = await sockets.watch(
      NETLINK_NETFILTER,
      [NFNLGRP_NFTABLES],
      {
        messages: (messages) => rulesets.#receive(messages),
        lost: () => rulesets.#lost(),
      },
      { othersOnly: true },
    );
    rulesets.#watch = watch;
    programs.subscribe((notFrom) => watch.ignore(notFrom));
    return rulesets;
  }

  subscribe(subscriber: RulesetSubscriber): void {
    this.#subscribers.push(subscriber);
  }

  async close(): Promise<void> {
    this.#programs.subscribe(undefined);
    await this.#watch?.close();
  }

  #receive(messages: readonly Message[]): void {
    for (const message of messages) {
      if (this.#programs.has(message.sender)) continue;
      try {
        if (message.type === NEW_GENERATION) this.#ended(message);
        else this.#note(message);
      } catch (error) {
        if (!isJunctionError(error)) throw error;
        this.#lost(); // what cannot be understood may be anything
      }
    }
  }

  #note(message: Message): void {
    const family = familyOfNumber(message.payload[0] ?? 0);
    const operation = operationOf(message);
    if (!family || operation === undefined) return;
    const isTableGone = operation === 'delete table';
    if (!isTableGone && !TOUCHES.has(operation)) return;
    const { table: name, chain } = namesIn(message);
    const table = TABLE_NAMES.find((each) => each === name);
    if (!table) return;
    if (!isTableGone && !concernsUs(operation, chain ?? '', message.payload)) return;
    const touches = this.#touches.get(family) ?? new Map<string, ForeignTouch>();
    this.#touches.set(family, touches);
    if (isTableGone) for (const [key, touch] of touches) if (touch.table === table) touches.delete(key);
    if (touches.size > MAX_TOUCHES) return;
    const isDeletion = operation.startsWith('delete');
    touches.set(`${table} ${chain} ${isDeletion}`, {
      table,
      chain: isTableGone ? undefined : chain,
      isDeletion,
    });
  }

  /** The last message of a transaction says who made it. */
  #ended({ payload }: Message): void {
    const { processId, processName } = decodeGeneration(payload);
    const noted = new Map(this.#touches);
    this.#touches.clear();
    for (const subscriber of this.#subscribers) {
      const touches = noted.get(subscriber.family);
      if (!touches) continue;
      if (touches.size > MAX_TOUCHES) subscriber.onLost();
      else subscriber.onChange([...touches.values()], { processId, processName });
    }
  }

  #lost(): void {
    this.#touches.clear();
    for (const subscriber of this.#subscribers) subscriber.onLost();
  }
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

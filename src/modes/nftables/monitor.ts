/** Reports what other programs change in our tables, where the kernel cannot forbid it. */
import type { Family } from '../../model/ip.ts';
import type { Message } from '../../netlink/codec.ts';
import { familyOfNumber } from '../../netlink/inet.ts';
import { NFNLGRP_NFTABLES, decodeGeneration, namesIn, operationOf } from '../../netlink/nftables/message.ts';
import { NETLINK_NETFILTER } from '../../netlink/socket.ts';
import type { NetlinkSockets, Watch } from '../../netlink/sockets.ts';
import type { ChangedBy } from '../../proxy/foreignChanges.ts';
import { BACKSTOP_TABLE, isOurTable } from './rules/names.ts';

interface ForeignTableChange {
  readonly family: Family;
  readonly tables: ReadonlySet<string>;
  /** For people, and not all of them: `set any-3`, `chain services`. */
  readonly objects: readonly string[];
  readonly changedBy: ChangedBy;
}

interface Touched {
  readonly tables: Set<string>;
  readonly objects: Set<string>;
}

/** `change` is unset where notifications were lost: any table may have been changed. */
type Subscriber = (change: ForeignTableChange | undefined) => void;

const MAX_OBJECTS = 20;

export class NftMonitor {
  readonly #onChange: Subscriber;
  /** By the transaction whose notifications are arriving. */
  readonly #touched = new Map<Family, Touched>();

  private constructor(onChange: Subscriber) {
    this.#onChange = onChange;
  }

  /** Not of what this process changes itself: the kernel names the socket that a change came by. */
  static start(sockets: Pick<NetlinkSockets, 'watch'>, onChange: Subscriber): Promise<Watch> {
    const monitor = new NftMonitor(onChange);
    const handler = {
      messages: (messages: readonly Message[]) => messages.forEach((message) => monitor.#receive(message)),
      lost: () => {
        monitor.#touched.clear();
        onChange(undefined);
      },
    };
    return sockets.watch(NETLINK_NETFILTER, [NFNLGRP_NFTABLES], handler, { othersOnly: true });
  }

  /** The last message of a transaction says who made it. */
  #receive(message: Message): void {
    if (operationOf(message) !== 'new generation') return this.#note(message);
    const { processId, processName } = decodeGeneration(message.payload);
    for (const [family, { tables, objects }] of this.#touched)
      this.#onChange({ family, tables, objects: [...objects], changedBy: { processId, processName } });
    this.#touched.clear();
  }

  #note(message: Message): void {
    const family = familyOfNumber(message.payload[0] ?? 0);
    const { table = '', chain, set } = namesIn(message);
    // A table of our name in another family, such as inet, is another program's.
    if (!family || table === BACKSTOP_TABLE || !isOurTable(table)) return;
    let touched = this.#touched.get(family);
    if (!touched) this.#touched.set(family, (touched = { tables: new Set(), objects: new Set() }));
    touched.tables.add(table);
    if (touched.objects.size < MAX_OBJECTS)
      touched.objects.add(chain ? `chain ${chain}` : set ? `set ${set}` : `table ${table}`);
  }
}

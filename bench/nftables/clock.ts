/** The way to the kernel, with a clock at each of its stations. */
import type { NftTables } from '../../src/modes/nftables/rules/table.ts';
import type { NetlinkChannel } from '../../src/netlink/channel.ts';
import type { NetlinkTransaction } from '../../src/netlink/nftables/transaction.ts';

export interface Spent {
  /** From elements to the bytes of messages. */
  readonly encode: number;
  /** From there to the kernel's answer. */
  readonly kernel: number;
  readonly longest: number;
  readonly commits: number;
  readonly bytes: number;
}

const NOTHING: Spent = { encode: 0, kernel: 0, longest: 0, commits: 0, bytes: 0 };

export class Clock {
  #spent = NOTHING;
  #begun = 0;

  /** What was spent since this was last asked. */
  take(): Spent {
    const spent = this.#spent;
    this.#spent = NOTHING;
    return spent;
  }

  /** A client encodes at once, and then asks the channel. */
  tables(tables: NftTables): NftTables {
    return {
      list: () => tables.list(),
      commit: (parts) => {
        this.#begun = performance.now();
        return tables.commit(parts);
      },
      table: (name) => {
        const client = tables.table(name);
        return {
          commit: (transaction) => {
            this.#begun = performance.now();
            return client.commit(transaction);
          },
          affinityEntries: (...asked) => client.affinityEntries(...asked),
        };
      },
    };
  }

  /** The same one, with a clock on its commits. */
  channel(channel: NetlinkChannel): NetlinkChannel {
    const commit = channel.commit.bind(channel);
    channel.commit = async (transaction) => {
      let written = performance.now();
      const watched: NetlinkTransaction = (sequence) => {
        const job = transaction(sequence);
        written = performance.now();
        this.#encoded(written - this.#begun, job.exchange.bytes.length);
        return job;
      };
      const outcome = await commit(watched);
      this.#committed(performance.now() - written);
      return outcome;
    };
    return channel;
  }

  #encoded(milliseconds: number, bytes: number): void {
    const spent = this.#spent;
    this.#spent = { ...spent, encode: spent.encode + milliseconds, bytes: spent.bytes + bytes };
  }

  #committed(milliseconds: number): void {
    const spent = this.#spent;
    this.#spent = {
      ...spent,
      kernel: spent.kernel + milliseconds,
      longest: Math.max(spent.longest, milliseconds),
      commits: spent.commits + 1,
    };
  }
}

/**
 * The mark of the record of what was written, in our table: a set without elements that no rule looks up. To every older
 * version it is a stale set, which its first sync deletes.
 */
import { constants } from 'node:os';
import { JunctionError } from '../../errors.ts';
import type { Family } from '../../model/ip.ts';
import { messagesOf, type TransactionChannel } from '../../netlink/channel.ts';
import type { TablePlace } from '../../netlink/nftables/message.ts';
import { decodeSet, decodeTable, getSet, getSets, getTable } from '../../netlink/nftables/objects.ts';
import { type NftOperation, transaction } from '../../netlink/nftables/transaction.ts';
import type { NetlinkRequest } from '../../netlink/socket.ts';
import type { MarkedRules } from '../../system/record/familyRecord.ts';
import { isRecordSet, recordSet, TABLE } from './rules/names.ts';
import { NFT_FAMILY } from './rules/print.ts';
import { specOf } from './sets.ts';

const COMMENT = 'Junction keeps a record of what is in this table';

export class TableMark implements MarkedRules {
  readonly #family: Family;
  readonly #channel: TransactionChannel;
  readonly #place: TablePlace;

  constructor(family: Family, channel: TransactionChannel) {
    this.#family = family;
    this.#channel = channel;
    this.#place = { family: NFT_FAMILY[family], table: TABLE };
  }

  /** The handles of the table and of the mark: one that was deleted and made again has another. */
  async identity(mark: string): Promise<string | undefined> {
    const table = await this.#ask(getTable(this.#place));
    const set = await this.#ask(getSet({ ...this.#place, set: recordSet(mark) }));
    if (!table || !set) return undefined;
    const { handle, isDormant } = decodeTable(table);
    return isDormant ? undefined : `${handle} ${decodeSet(set).handle}`;
  }

  async setMark(mark: string | undefined): Promise<void> {
    const own = mark === undefined ? undefined : recordSet(mark);
    const [reply] = await this.#channel.dumpAll([getSets(this.#place)]);
    const names = messagesOf(reply, 'the sets of our table').map(({ payload }) => decodeSet(payload).name);
    const stale = names.filter((name) => isRecordSet(name) && name !== own);
    const operations: NftOperation[] = stale.map((set) => ({ kind: 'deleteSet', ...this.#place, set }));
    if (own !== undefined) {
      const set = specOf({ name: own, key: ['port'], comment: COMMENT }, this.#family);
      operations.push({ kind: 'addSet', ...this.#place, set });
    }
    const outcome = await this.#channel.commit(transaction(operations));
    if (outcome.state !== 'done')
      throw new JunctionError('NETLINK_FAILED', `netlink: the mark of the record was ${outcome.state}`);
  }

  async #ask(request: NetlinkRequest): Promise<Uint8Array | undefined> {
    const reply = await this.#channel.request(request);
    if (reply.kind === 'answered') return reply.messages[0]?.payload;
    if (reply.errno === constants.errno.ENOENT) return undefined;
    throw new JunctionError(
      'NETLINK_FAILED',
      `netlink: cannot ask for the mark of the record: ${reply.name}`,
    );
  }
}

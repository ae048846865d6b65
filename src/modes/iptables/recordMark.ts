/** The mark of the record of what was written, in the nft variant: an empty chain in the table nat. */
import { constants } from 'node:os';
import { JunctionError } from '../../errors.ts';
import type { Family } from '../../model/ip.ts';
import type { TransactionChannel } from '../../netlink/channel.ts';
import type { TablePlace } from '../../netlink/nftables/message.ts';
import { decodeChain, decodeTable, getChain, getTable } from '../../netlink/nftables/objects.ts';
import { type NftOperation, transaction } from '../../netlink/nftables/transaction.ts';
import type { NetlinkRequest } from '../../netlink/socket.ts';
import type { MarkedRules } from '../../system/record/familyRecord.ts';
import { NFT_FAMILY } from '../nftables/rules/print.ts';
import type { ChainRef, Layout } from './rules/fragment.ts';
import { CHAINS, recordChain } from './rules/names.ts';

const FIXED: readonly ChainRef[] = [
  { table: 'nat', chain: CHAINS.postrouting },
  { table: 'nat', chain: CHAINS.markMasquerade },
  { table: 'filter', chain: CHAINS.forward },
];

export class ChainMark implements MarkedRules {
  readonly #family: Family;
  readonly #channel: TransactionChannel;
  readonly #chains: readonly ChainRef[];
  /** The last that is known. */
  #mark: string | undefined;

  constructor(family: Family, channel: TransactionChannel, layout: Layout) {
    this.#family = family;
    this.#channel = channel;
    this.#chains = [...FIXED, ...layout.sharedChains];
  }

  #place(table: string): TablePlace {
    return { family: NFT_FAMILY[this.#family], table };
  }

  /** The handles of the tables, of the fixed chains and of the mark: what was flushed and made again has others. */
  async identity(mark: string): Promise<string | undefined> {
    this.#mark = mark;
    const all: readonly ChainRef[] = [{ table: 'nat', chain: recordChain(mark) }, ...this.#chains];
    const chains = await this.#ask(
      all.map(({ table, chain }) => getChain({ ...this.#place(table), chain })),
      (payload) => decodeChain(payload).handle,
    );
    const tables = await this.#ask(
      ['nat', 'filter'].map((table) => getTable(this.#place(table))),
      (payload) => (decodeTable(payload).isDormant ? undefined : decodeTable(payload).handle),
    );
    const handles = [...tables, ...chains];
    return handles.includes(undefined) ? undefined : handles.join(' ');
  }

  async setMark(mark: string | undefined): Promise<void> {
    const place = this.#place('nat');
    const operations: NftOperation[] = [];
    if (mark !== undefined) operations.push({ kind: 'addChain', ...place, chain: recordChain(mark) });
    else if (this.#mark !== undefined)
      operations.push({ kind: 'deleteChain', ...place, chain: recordChain(this.#mark) });
    this.#mark = mark;
    const outcome = await this.#channel.commit(transaction(operations));
    if (outcome.state !== 'done')
      throw new JunctionError('NETLINK_FAILED', `netlink: the mark of the record was ${outcome.state}`);
  }

  /** `undefined` for what is not there. */
  async #ask(
    requests: readonly NetlinkRequest[],
    read: (payload: Uint8Array) => bigint | undefined,
  ): Promise<readonly (bigint | undefined)[]> {
    const replies = await this.#channel.requestAll(requests);
    return replies.map((reply) => {
      const [message] = reply.kind === 'answered' ? reply.messages : [];
      if (reply.kind === 'refused' && reply.errno !== constants.errno.ENOENT)
        throw new JunctionError(
          'NETLINK_FAILED',
          `netlink: cannot ask for the mark of the record: ${reply.name}`,
        );
      return message && read(message.payload);
    });
  }
}

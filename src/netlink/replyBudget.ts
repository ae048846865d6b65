/** How much is read in answer to one request. An answer without an end is a fault that must not become a hang. */
import { JunctionError } from '../errors.ts';

/** Four times what a million flows take, the largest table that anybody asks for. */
const LIMIT_BYTES = 1 << 30;
/** What a datagram takes at least, so that small ones come to an end too. */
const DATAGRAM_BYTES = 4096;

export class ReplyBudget {
  #left = LIMIT_BYTES;

  spend(datagramBytes: number): void {
    this.#left -= Math.max(datagramBytes, DATAGRAM_BYTES);
    if (this.#left >= 0) return;
    throw new JunctionError(
      'NETLINK_FAILED',
      `netlink: the kernel goes on answering without coming to an end`,
    );
  }
}

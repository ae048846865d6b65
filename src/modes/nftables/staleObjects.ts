/** A node that was switched from an nftables mode, ours or kube-proxy's: once the new rules work, the old table goes. */
import { EVERY_TABLE, findTables, removeTable } from './cleanup.ts';
import { NETLINK_NETFILTER } from '../../netlink/socket.ts';
import type { Log } from '../../log/log.ts';
import { FAMILIES } from '../../model/ip.ts';
import { withNetlink } from '../netlinkWork.ts';

/** Nothing that fails here may stop the proxy. */
export function removeStaleTables(log: Log, names: readonly string[] = EVERY_TABLE): Promise<void> {
  return withNetlink(
    async (thread) => {
      const channel = thread.transactionChannel(NETLINK_NETFILTER);
      for (const remains of await findTables(channel, FAMILIES, names)) {
        const { family, table } = remains;
        const why = await removeTable(channel, remains);
        if (why === undefined) log.info('Removed the table that an nftables mode left', { family, table });
        else log.warn('Cannot remove the table that an nftables mode left', { family, table, why });
      }
    },
    (error) =>
      log.warn('Cannot look for tables that an nftables mode left', {
        err: error,
        whatToDo: 'junction cleanup',
      }),
  );
}

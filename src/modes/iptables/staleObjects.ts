/**
 * A node that was switched from a mode that wrote rules of iptables, ours or kube-proxy's: once the new rules work, the
 * old ones go. kubelet's chains, and what others have, stay.
 */
import { NFACCT } from './rules/names.ts';
import { isJunctionError } from '../../errors.ts';
import { cleanIptables } from './cleanup.ts';
import { deleteNfacct } from '../../netlink/nfacct.ts';
import type { Log } from '../../log/log.ts';
import { FAMILIES } from '../../model/ip.ts';

const ROUTE_LOCALNET_OFF =
  'nothing; to be rid of both: sysctl -w net.ipv4.conf.all.route_localnet=0, then restart';

/** Nothing that fails here may stop the proxy. */
export async function removeStaleRules(log: Log): Promise<void> {
  for (const family of FAMILIES) {
    try {
      for (const cleaned of await cleanIptables(family, { variant: 'auto', dryRun: false })) {
        const { chains, rules, kept } = cleaned;
        if (chains.length + rules.length > 0)
          log.info('Removed the rules that an iptables or ipvs mode left', {
            ipFamily: family,
            variant: cleaned.variant,
            chains: chains.length,
            rulesElsewhere: rules.length,
          });
        for (const { table, chain, reason } of kept)
          if (reason === 'called')
            log.warn('Kept a chain that rules of others jump to', { ipFamily: family, table, chain });
          else
            log.info('Kept the guard of 127.0.0.0/8: route_localnet is on', {
              ipFamily: family,
              table,
              chain,
              whatToDo: ROUTE_LOCALNET_OFF,
            });
      }
    } catch (error) {
      // Nobody has written rules with a program that is not there.
      if (isJunctionError(error, 'PROGRAM_MISSING')) log.verbose(2, error.message, { ipFamily: family });
      else
        log.warn('Cannot look for rules that an iptables or ipvs mode left', {
          ipFamily: family,
          err: error,
          whatToDo: 'junction cleanup',
        });
    }
  }
  for (const name of Object.values(NFACCT)) deleteNfacct(name);
}
